// SPDX-License-Identifier: Apache-2.0
// Computes with half-open time intervals [startNs, endNs). A set is sorted, disjoint, without empty or touching
// members; every operation is linear.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace rankscope::facts {

struct Interval {
    int64_t startNs = 0;
    int64_t endNs = 0;
    bool operator==(const Interval&) const = default;
};

using IntervalSet = std::vector<Interval>;

/// Unites intervals in any order; empty and reversed ones are dropped. Linear when the input is sorted by start, else
/// it is sorted first.
IntervalSet unite(std::vector<Interval> intervals);

IntervalSet unite(const IntervalSet& a, const IntervalSet& b);

/// Unites the times of rows that have `startNs` and `endNs`, in any order.
template <typename Rows>
IntervalSet timesOf(Rows&& rows) {
    std::vector<Interval> times;
    for (const auto& row : rows) times.push_back({row.startNs, row.endNs});
    return unite(std::move(times));
}

IntervalSet intersect(const IntervalSet& a, const IntervalSet& b);

/// Returns the part of `a` that is not in `b`.
IntervalSet subtract(const IntervalSet& a, const IntervalSet& b);

/// Returns the part of a set in a window. O(log n + members inside).
IntervalSet clip(const IntervalSet& set, int64_t startNs, int64_t endNs);

int64_t length(std::span<const Interval> set);

/// Tells the length of the part of a set that lies in a window, in O(log n) after a linear preparation.
class CoveredLength {
  public:
    explicit CoveredLength(IntervalSet set);
    /// Returns the covered time before `timeNs`.
    int64_t before(int64_t timeNs) const;
    int64_t within(int64_t startNs, int64_t endNs) const {
        return endNs > startNs ? before(endNs) - before(startNs) : 0;
    }

  private:
    IntervalSet m_set;
    std::vector<int64_t> m_lengthBefore;  // of the members in front of each member
};

}  // namespace rankscope::facts
