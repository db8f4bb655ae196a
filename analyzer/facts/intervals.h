// SPDX-License-Identifier: Apache-2.0
// Algebra of half-open time intervals [startNs, endNs). A set is sorted, disjoint, without empty or touching members;
// every operation is linear.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rankscope::facts {

struct Interval {
    int64_t startNs = 0;
    int64_t endNs = 0;
    bool operator==(const Interval&) const = default;
};

using IntervalSet = std::vector<Interval>;

/// Union of intervals in any order; empty and reversed ones are dropped. Linear when the input is sorted by start, else
/// it is sorted first.
IntervalSet unite(std::vector<Interval> intervals);

IntervalSet intersect(const IntervalSet& a, const IntervalSet& b);

/// What of `a` is not in `b`.
IntervalSet subtract(const IntervalSet& a, const IntervalSet& b);

int64_t length(std::span<const Interval> set);

/// Length of the part of a set that lies in a window, answered in O(log n) after a linear preparation.
class CoveredLength {
  public:
    explicit CoveredLength(IntervalSet set);
    /// Covered time before `timeNs`.
    int64_t before(int64_t timeNs) const;
    int64_t within(int64_t startNs, int64_t endNs) const {
        return endNs > startNs ? before(endNs) - before(startNs) : 0;
    }
    const IntervalSet& set() const { return m_set; }

  private:
    IntervalSet m_set;
    std::vector<int64_t> m_lengthBefore;  // of the members in front of each member
};

}  // namespace rankscope::facts
