// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QDockWidget>
#include <QMainWindow>
#include <QMenu>
#include <functional>
#include <memory>
#include <vector>

#include "gui/charts/chart_view.h"
#include "gui/charts/series/step_charts.h"
#include "gui/run/run_session.h"

namespace rankscope::gui {

/// The charts, as docks below the timeline that share one place as tabs. Hidden until asked for; a chart's numbers are
/// computed on the query thread when it is first seen. GUI thread only.
class ChartDocks : public QObject {
    Q_OBJECT

  public:
    /// Adds its docks to the window and their switches to the menu. `letter`: of the run, where the window shows two
    /// (run_letter.h).
    ChartDocks(QMainWindow& window, QMenu& menu, RunSession& session, TimelineModel& model, QString letter = {});

    void setDark(bool dark);
    /// Charts that still wait for their numbers.
    int pending() const noexcept { return m_pending + (m_following.isActive() ? 1 : 0); }

  signals:
    /// The timeline has gone where a chart pointed.
    void jumped();
    void chartReady();

  private:
    struct Chart {
        std::vector<ChartView*> views;
        std::function<void()> load;  // asks for the numbers
        bool asked = false;
    };

    /// Returns its index.
    size_t add(const char* name, const char* title, QWidget* content, std::vector<ChartView*> views,
               std::function<void()> load);
    void addMatrix();
    void addBandwidth();
    void addRoofline();
    void addStragglers();
    void addHistogram();
    void addPipeline();
    /// Asks off the GUI thread; `show` gets the answer, the view the reason when there is none.
    template <typename Ask, typename Show>
    void ask(ChartView* view, Ask question, Show show);
    void loadIfSeen(size_t chart);
    void goTo(const ChartTarget& target);
    // The rank that is looked at and its step in the middle of the view; -1 where there is none.
    std::pair<int32_t, int32_t> placeInView() const;

    QMainWindow& m_window;
    QMenu& m_menu;
    RunSession& m_session;
    TimelineModel& m_model;
    QString m_letter;
    std::vector<QDockWidget*> m_docks;
    std::vector<Chart> m_charts;
    bool m_open = false;
    int m_pending = 0;
    QTimer m_following;  // a chart follows the view once it rests
};

}  // namespace rankscope::gui
