// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>
#include <QMainWindow>
#include <QProgressBar>
#include <QToolButton>

#include "gui/findings/finding_tour.h"
#include "gui/shell/command_line.h"
#include "gui/shell/link_follower.h"
#include "gui/shell/run_session.h"
#include "gui/view/timeline_view.h"

namespace rankscope::gui {

/// The window of one run: the timeline in the middle, everything else in docks around it.
class MainWindow : public QMainWindow {
    Q_OBJECT

public:
    explicit MainWindow(const ViewRequest& request, QWidget* parent = nullptr);
    ~MainWindow() override;

    TimelineModel& model() { return m_model; }
    TimelineView& timeline() { return *m_timeline; }
    RunSession& session() { return m_session; }
    FindingTour& tour() { return m_tour; }

signals:
    /// The run is loaded and what was asked for on the command line is in view.
    void ready();
    void failed(QString message);

private:
    void makeStatusBar();
    void makeMenus();
    void makeDocks();
    void goToRequested();
    void showRun();
    void showHelp();

    ViewRequest m_request;
    TimelineModel m_model;
    RunSession m_session;
    FindingTour m_tour;
    LinkFollower m_links;
    TimelineView* m_timeline;
    QMenu* m_docksMenu = nullptr;
    QLabel* m_message = nullptr;
    QProgressBar* m_progress = nullptr;
    QToolButton* m_cancel = nullptr;
};

}  // namespace rankscope::gui
