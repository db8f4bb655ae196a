// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>
#include <optional>

#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// Brings a finding's evidence into view: the rank to fix and one that suffers side by side above the others, its
/// events marked, one of them selected, one step around them on the axis.
class FindingTour : public QObject {
    Q_OBJECT

  public:
    explicit FindingTour(TimelineModel& model, QObject* parent = nullptr);

    /// False when the run has no such finding. What is not loaded yet is gone to as soon as it is.
    bool goTo(const std::string& diagnosis);
    bool goTo(const FindingInfo& finding);
    /// Selects what an entry of the current finding's evidence names, or brings its time into view; false where nothing
    /// of it is drawn. While the finding's ranks are being loaded it is gone to as soon as they are there.
    bool goToEvidence(size_t entry);
    /// Shows the next step that has the finding, or with -1 the one before, at the same scale.
    void goToStep(int direction);
    bool hasStep(int direction) const;
    /// "step 4 of 12 that show it"; empty where nobody knows which do.
    QString stepText() const;
    /// Nothing more will be loaded: goes to what there is.
    void loadingEnded();
    /// Takes the marks away.
    void leave();
    /// The finding gone to last, or nullptr.
    const FindingInfo* current() const;

  signals:
    void arrived();
    void left();
    /// Another step, or another entry of the evidence, is in view.
    void moved();

  private:
    bool isLoaded(const FindingInfo& finding) const;
    void arrive();
    void show(const FindingInfo& finding);
    Evidence evidenceOnScreen(const FindingInfo& finding) const;
    enum class Among { all, loaded };
    std::vector<int32_t> ranksToCompare(const FindingInfo& finding, Among among) const;
    std::set<int32_t> ranksToFix(const FindingInfo& finding) const;
    const StepInfo* stepOf(int32_t rank, int32_t step) const;
    void noteStepInView(const FindingInfo& finding);
    RankExcerpt excerptOf(int32_t rank, const Evidence& evidence, TimeRange time) const;
    TimeRange stepsAround(TimeRange range, int32_t rank) const;
    TimeRange timeAround(const FindingInfo& finding, const TrackEvent& event, int32_t rank) const;

    TimelineModel& m_model;
    int64_t m_current = -1;               // id of the finding
    int m_step = -1;                      // index in its steps of the one in view; -1: none of them is
    bool m_arrived = true;                // false while its rank is not loaded
    std::optional<size_t> m_wantedEntry;  // of its evidence, to be gone to on arrival
};

}  // namespace rankscope::gui
