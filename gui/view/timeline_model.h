// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "gui/session/run_info.h"
#include "gui/timeline/lane_tree.h"
#include "gui/timeline/time_axis.h"

namespace rankscope::gui {

/// From one event to another: launch to kernel, member to member of a collective.
struct FlowLine {
    EventRef from, to;
};

/// A stretch of a rank's time.
struct MarkedTime {
    int32_t rank = -1;
    TimeRange time;
};

/// What of the picture proves a finding.
struct Evidence {
    std::vector<EventRef> events;
    std::vector<MarkedTime> times;     ///< idle time
    std::vector<QString> notes;        ///< what they show: of the events, then of the times; safe to show
    std::set<int32_t> toFix, waiting;  ///< ranks where the fix goes, and those that wait for them
};

/// A time with a name: "step 5".
struct TimeAnchor {
    int64_t ns = 0;
    QString label;

    bool operator==(const TimeAnchor&) const = default;
};

/// What all widgets of a window share: the run, what of it is in view, and what is selected. GUI thread only. Widgets
/// change it through its functions and redraw on its signals; none knows another.
class TimelineModel : public QObject {
    Q_OBJECT

  public:
    explicit TimelineModel(QObject* parent = nullptr);

    /// `lines`: LaneTree::setOutline
    void setRun(std::shared_ptr<const RunInfo> run, std::map<int32_t, ActivityBins> lines = {});
    void addTracks(RankTracksPtr tracks);
    /// LaneTree::setTrouble
    void setTrouble(int32_t rank, std::string trouble);
    /// What of the run cannot be read or held; safe to show.
    const QStringList& problems() const noexcept { return m_problems; }
    void addProblem(const QString& problem);
    const RunInfo* run() const noexcept { return m_run.get(); }
    std::shared_ptr<const RunInfo> sharedRun() const noexcept { return m_run; }

    const LaneTree& lanes() const noexcept { return m_lanes; }
    /// Changes the lanes and tells everybody.
    template <typename Change>
    void changeLanes(Change&& change) {
        change(m_lanes);
        emit lanesChanged();
    }

    const TimeAxis& axis() const noexcept { return m_axis; }
    void setWidth(double pixels);
    void zoomAt(double x, double factor);
    void panBy(double pixels);
    void show(TimeRange range);                      ///< remembered: back() undoes it
    void move(TimeRange range);                      ///< part of a gesture: not remembered
    void place(TimeRange range);                     ///< TimeAxis::place
    void setRoom(TimeRange room, TimeRange fitted);  ///< TimeAxis::setRoom
    /// Where this run and the one beside it are laid over each other.
    const std::optional<TimeAnchor>& anchor() const noexcept { return m_anchor; }
    void setAnchor(std::optional<TimeAnchor> anchor);
    void fit();
    void back();
    void remember();  ///< back() will return to what is visible now
    /// The next step, or with -1 the one before: of the rank that a finding is about, else of the first.
    void goToStep(int by);
    /// Shows what parsePlace understands; else returns what is wrong with it, safe to show.
    QString goToPlace(const QString& text);
    void zoomToSelection();  ///< the time selection, else the selected event

    EventRef selection() const noexcept { return m_selection; }
    void select(EventRef event);
    /// Selects the event, opens its rank, and brings its time into view.
    void goTo(EventRef event);
    /// As above, by its row; false while its rank is not loaded, or when it is not on any lane.
    bool goToRow(EventTable table, int64_t rowId, int32_t rank);
    EventRef find(EventTable table, int64_t rowId, int32_t rank) const;

    std::optional<TimeRange> timeSelection() const noexcept { return m_timeSelection; }
    void selectTime(std::optional<TimeRange> range);

    const Evidence& evidence() const noexcept { return m_evidence; }
    const std::vector<EventRef>& marks() const noexcept { return m_evidence.events; }
    const std::vector<MarkedTime>& markedTimes() const noexcept { return m_evidence.times; }
    const std::vector<EventRef>& hits() const noexcept { return m_hits; }  ///< what the search has found
    const std::vector<EventRef>& related() const noexcept {
        return m_related;
    }  ///< the other members of a selected collective
    const std::vector<FlowLine>& flows() const noexcept { return m_flows; }
    void setEvidence(Evidence evidence);
    void setHits(std::vector<EventRef> hits);
    void setRelated(std::vector<EventRef> related, std::vector<FlowLine> flows);

    bool isValid(EventRef event) const;
    TrackEvent event(EventRef event) const;
    int64_t rowId(EventRef event) const;
    EventTable table(EventRef event) const;
    /// What to call an event of a lane part; safe to show.
    QString eventName(EventTable table, const TrackEvent& event) const;
    QString eventName(EventRef event) const;
    /// As above, for where there is little room: a kernel's name without namespaces and the like.
    QString eventLabel(EventTable table, const TrackEvent& event) const;
    QString eventLabel(EventRef event) const;
    /// "rank 3, stream 7 compute".
    QString place(EventRef event) const;

  signals:
    void runChanged();
    void lanesChanged();
    void viewChanged();
    /// Events were found before or after what was taken for the run's length.
    void wholeChanged();
    void selectionChanged();
    void timeSelectionChanged();
    void marksChanged();
    void problemsChanged();
    /// A rank that is not loaded yet is to be looked at.
    void rankWanted(int rank);

  private:
    int32_t rankOfSteps() const;

    std::shared_ptr<const RunInfo> m_run;
    LaneTree m_lanes;
    QStringList m_problems;
    TimeAxis m_axis;
    std::vector<TimeRange> m_history;
    EventRef m_selection;
    std::optional<TimeRange> m_timeSelection;
    Evidence m_evidence;
    std::vector<EventRef> m_hits, m_related;
    std::vector<FlowLine> m_flows;
    std::optional<TimeAnchor> m_anchor;
};

}  // namespace rankscope::gui
