// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rankscope::gui {

/// Nanoseconds on the job clock, end excluded.
struct TimeRange {
    int64_t beginNs = 0;
    int64_t endNs = 0;

    int64_t span() const noexcept { return endNs - beginNs; }
    bool contains(int64_t ns) const noexcept { return beginNs <= ns && ns < endNs; }
    bool operator==(const TimeRange&) const = default;
};

/// The shortest range that holds both.
TimeRange hull(TimeRange a, TimeRange b);

/// A line of the ruler.
struct Tick {
    int64_t timeNs = 0;
    double x = 0;       ///< pixels from the left edge
    std::string label;  ///< "12 ms"; relative to Ruler::baseNs, with a plus, when that is not 0
};

struct Ruler {
    int64_t baseNs = 0;     ///< what the labels count from: keeps them short where the view is deep inside a long run
    std::string baseLabel;  ///< "at 3600.000 s"; empty when the labels count from the run's start
    std::vector<Tick> ticks;
};

/// Maps time to horizontal pixels. Holds: kMinSpanNs <= visible().span(), and visible() lies in room(), which holds
/// whole(), unless place() said otherwise.
class TimeAxis {
  public:
    static constexpr int64_t kMinSpanNs = 20;

    /// `whole` may be empty: it is widened to kMinSpanNs.
    void setWhole(TimeRange whole);
    /// Where a run is looked at beside another one: how far the view may reach beyond the run, and what it shows to
    /// show both whole.
    void setRoom(TimeRange room, TimeRange fitted);
    void setWidth(double pixels);
    void show(TimeRange visible);
    /// As show(), but also where nothing is: beside another run that is shown there.
    void place(TimeRange visible);
    void fit() { show(fitted()); }
    /// factor > 1 shows more time; the time under `x` stays where it is, unless an edge of the run is met.
    void zoomAt(double x, double factor);
    /// Positive: to later times.
    void panBy(double pixels);
    /// Brings `range` into view with a margin, changing the zoom only as far as it must.
    void reveal(TimeRange range);

    TimeRange whole() const noexcept { return m_whole; }
    TimeRange room() const noexcept { return m_room; }
    TimeRange fitted() const noexcept { return m_fitted; }
    TimeRange visible() const noexcept { return m_visible; }
    double width() const noexcept { return m_width; }
    double pixelsPerNs() const noexcept { return m_width / static_cast<double>(m_visible.span()); }
    double xOf(int64_t ns) const noexcept { return static_cast<double>(ns - m_visible.beginNs) * pixelsPerNs(); }
    int64_t timeAt(double x) const noexcept;
    /// Lines at 1, 2 or 5 times a power of ten, at least `minGapPixels` apart.
    Ruler ruler(double minGapPixels) const;

  private:
    TimeRange m_whole{0, kMinSpanNs};
    TimeRange m_room{0, kMinSpanNs};
    TimeRange m_fitted{0, kMinSpanNs};
    TimeRange m_visible{0, kMinSpanNs};
    double m_width = 1;
};

/// A duration for people: three significant digits and a unit, "1.25 ms". Negative ones keep their sign.
std::string durationText(int64_t ns);

}  // namespace rankscope::gui
