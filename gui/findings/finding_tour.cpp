// SPDX-License-Identifier: Apache-2.0
#include "gui/findings/finding_tour.h"

#include <algorithm>

#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

constexpr size_t kNoteBytes = 80;  // a note stands beside its mark

constexpr int64_t kTooNarrow = 200;  // an event that is a smaller part of the picture runs into its neighbours

/// An event among many short ones, and a good many of these; else `around`.
TimeRange closeEnough(TimeRange around, const TrackEvent& event) {
    constexpr int64_t kBefore = 10, kAfter = 30;  // times its length
    if (event.durNs <= 0 || around.span() / event.durNs < kTooNarrow) return around;
    return {event.startNs - kBefore * event.durNs, event.startNs + kAfter * event.durNs};
}

}  // namespace

FindingTour::FindingTour(TimelineModel& model, QObject* parent) : QObject(parent), m_model(model) {
    connect(&m_model, &TimelineModel::lanesChanged, this, [this] {
        if (!m_arrived) arrive();
    });
    connect(&m_model, &TimelineModel::runChanged, this, [this] {
        m_current = -1;
        m_arrived = true;
    });
}

const FindingInfo* FindingTour::current() const {
    if (!m_model.run()) return nullptr;
    for (const FindingInfo& finding : m_model.run()->findings)
        if (finding.id == m_current) return &finding;
    return nullptr;
}

bool FindingTour::goTo(const std::string& diagnosis) {
    if (!m_model.run()) return false;
    for (const FindingInfo& finding : m_model.run()->findings)
        if (finding.diagnosis == diagnosis) return goTo(finding);
    return false;
}

bool FindingTour::goTo(const FindingInfo& finding) {
    m_current = finding.id;
    m_arrived = false;
    arrive();
    return true;
}

Evidence FindingTour::evidenceOnScreen(const FindingInfo& finding) const {
    Evidence evidence;
    const auto note = [](const EvidenceLink& link) {
        return QString::fromStdString(displayText(link.note, kNoteBytes));
    };
    for (const EvidenceLink& link : finding.evidence) {
        const EventRef found = m_model.find(link.drawn.table, link.drawn.rowId, link.drawn.rank);
        if (!found.valid()) continue;
        evidence.events.push_back(found);
        evidence.notes.push_back(note(link));
    }
    for (const EvidenceLink& link : finding.evidence) {
        if (!link.gap) continue;
        evidence.times.push_back({link.rank, *link.gap});
        evidence.notes.push_back(note(link));
    }
    // Where the fix goes everywhere there is no rank to point at.
    if (finding.ranks.size() < m_model.run()->outline.ranks.size()) {
        evidence.toFix.insert(finding.ranks.begin(), finding.ranks.end());
        for (const int32_t rank : finding.affectedRanks)
            if (!evidence.toFix.contains(rank)) evidence.waiting.insert(rank);
    }
    return evidence;
}

void FindingTour::leave() {
    if (m_current < 0) return;
    m_current = -1;
    m_arrived = true;
    m_model.setEvidence({});
    emit left();
}

bool FindingTour::isLoaded(const FindingInfo& finding) const {
    std::vector<int32_t> wanted;
    if (!finding.ranks.empty()) wanted.push_back(finding.ranks.front());
    for (const EvidenceLink& link : finding.evidence)
        if (link.rank >= 0) wanted.push_back(link.rank);
    for (const int32_t rank : wanted) {
        if (m_model.lanes().tracks(rank)) continue;
        emit m_model.rankWanted(rank);
        return false;
    }
    return true;
}

void FindingTour::arrive() {
    // lanesChanged() brings us back until all of it is here.
    if (const FindingInfo* finding = current(); finding && isLoaded(*finding)) show(*finding);
}

void FindingTour::loadingEnded() {
    const FindingInfo* finding = m_arrived ? nullptr : current();
    if (finding) show(*finding);
}

void FindingTour::show(const FindingInfo& finding) {
    m_arrived = true;  // before lanes change: that would bring us here again
    Evidence evidence = evidenceOnScreen(finding);
    const std::vector<EventRef> events = evidence.events;
    const std::vector<MarkedTime> gaps = evidence.times;
    // The rank where the fix is to go is the one to look at, and the event that shows most; they may be two ranks.
    const int32_t culprit = finding.ranks.empty() ? -1 : finding.ranks.front();
    m_model.changeLanes([&](LaneTree& lanes) {
        if (culprit >= 0) lanes.expandRank(culprit);
        if (!events.empty()) lanes.expandRank(events.front().rank);
        if (events.empty() && !gaps.empty()) lanes.expandRank(gaps.front().rank);
    });
    m_model.setEvidence(std::move(evidence));
    if (!events.empty()) {
        const TrackEvent event = m_model.event(events.front());
        m_model.show(
            closeEnough(stepsAround({event.startNs, event.startNs + event.durNs}, events.front().rank), event));
        m_model.select(events.front());
    } else {
        if (!gaps.empty())
            m_model.show(stepsAround(gaps.front().time, gaps.front().rank));
        else if (finding.window)
            m_model.show(stepsAround(*finding.window, culprit));
        m_model.select({});
    }
    emit arrived();
}

// The steps of the rank that `range` touches, so that the picture begins and ends where the work does; the range itself
// where there are no steps, or where it covers many.
TimeRange FindingTour::stepsAround(TimeRange range, int32_t rank) const {
    TimeRange around = range;
    size_t steps = 0;
    for (const StepInfo& step : m_model.run()->steps) {
        if (step.rank != rank || step.range.endNs <= range.beginNs || step.range.beginNs >= range.endNs) continue;
        around.beginNs = std::min(around.beginNs, step.range.beginNs);
        around.endNs = std::max(around.endNs, step.range.endNs);
        ++steps;
    }
    constexpr size_t kManySteps = 4;
    if (steps == 0 || steps > kManySteps) around = range;
    const int64_t margin = std::max<int64_t>(around.span() / 20, 10);
    return {around.beginNs - margin, around.endNs + margin};
}

}  // namespace rankscope::gui
