// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>
#include <QMainWindow>
#include <QProgressBar>
#include <QTimer>
#include <QToolButton>
#include <map>

#include "gui/compare/differences_panel.h"
#include "gui/shell/command_line.h"
#include "gui/shell/run_pane.h"

namespace rankscope::gui {

/// The window: the timeline of a run in the middle, or of two below each other; everything else in docks around.
class MainWindow : public QMainWindow {
    Q_OBJECT

public:
    explicit MainWindow(const ViewRequest& request, QWidget* parent = nullptr);
    ~MainWindow() override;

    RunPane& pane(size_t index = 0) { return *m_panes[index]; }
    size_t panes() const noexcept { return m_panes.size(); }

signals:
    /// The runs are loaded, what was asked for on the command line is in view, and no panel waits for its numbers.
    void ready();
    void failed(QString message);

private:
    void makePanes();
    void makeStatusBar();
    void makeMenus();
    void makeDocks();
    void watch(RunPane& pane);
    void setDark(bool dark);
    void showRun(RunPane& pane);
    void compare();
    void goToRequested();
    void showProgress();
    void lookIfSettled();
    void showHelp();

    ViewRequest m_request;
    std::vector<RunPane*> m_panes;
    QMenu* m_docksMenu = nullptr;
    QLabel* m_message = nullptr;
    QProgressBar* m_progress = nullptr;
    QToolButton* m_cancel = nullptr;
    DifferencesPanel* m_differences = nullptr;
    size_t m_opened = 0;
    QTimer m_settling;   // until ready()
    std::map<const RunPane*, double> m_loaded;   // share, 0..1
};

}  // namespace rankscope::gui
