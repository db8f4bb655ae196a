// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>

#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// Brings a finding's evidence into view: its rank opened, its events marked, one of them selected, one step around
/// them on the axis.
class FindingTour : public QObject {
    Q_OBJECT

  public:
    explicit FindingTour(TimelineModel& model, QObject* parent = nullptr);

    /// False when the run has no such finding. What is not loaded yet is gone to as soon as it is.
    bool goTo(const std::string& diagnosis);
    bool goTo(const FindingInfo& finding);
    /// Nothing more will be loaded: goes to what there is.
    void loadingEnded();
    /// Takes the marks away.
    void leave();
    /// The finding gone to last, or nullptr.
    const FindingInfo* current() const;

  signals:
    void arrived();
    void left();

  private:
    bool isLoaded(const FindingInfo& finding) const;
    void arrive();
    void show(const FindingInfo& finding);
    Evidence evidenceOnScreen(const FindingInfo& finding) const;
    TimeRange stepsAround(TimeRange range, int32_t rank) const;

    TimelineModel& m_model;
    int64_t m_current = -1;  // id of the finding
    bool m_arrived = true;   // false while its rank is not loaded
};

}  // namespace rankscope::gui
