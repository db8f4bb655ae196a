// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "gui/timeline/lane_line.h"

namespace rankscope::gui {

/// A name, laid out once: its dots of ink, to be pressed onto a picture as often as it is seen. Laying out text for
/// every label of every frame costs more than all the rest of the frame.
class NameStamp {
  public:
    NameStamp() = default;
    /// At `ratio` device pixels a logical one. Without ink where `name` has none.
    NameStamp(const QString& name, double ratio);

    /// Device pixels from the upper edge of the ink to its lower one.
    int height() const noexcept { return static_cast<int>(m_rows.size()) - 1; }
    /// How much of it fits into `width` device pixels, with room for `ellipsis` where not all of it does; 0: not even
    /// three characters.
    int fitting(int width, const NameStamp& ellipsis) const noexcept;
    int width() const noexcept { return m_ends.empty() ? 0 : m_ends.back(); }
    size_t bytes() const noexcept { return m_dots.size() * sizeof(Dot) + m_ends.size() * sizeof(uint16_t); }

    struct Dot {
        uint16_t x;
        uint8_t alpha;
    };
    /// Ink of a row of pixels, from left to right.
    std::span<const Dot> row(int y) const noexcept {
        return std::span(m_dots).subspan(m_rows[static_cast<size_t>(y)],
                                         m_rows[static_cast<size_t>(y) + 1] - m_rows[static_cast<size_t>(y)]);
    }

  private:
    std::vector<Dot> m_dots;
    std::vector<uint32_t> m_rows;  // first dot of every row, and the end
    std::vector<uint16_t> m_ends;  // where characters end, in ascending order: where a name may be cut
};

/// The stamps of the names seen lately, by a key of the caller's. Not for several threads, but for reading.
class NameStamps {
  public:
    /// Starts anew where the ratio is another one, or where the names have become too many.
    void prepare(double ratio);
    void clear();
    /// Null where there is none yet.
    const NameStamp* find(uint64_t key) const;
    const NameStamp& add(uint64_t key, const QString& name);
    const NameStamp& ellipsis() const noexcept { return m_ellipsis; }

  private:
    double m_ratio = 0;
    size_t m_bytes = 0;
    NameStamp m_ellipsis;
    std::unordered_map<uint64_t, NameStamp> m_stamps;
};

}  // namespace rankscope::gui
