// SPDX-License-Identifier: Apache-2.0
#include "gui/findings/finding_tour.h"

#include <algorithm>
#include <utility>

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

TimeRange withMargin(TimeRange around) {
    const int64_t margin = std::max<int64_t>(around.span() / 20, 10);
    return {around.beginNs - margin, around.endNs + margin};
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
    m_wantedEntry.reset();
    arrive();
    return true;
}

// Where the fix goes everywhere there is no rank to point at.
std::set<int32_t> FindingTour::ranksToFix(const FindingInfo& finding) const {
    if (finding.ranks.size() >= m_model.run()->outline.ranks.size()) return {};
    return {finding.ranks.begin(), finding.ranks.end()};
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
    evidence.toFix = ranksToFix(finding);
    if (!evidence.toFix.empty())
        for (const int32_t rank : finding.affectedRanks)
            if (!evidence.toFix.contains(rank)) evidence.waiting.insert(rank);
    return evidence;
}

void FindingTour::leave() {
    if (m_current < 0) return;
    m_current = -1;
    m_arrived = true;
    m_model.changeLanes([](LaneTree& lanes) { lanes.setExcerpts({}); });
    m_model.setEvidence({});
    emit left();
}

bool FindingTour::isLoaded(const FindingInfo& finding) const {
    std::vector<int32_t> wanted = ranksToCompare(finding, Among::all);
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

// Where the fix goes, then a rank on which its cost is seen: of all that wait, the one with the strongest evidence.
// Where the fix goes everywhere, two that show it. Of all ranks or of those that are loaded.
std::vector<int32_t> FindingTour::ranksToCompare(const FindingInfo& finding, Among among) const {
    constexpr size_t kSideBySide = 2;
    const std::set<int32_t> toFix = ranksToFix(finding);
    std::vector<int32_t> seen;
    if (!toFix.empty()) seen.push_back(finding.ranks.front());
    for (const bool gaps : {false, true})
        for (const EvidenceLink& link : finding.evidence)
            if (link.gap.has_value() == gaps) seen.push_back(gaps ? link.rank : link.drawn.rank);
    seen.insert(seen.end(), finding.affectedRanks.begin(), finding.affectedRanks.end());
    std::erase_if(seen, [&](int32_t rank) {
        return rank < 0 || (among == Among::loaded && m_model.lanes().tracks(rank) == nullptr);
    });
    if (seen.empty()) seen = finding.ranks;
    // Beside one of several that are to be fixed another of them says less than one that waits.
    if (!toFix.empty() && !seen.empty())
        std::stable_partition(seen.begin() + 1, seen.end(), [&](int32_t rank) { return !toFix.contains(rank); });
    std::vector<int32_t> ranks;
    for (const int32_t rank : seen)
        if (ranks.size() < kSideBySide && std::ranges::find(ranks, rank) == ranks.end()) ranks.push_back(rank);
    return ranks;
}

// The lanes with evidence, and the streams on which anything runs in `time`.
RankExcerpt FindingTour::excerptOf(int32_t rank, const Evidence& evidence, TimeRange time) const {
    constexpr size_t kMostLanes = 6;  // two ranks of these leave most of a small window to the others
    RankExcerpt excerpt{rank, {}};
    const RankTracks* tracks = m_model.lanes().tracks(rank);
    if (!tracks) return excerpt;
    std::vector<uint32_t>& lanes = excerpt.lanes;
    const auto add = [&](uint32_t lane) {
        if (lanes.size() < kMostLanes && std::ranges::find(lanes, lane) == lanes.end()) lanes.push_back(lane);
    };
    for (const EventRef& event : evidence.events)
        if (event.rank == rank) add(event.lane);
    const auto isBusy = [&](const Lane::Part& part) {
        const size_t first = part.track.firstEndingAfter(time.beginNs);
        return first < part.track.size() && part.track.startNs(first) < time.endNs;
    };
    for (uint32_t lane = 0; lane < tracks->lanes.size(); ++lane)
        if (tracks->lanes[lane].kind == LaneKind::stream && std::ranges::any_of(tracks->lanes[lane].parts, isBusy))
            add(lane);
    std::ranges::sort(lanes);
    return excerpt;
}

void FindingTour::show(const FindingInfo& finding) {
    m_arrived = true;  // before lanes change: that would bring us here again
    Evidence evidence = evidenceOnScreen(finding);
    const std::vector<EventRef> events = evidence.events;
    const std::vector<MarkedTime> gaps = evidence.times;
    const int32_t culprit = finding.ranks.empty() ? -1 : finding.ranks.front();
    TimeRange time = m_model.axis().visible();
    if (!events.empty()) {
        const TrackEvent event = m_model.event(events.front());
        time = timeAround(finding, event, events.front().rank);
    } else if (!gaps.empty()) {
        time = stepsAround(gaps.front().time, gaps.front().rank);
    } else if (finding.window) {
        time = stepsAround(*finding.window, culprit);
    }
    std::vector<RankExcerpt> excerpts;
    for (const int32_t rank : ranksToCompare(finding, Among::loaded))
        excerpts.push_back(excerptOf(rank, evidence, time));
    m_model.changeLanes([&](LaneTree& lanes) { lanes.setExcerpts(std::move(excerpts)); });
    m_model.setEvidence(std::move(evidence));
    if (!(time == m_model.axis().visible())) m_model.show(time);
    m_model.select(events.empty() ? EventRef{} : events.front());
    noteStepInView(finding);
    emit arrived();
    if (const auto entry = std::exchange(m_wantedEntry, std::nullopt)) goToEvidence(*entry);
}

bool FindingTour::goToEvidence(size_t entry) {
    const FindingInfo* finding = current();
    if (!finding || entry >= finding->evidence.size()) return false;
    if (!m_arrived) {  // its ranks are being loaded
        m_wantedEntry = entry;
        return true;
    }
    const EvidenceLink& link = finding->evidence[entry];
    if (link.gap) {
        m_model.show(stepsAround(*link.gap, link.rank));
    } else {
        const EventRef found = m_model.find(link.drawn.table, link.drawn.rowId, link.drawn.rank);
        if (!found.valid()) return false;
        const TrackEvent event = m_model.event(found);
        m_model.show(timeAround(*finding, event, found.rank));
        m_model.select(found);
    }
    noteStepInView(*finding);
    emit moved();
    return true;
}

// Of any rank, where the finding names none that has steps.
const StepInfo* FindingTour::stepOf(int32_t rank, int32_t step) const {
    const StepInfo* any = nullptr;
    for (const StepInfo& known : m_model.run()->steps) {
        if (known.step != step) continue;
        if (known.rank == rank) return &known;
        if (!any) any = &known;
    }
    return any;
}

void FindingTour::noteStepInView(const FindingInfo& finding) {
    const TimeRange visible = m_model.axis().visible();
    const int64_t middle = visible.beginNs + visible.span() / 2;
    m_step = -1;
    for (size_t i = 0; i < finding.steps.size(); ++i) {
        const StepInfo* step = stepOf(finding.ranks.empty() ? -1 : finding.ranks.front(), finding.steps[i]);
        if (step && step->range.beginNs <= middle && middle < step->range.endNs) m_step = static_cast<int>(i);
    }
}

bool FindingTour::hasStep(int direction) const {
    const FindingInfo* finding = current();
    const int wanted = m_step + direction;
    return finding && wanted >= 0 && wanted < std::ssize(finding->steps);
}

QString FindingTour::stepText() const {
    const FindingInfo* finding = current();
    if (!finding || finding->steps.empty()) return {};
    const QString all = QString("%1 step%2 show%3 it")
                            .arg(finding->steps.size())
                            .arg(finding->steps.size() == 1 ? "" : "s", finding->steps.size() == 1 ? "s" : "");
    return m_step < 0 ? all : QString("step %1; %2").arg(finding->steps[static_cast<size_t>(m_step)]).arg(all);
}

void FindingTour::goToStep(int direction) {
    if (!hasStep(direction)) return;
    const FindingInfo& finding = *current();
    const int32_t rank = finding.ranks.empty() ? -1 : finding.ranks.front();
    const StepInfo* to = stepOf(rank, finding.steps[static_cast<size_t>(m_step + direction)]);
    if (!to) return;
    const StepInfo* from = m_step >= 0 ? stepOf(rank, finding.steps[static_cast<size_t>(m_step)]) : nullptr;
    m_step += direction;
    const TimeRange visible = m_model.axis().visible();
    const int64_t apart = from ? to->range.beginNs - from->range.beginNs : 0;
    m_model.show(from ? TimeRange{visible.beginNs + apart, visible.endNs + apart} : stepsAround(to->range, to->rank));
    emit moved();
}

// The time that the finding names, where the event begins in it: of the rank that it is told of, whose steps need not
// begin where those of the event's rank do. Else the steps around the event.
TimeRange FindingTour::timeAround(const FindingInfo& finding, const TrackEvent& event, int32_t rank) const {
    const TimeRange itself{event.startNs, event.startNs + event.durNs};
    if (!finding.window || !finding.window->contains(event.startNs))
        return closeEnough(stepsAround(itself, rank), event);
    const TimeRange both{finding.window->beginNs, std::max(finding.window->endNs, itself.endNs)};
    return closeEnough(withMargin(both), event);
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
    return withMargin(around);
}

}  // namespace rankscope::gui
