// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace rankscope::vgpu {

/// What a clock of real time showed when the virtual one stood where. Marks come in the order of real time; of several
/// threads the one furthest on counts, so that virtual time never falls.
class ClockMarks {
  public:
    void add(uint64_t ticks, int64_t virtualNs);
    /// Between two marks in proportion, before the first and behind the last one theirs. 0 without marks.
    int64_t virtualAt(uint64_t ticks) const;
    bool empty() const { return m_marks.empty(); }
    int64_t lastNs() const { return m_marks.back().ns; }

  private:
    struct Mark {
        uint64_t ticks;
        int64_t ns;
    };
    std::vector<Mark> m_marks;
};

}  // namespace rankscope::vgpu
