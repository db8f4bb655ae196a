// SPDX-License-Identifier: Apache-2.0
#include "gui/view/timeline_model.h"

#include <algorithm>

#include "gui/session/asked_place.h"
#include "gui/session/event_names.h"
#include "gui/session/step_walk.h"
#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

constexpr size_t kHistory = 100;

}  // namespace

TimelineModel::TimelineModel(QObject* parent) : QObject(parent) {}

void TimelineModel::setRun(std::shared_ptr<const RunInfo> run, std::map<int32_t, ActivityBins> lines) {
    m_run = std::move(run);
    m_lanes.setOutline(m_run->outline, std::move(lines));
    m_axis.setWhole(m_run->whole);
    m_axis.fit();
    m_history.clear();
    m_selection = {};
    m_timeSelection.reset();
    m_evidence = {};
    m_hits.clear();
    m_related.clear();
    m_flows.clear();
    emit runChanged();
    emit lanesChanged();
    emit viewChanged();
}

void TimelineModel::addTracks(RankTracksPtr tracks) {
    TimeRange whole = m_axis.whole();
    for (const Lane& lane : tracks->lanes) {
        for (const Lane::Part& part : lane.parts) {
            if (part.track.empty()) continue;
            whole.beginNs = std::min(whole.beginNs, part.track.extent().beginNs);
            whole.endNs = std::max(whole.endNs, part.track.extent().endNs);
        }
    }
    m_lanes.setTracks(std::move(tracks));
    if (!(whole == m_axis.whole())) {
        m_axis.setWhole(whole);
        emit wholeChanged();
        emit viewChanged();
    }
    emit lanesChanged();
}

void TimelineModel::setTrouble(int32_t rank, std::string trouble) {
    changeLanes([&](LaneTree& lanes) { lanes.setTrouble(rank, displayText(trouble)); });
}

void TimelineModel::addProblem(const QString& problem) {
    m_problems << problem;
    emit problemsChanged();
}

void TimelineModel::setWidth(double pixels) {
    m_axis.setWidth(pixels);
    emit viewChanged();
}

void TimelineModel::zoomAt(double x, double factor) {
    m_axis.zoomAt(x, factor);
    emit viewChanged();
}

void TimelineModel::panBy(double pixels) {
    m_axis.panBy(pixels);
    emit viewChanged();
}

void TimelineModel::show(TimeRange range) {
    remember();
    m_axis.show(range);
    emit viewChanged();
}

void TimelineModel::place(TimeRange range) {
    m_axis.place(range);
    emit viewChanged();
}

void TimelineModel::setRoom(TimeRange room, TimeRange fitted) {
    m_axis.setRoom(room, fitted);
    emit viewChanged();
}

void TimelineModel::setAnchor(std::optional<TimeAnchor> anchor) {
    m_anchor = std::move(anchor);
    emit viewChanged();
}

void TimelineModel::move(TimeRange range) {
    m_axis.show(range);
    emit viewChanged();
}

void TimelineModel::fit() {
    show(m_axis.fitted());
}

void TimelineModel::back() {
    if (m_history.empty()) return;
    m_axis.show(m_history.back());
    m_history.pop_back();
    emit viewChanged();
}

void TimelineModel::goToStep(int by) {
    if (!m_run) return;
    if (const auto step = stepBeside(*m_run, rankOfSteps(), m_axis.visible(), by)) show(*step);
}

QString TimelineModel::goToPlace(const QString& text) {
    if (!m_run) return "no run is open yet";
    const auto [place, wrong] = parsePlace(text.toStdString(), *m_run, rankOfSteps(), m_axis.visible());
    if (wrong.empty()) show(place);
    return QString::fromStdString(wrong);
}

int32_t TimelineModel::rankOfSteps() const {
    return m_lanes.excerpts().empty() ? -1 : m_lanes.excerpts().front().rank;
}

void TimelineModel::zoomToSelection() {
    if (m_timeSelection) {
        show(*m_timeSelection);
    } else if (isValid(m_selection)) {
        const TrackEvent selected = event(m_selection);
        const int64_t margin = std::max<int64_t>(selected.durNs / 10, 5);
        show({selected.startNs - margin, selected.startNs + selected.durNs + margin});
    }
}

