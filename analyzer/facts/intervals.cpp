// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/intervals.h"

#include <algorithm>

namespace rankscope::facts {

IntervalSet unite(std::vector<Interval> intervals) {
    if (!std::ranges::is_sorted(intervals, {}, &Interval::startNs))
        std::ranges::sort(intervals, {}, &Interval::startNs);
    size_t used = 0;  // the result grows in place: it never overtakes the input
    for (const Interval& next : intervals) {
        if (next.endNs <= next.startNs) continue;
        if (used > 0 && next.startNs <= intervals[used - 1].endNs) {
            intervals[used - 1].endNs = std::max(intervals[used - 1].endNs, next.endNs);
        } else {
            intervals[used++] = next;
        }
    }
    intervals.resize(used);
    return intervals;
}

IntervalSet unite(const IntervalSet& a, const IntervalSet& b) {
    IntervalSet merged(a.size() + b.size());
    std::ranges::merge(a, b, merged.begin(), {}, &Interval::startNs, &Interval::startNs);
    return unite(std::move(merged));
}

IntervalSet intersect(const IntervalSet& a, const IntervalSet& b) {
    IntervalSet result;
    for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        const int64_t start = std::max(a[i].startNs, b[j].startNs);
        const int64_t end = std::min(a[i].endNs, b[j].endNs);
        if (start < end) result.push_back({start, end});
        if (a[i].endNs < b[j].endNs) {
            ++i;
        } else {
            ++j;
        }
    }
    return result;
}

IntervalSet subtract(const IntervalSet& a, const IntervalSet& b) {
    IntervalSet result;
    size_t j = 0;
    for (const Interval& whole : a) {
        int64_t start = whole.startNs;
        while (j < b.size() && b[j].endNs <= start) ++j;
        // A member of b may reach into the next member of a: j stays on it.
        for (size_t k = j; k < b.size() && b[k].startNs < whole.endNs; ++k) {
            if (b[k].startNs > start) result.push_back({start, b[k].startNs});
            start = std::max(start, b[k].endNs);
            j = k;
        }
        if (start < whole.endNs) result.push_back({start, whole.endNs});
    }
    return result;
}

IntervalSet clip(const IntervalSet& set, int64_t startNs, int64_t endNs) {
    auto first = std::ranges::upper_bound(set, startNs, {}, &Interval::endNs);
    IntervalSet part;
    for (; first != set.end() && first->startNs < endNs; ++first)
        part.push_back({std::max(first->startNs, startNs), std::min(first->endNs, endNs)});
    return part;
}

int64_t length(std::span<const Interval> set) {
    int64_t total = 0;
    for (const Interval& interval : set) total += interval.endNs - interval.startNs;
    return total;
}

CoveredLength::CoveredLength(IntervalSet set) : m_set(std::move(set)) {
    m_lengthBefore.reserve(m_set.size());
    int64_t total = 0;
    for (const Interval& interval : m_set) {
        m_lengthBefore.push_back(total);
        total += interval.endNs - interval.startNs;
    }
}

int64_t CoveredLength::before(int64_t timeNs) const {
    const auto after = std::ranges::upper_bound(m_set, timeNs, {}, &Interval::startNs);
    if (after == m_set.begin()) return 0;
    const size_t last = static_cast<size_t>(after - m_set.begin()) - 1;
    return m_lengthBefore[last] + std::min(timeNs, m_set[last].endNs) - m_set[last].startNs;
}

}  // namespace rankscope::facts
