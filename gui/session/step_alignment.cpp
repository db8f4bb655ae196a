// SPDX-License-Identifier: Apache-2.0
#include "gui/session/step_alignment.h"

#include <algorithm>
#include <map>

#include "gui/timeline/time_axis.h"

namespace rankscope::gui {
namespace {

// Times of a damaged file are cut to where sums of a few of them do not overflow.
int64_t sound(int64_t ns) {
    return std::clamp(ns, -(INT64_MAX / 16), INT64_MAX / 16);
}

std::map<int32_t, int64_t> beginnings(const RunInfo& run) {
    std::map<int32_t, int64_t> steps;
    for (const StepInfo& step : run.steps) {
        const auto [found, added] = steps.try_emplace(step.step, sound(step.range.beginNs));
        if (!added) found->second = std::min(found->second, sound(step.range.beginNs));
    }
    return steps;
}

TimeRange moved(TimeRange range, int64_t ns) {
    return {range.beginNs + ns, range.endNs + ns};
}

}  // namespace

StepAlignment::StepAlignment(const RunInfo& a, const RunInfo& b) : m_wholeA(a.whole), m_wholeB(b.whole) {
    const auto ofA = beginnings(a), ofB = beginnings(b);
    for (const auto& [step, ns] : ofA)
        if (const auto found = ofB.find(step); found != ofB.end()) m_anchors.push_back({step, ns, found->second});
    if (m_anchors.empty()) m_anchors.push_back({-1, sound(a.whole.beginNs), sound(b.whole.beginNs)});
}

const StepAlignment::Anchor& StepAlignment::anchorFor(Side side, TimeRange visible) const noexcept {
    const auto first = std::partition_point(m_anchors.begin(), m_anchors.end(),
                                            [&](const Anchor& anchor) { return anchor.of(side) < visible.beginNs; });
    if (first != m_anchors.end() && first->of(side) < visible.endNs) return *first;
    return first == m_anchors.begin() ? *first : *std::prev(first);
}

TimeRange StepAlignment::across(Side from, TimeRange visible) const noexcept {
    const Anchor& anchor = anchorFor(from, visible);
    return moved(visible, anchor.of(other(from)) - anchor.of(from));
}

int64_t StepAlignment::matching(Side from, int64_t ns) const noexcept {
    const Side to = other(from);
    const int64_t time = sound(ns);
    if (m_anchors.front().step < 0) return time - m_anchors.front().of(from) + m_anchors.front().of(to);
    const auto after = std::partition_point(m_anchors.begin(), m_anchors.end(),
                                            [&](const Anchor& anchor) { return anchor.of(from) <= time; });
    // Before the first step and from the last on the run's ends are the bounds.
    const auto bounds = [&](Side side) {
        return TimeRange{after == m_anchors.begin() ? sound(whole(side).beginNs) : std::prev(after)->of(side),
                         after == m_anchors.end() ? sound(whole(side).endNs) : after->of(side)};
    };
    const TimeRange here = bounds(from), there = bounds(to);
    if (here.endNs <= here.beginNs || there.endNs <= there.beginNs) return there.beginNs;
    const long double share =
        static_cast<long double>(time - here.beginNs) / static_cast<long double>(here.endNs - here.beginNs);
    return there.beginNs +
           static_cast<int64_t>(std::clamp(share, 0.0L, 1.0L) * static_cast<long double>(there.endNs - there.beginNs));
}

TimeRange StepAlignment::matching(Side from, TimeRange range) const noexcept {
    const TimeRange there = whole(other(from));
    const int64_t begin =
        std::clamp(matching(from, range.beginNs), there.beginNs, std::max(there.beginNs, there.endNs - 1));
    return {begin, std::max(begin + 1, std::min(there.endNs, matching(from, range.endNs)))};
}

TimeRange StepAlignment::room(Side side) const noexcept {
    TimeRange room = whole(side);
    for (const Anchor* anchor : {&m_anchors.front(), &m_anchors.back()})
        room = hull(room, moved(whole(other(side)), anchor->of(side) - anchor->of(other(side))));
    return room;
}

TimeRange StepAlignment::fit(Side side) const noexcept {
    const Anchor& first = m_anchors.front();
    return hull(whole(side), moved(whole(other(side)), first.of(side) - first.of(other(side))));
}

}  // namespace rankscope::gui
