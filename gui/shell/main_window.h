// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>
#include <QMainWindow>
#include <QProgressBar>
#include <QTimer>
#include <QToolButton>
#include <map>

#include "gui/compare/differences_panel.h"
#include "gui/pane/run_pane.h"
#include "gui/shell/command_line.h"
#include "gui/shell/kept_choices.h"
#include "gui/table/latest_task.h"

namespace rankscope::gui {

/// The window: the timeline of a run in the middle, or of two below each other; everything else in docks around.
class MainWindow : public QMainWindow {
    Q_OBJECT

  public:
    explicit MainWindow(const ViewRequest& request, QWidget* parent = nullptr);
    ~MainWindow() override;

    const std::vector<RunPane*>& panes() const noexcept { return m_panes; }
    /// What --panel takes.
    static QStringList panelNames();

  signals:
    /// The runs are loaded, what was asked for on the command line is in view, and no panel waits for its numbers.
    void ready();
    void failed(QString message);
    /// Another program holds a file.
    void waiting(QString message);
    /// Something of a run cannot be read or held; the window shows the rest.
    void damaged(QString message);

  protected:
    void closeEvent(QCloseEvent* event) override;

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
    void openPanel(const QString& name);
    void exportView();
    void forgetChoices();
    void forgetPlaces();
    void showProgress();
    void lookIfSettled();
    void showHelp();
    void askForPlace(TimelineModel& model);

    ViewRequest m_request;
    std::vector<RunPane*> m_panes;
    QMenu* m_docksMenu = nullptr;
    QLabel* m_message = nullptr;
    QProgressBar* m_progress = nullptr;
    QToolButton* m_cancel = nullptr;
    DifferencesPanel* m_differences = nullptr;
    QWidget* m_help = nullptr;         // from the first time that it is asked for
    std::vector<KeptChoices*> m_kept;  // of each pane; none where nothing is shown
    QByteArray m_firstLayout;
    LatestTask m_exporting;
    size_t m_opened = 0;
    QTimer m_settling;                          // until ready()
    bool m_settled = false;                     // at the last look
    std::map<const RunPane*, double> m_loaded;  // share, 0..1
};

}  // namespace rankscope::gui
