// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gui/timeline/time_axis.h"

namespace rankscope::gui {

enum class CurveUnit : uint8_t { number, bytes, percent, megahertz, watts, celsius };

/// A value over time, each holding until the next. Immutable once finished, so any thread may read it.
class Curve {
  public:
    Curve() = default;
    explicit Curve(CurveUnit unit) : m_unit(unit) {}

    /// In order of time; what comes earlier than the last one is taken to be at its time.
    void add(int64_t ns, double value);
    /// Nothing may be added after.
    void finish();
    /// What the value cannot exceed, where that is known: the memory of a device. Drawn, and told with the peak.
    void setLimit(double limit) { m_limit = limit; }

    bool empty() const noexcept { return m_times.empty(); }
    CurveUnit unit() const noexcept { return m_unit; }
    std::optional<double> limit() const noexcept { return m_limit; }
    double peak() const noexcept { return m_peak; }
    /// The highest that a picture has room for: the peak, or the limit where that is known.
    double top() const noexcept;
    /// Nothing before the first one.
    std::optional<double> at(int64_t ns) const noexcept;
    /// The highest in a range, the one that holds at its beginning among them. Cost: logarithmic.
    std::optional<double> highest(TimeRange range) const noexcept;
    size_t bytes() const noexcept;

  private:
    static constexpr size_t kFan = 16;  // values below one of the next level

    size_t firstAfter(int64_t ns) const noexcept;
    double highestOf(size_t level, size_t first, size_t last) const noexcept;

    CurveUnit m_unit = CurveUnit::number;
    std::optional<double> m_limit;
    double m_peak = 0;
    std::vector<int64_t> m_times;
    std::vector<std::vector<double>> m_levels;  // the values, then the highest of each kFan below
};

/// Heights of a curve in a picture, one a column of pixels, 0 to 1 of Curve::top(); negative where there is no value.
void drawCurve(const Curve& curve, const TimeAxis& axis, std::vector<float>& columns);

}  // namespace rankscope::gui
