// SPDX-License-Identifier: Apache-2.0
#include "gui/session/step_alignment.h"

#include <algorithm>
#include <map>

namespace rankscope::gui {
namespace {

// Times of a damaged file are cut to where sums of a few of them do not overflow.
int64_t sound(int64_t ns) { return std::clamp(ns, -(INT64_MAX / 16), INT64_MAX / 16); }

std::map<int32_t, int64_t> beginnings(const RunInfo& run) {
    std::map<int32_t, int64_t> steps;
    for (const StepInfo& step : run.steps) {
        const auto [found, added] = steps.try_emplace(step.step, sound(step.range.beginNs));
        if (!added) found->second = std::min(found->second, sound(step.range.beginNs));
    }
    return steps;
}

TimeRange hull(TimeRange a, TimeRange b) { return {std::min(a.beginNs, b.beginNs), std::max(a.endNs, b.endNs)}; }
TimeRange moved(TimeRange range, int64_t ns) { return {range.beginNs + ns, range.endNs + ns}; }

}  // namespace

StepAlignment::StepAlignment(const RunInfo& a, const RunInfo& b) : m_wholeA(a.whole), m_wholeB(b.whole) {
    const auto ofA = beginnings(a), ofB = beginnings(b);
    for (const auto& [step, ns] : ofA)
        if (const auto found = ofB.find(step); found != ofB.end()) m_anchors.push_back({step, ns, found->second});
    if (m_anchors.empty()) m_anchors.push_back({-1, sound(a.whole.beginNs), sound(b.whole.beginNs)});
}

const StepAlignment::Anchor& StepAlignment::anchorFor(Side side, TimeRange visible) const noexcept {
    const auto first = std::partition_point(m_anchors.begin(), m_anchors.end(), [&](const Anchor& anchor) { return anchor.of(side) < visible.beginNs; });
    if (first != m_anchors.end() && first->of(side) < visible.endNs) return *first;
    return first == m_anchors.begin() ? *first : *std::prev(first);
}

TimeRange StepAlignment::across(Side from, TimeRange visible) const noexcept {
    const Anchor& anchor = anchorFor(from, visible);
    return moved(visible, anchor.of(other(from)) - anchor.of(from));
}

TimeRange StepAlignment::room(Side side) const noexcept {
    TimeRange room = whole(side);
    for (const Anchor* anchor : {&m_anchors.front(), &m_anchors.back()}) room = hull(room, moved(whole(other(side)), anchor->of(side) - anchor->of(other(side))));
    return room;
}

TimeRange StepAlignment::fit(Side side) const noexcept {
    const Anchor& first = m_anchors.front();
    return hull(whole(side), moved(whole(other(side)), first.of(side) - first.of(other(side))));
}

}  // namespace rankscope::gui