void TimelineModel::remember() {
    if (!m_history.empty() && m_history.back() == m_axis.visible()) return;
    if (m_history.size() == kHistory) m_history.erase(m_history.begin());
    m_history.push_back(m_axis.visible());
}

void TimelineModel::select(EventRef event) {
    m_selection = isValid(event) ? event : EventRef{};
    m_related.clear();
    m_flows.clear();
    emit selectionChanged();
}

void TimelineModel::goTo(EventRef wanted) {
    if (!isValid(wanted)) return;
    changeLanes([&](LaneTree& lanes) { lanes.expandRank(wanted.rank); });
    const TrackEvent found = event(wanted);
    remember();
    m_axis.reveal({found.startNs, found.startNs + std::max<int64_t>(1, found.durNs)});
    select(wanted);
    emit viewChanged();
}

bool TimelineModel::goToRow(EventTable table, int64_t rowId, int32_t rank) {
    const EventRef found = find(table, rowId, rank);
    if (!found.valid()) {
        if (m_lanes.tracks(rank) == nullptr) emit rankWanted(rank);
        return false;
    }
    goTo(found);
    return true;
}

EventRef TimelineModel::find(EventTable table, int64_t rowId, int32_t rank) const {
    const RankTracks* tracks = m_lanes.tracks(rank);
    if (!tracks) return {};
    for (uint32_t lane = 0; lane < tracks->lanes.size(); ++lane) {
        const auto& parts = tracks->lanes[lane].parts;
        for (uint32_t part = 0; part < parts.size(); ++part) {
            if (parts[part].table != table) continue;
            const size_t index = parts[part].track.findRow(rowId);
            if (index < parts[part].track.size()) return {rank, lane, part, static_cast<uint32_t>(index)};
        }
    }
    return {};
}

void TimelineModel::selectTime(std::optional<TimeRange> range) {
    m_timeSelection = range;
    emit timeSelectionChanged();
}

void TimelineModel::setEvidence(Evidence evidence) {
    m_evidence = std::move(evidence);
    emit marksChanged();
}

void TimelineModel::setHits(std::vector<EventRef> hits) {
    if (m_hits.empty() && hits.empty()) return;
    m_hits = std::move(hits);
    emit marksChanged();
}

void TimelineModel::setRelated(std::vector<EventRef> related, std::vector<FlowLine> flows) {
    m_related = std::move(related);
    m_flows = std::move(flows);
    emit marksChanged();
}

bool TimelineModel::isValid(EventRef event) const {
    const RankTracks* tracks = event.valid() ? m_lanes.tracks(event.rank) : nullptr;
    return tracks && event.lane < tracks->lanes.size() && event.part < tracks->lanes[event.lane].parts.size() &&
           event.index < tracks->lanes[event.lane].parts[event.part].track.size();
}

TrackEvent TimelineModel::event(EventRef event) const {
    return m_lanes.tracks(event.rank)->lanes[event.lane].parts[event.part].track.event(event.index);
}

int64_t TimelineModel::rowId(EventRef event) const {
    return m_lanes.tracks(event.rank)->lanes[event.lane].parts[event.part].track.rowId(event.index);
}

EventTable TimelineModel::table(EventRef event) const {
    return m_lanes.tracks(event.rank)->lanes[event.lane].parts[event.part].table;
}

QString TimelineModel::eventName(EventTable table, const TrackEvent& event) const {
    return m_run ? QString::fromStdString(displayText(gui::eventName(*m_run, table, event))) : QString();
}

QString TimelineModel::eventName(EventRef ref) const {
    return isValid(ref) ? eventName(table(ref), event(ref)) : QString();
}

QString TimelineModel::eventLabel(EventTable table, const TrackEvent& event) const {
    if (!m_run || table != EventTable::kernel || event.name >= m_run->shortNames.size()) return eventName(table, event);
    return QString::fromStdString(displayText(m_run->shortNames[event.name]));
}

QString TimelineModel::eventLabel(EventRef ref) const {
    return isValid(ref) ? eventLabel(table(ref), event(ref)) : QString();
}

QString TimelineModel::place(EventRef ref) const {
    if (!isValid(ref)) return {};
    return QString("rank %1, %2")
        .arg(ref.rank)
        .arg(QString::fromStdString(displayText(m_lanes.tracks(ref.rank)->lanes[ref.lane].label)));
}

}  // namespace rankscope::gui
