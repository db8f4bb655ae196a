// SPDX-License-Identifier: Apache-2.0
#include "gui/shell/main_window.h"

#include <QApplication>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QInputDialog>
#include <QMenuBar>
#include <QMessageBox>
#include <QScreen>
#include <QSplitter>
#include <QStatusBar>
#include <algorithm>
#include <utility>

#include "gui/compare/run_pairing.h"
#include "gui/shell/file_menu.h"
#include "gui/shell/help_window.h"
#include "gui/shell/ranks_menu.h"
#include "gui/shell/state_log.h"
#include "gui/shell/view_export.h"
#include "gui/timeline/display_text.h"
#include "gui/view/run_letter.h"
#include "gui/view/status_text.h"
#include "gui/view/window_colours.h"

namespace rankscope::gui {
namespace {

constexpr int kMsBetweenLooks = 20;
constexpr size_t kManyRanks = 128;                // three screens of lines of full height
constexpr std::chrono::seconds kLongestWait{10};  // for a locked file, where nobody can close the window

}  // namespace

MainWindow::MainWindow(const ViewRequest& request, QWidget* parent) : QMainWindow(parent), m_request(request) {
    setObjectName("rankscope");
    makePanes();
    resize(request.size());
    m_request.dark = request.dark || (!request.isHeadless() && keptDark());
    makeStatusBar();
    makeMenus();
    makeDocks();
    setDark(m_request.dark);
    m_firstLayout = saveState();
    if (!request.isHeadless()) {
        // A window that is larger than the screen would hide its docks.
        if (const QSize free = screen()->availableGeometry().size();
            !request.givenSize && size() != size().boundedTo(free)) {
            resize(size().boundedTo(free));
            setWindowState(Qt::WindowMaximized);
        }
        restoreLayout(*this, m_panes.size(), !request.givenSize);
        for (RunPane* pane : m_panes) m_kept.push_back(new KeptChoices(*pane));
    }
    if (!request.panel.empty()) openPanel(QString::fromStdString(request.panel));
    m_settling.setInterval(kMsBetweenLooks);
    connect(&m_settling, &QTimer::timeout, this, &MainWindow::lookIfSettled);
    for (size_t i = 0; i < m_panes.size(); ++i) {
        watch(*m_panes[i]);
        m_panes[i]->session().open(request.runs[i], request.isHeadless() ? std::optional(kLongestWait) : std::nullopt);
    }
    StateLog::attach(*this, *m_panes.front(), m_panes.size() > 1 ? m_panes[1] : nullptr);
    m_settling.start();
}

MainWindow::~MainWindow() = default;

void MainWindow::makePanes() {
    auto* middle = new QSplitter(Qt::Vertical, this);
    middle->setChildrenCollapsible(false);
    if (m_request.runs.size() == 1) m_panes.push_back(new RunPane({}, *this));
    for (size_t i = 0; m_panes.size() < m_request.runs.size(); ++i)
        m_panes.push_back(new RunPane(i == 0 ? "A" : "B", *this));
    for (RunPane* pane : m_panes) middle->addWidget(pane);
    setCentralWidget(middle);
}

void MainWindow::watch(RunPane& pane) {
    connect(&pane.session(), &RunSession::opened, this, [this, &pane] { showRun(pane); });
    connect(&pane.session(), &RunSession::failed, this, [this](const QString& message) {
        m_settling.stop();
        emit failed(message);
    });
    connect(&pane.session(), &RunSession::waiting, this, [this](const QString& message) {
        m_message->setText(message);
        emit waiting(message);
    });
    connect(&pane.session(), &RunSession::damaged, this, [this](const QString& message) {
        m_message->setText(message);
        emit damaged(message);
    });
    connect(&pane.session(), &RunSession::progressed, this, [this, &pane](double share) {
        m_loaded[&pane] = share;
        showProgress();
    });
    connect(&pane.session(), &RunSession::loaded, this, [this](bool cancelled) {
        showProgress();
        if (cancelled) m_message->setText("loading cancelled: no events are shown of ranks marked 'not loaded'");
    });
    connect(&pane, &RunPane::said, m_message, &QLabel::setText);
    connect(&pane.timeline(), &TimelineView::helpWanted, this, &MainWindow::showHelp);
    connect(&pane.timeline(), &TimelineView::placeWanted, this, [this, &pane] { askForPlace(pane.model()); });
}

void MainWindow::showProgress() {
    double sum = 0;
    for (const auto& [pane, share] : m_loaded) sum += share;
    m_progress->setValue(static_cast<int>(100 * sum / static_cast<double>(m_panes.size())));
    const bool loading =
        std::any_of(m_panes.begin(), m_panes.end(), [](RunPane* pane) { return pane->session().isLoading(); });
    m_progress->setVisible(loading);
    m_cancel->setVisible(loading);
}

void MainWindow::makeStatusBar() {
    m_message = new StatusText("opening", this);
    m_message->setObjectName("message");
    m_message->setTextFormat(Qt::PlainText);
    m_progress = new QProgressBar(this);
    m_progress->setRange(0, 100);
    m_progress->setMaximumWidth(180);
    m_cancel = new QToolButton(this);
    m_cancel->setText("Cancel");
    connect(m_cancel, &QToolButton::clicked, this, [this] {
        for (RunPane* pane : m_panes) pane->session().cancel();
    });
    statusBar()->addWidget(m_message, 1);
    statusBar()->addPermanentWidget(m_progress);
    statusBar()->addPermanentWidget(m_cancel);
}

void MainWindow::makeMenus() {
    TimelineModel& model = m_panes.front()->model();
    QMenu* file = menuBar()->addMenu("&File");
    QStringList runs;
    for (const std::string& run : m_request.runs) runs << QString::fromStdString(run);
    new FileMenu(*this, *file, runs);
    file->addSeparator();
    file->addAction("&Export the view \u2026", QKeySequence("Ctrl+E"), this, &MainWindow::exportView);
    file->addSeparator();
    file->addAction("&Quit", QKeySequence("Ctrl+Q"), this, &QWidget::close);
    QMenu* view = menuBar()->addMenu("&View");
    view->addAction("Fit the whole run\tF", this, [&model] { model.fit(); });
    view->addAction("Zoom to selection\tZ", this, [&model] { model.zoomToSelection(); });
    view->addAction("Next step\tN", this, [&model] { model.goToStep(1); });
    view->addAction("Previous step\tShift+N", this, [&model] { model.goToStep(-1); });
    view->addAction("Go to a time or step \u2026\tG", this, [this, &model] { askForPlace(model); });
    view->addAction("Back\tBackspace", this, [&model] { model.back(); });
    view->addSeparator();
    QAction* dark = view->addAction("Dark colours");
    dark->setCheckable(true);
    dark->setChecked(m_request.dark);
    connect(dark, &QAction::toggled, this, [this](bool on) {
        setDark(on);
        keepDark(on);
    });
    QAction* path = view->addAction("&Critical path");
    path->setCheckable(true);
    path->setChecked(true);
    path->setToolTip("The chain of work that the length of the steps is made of");
    connect(path, &QAction::toggled, this, [this](bool isShown) {
        for (RunPane* pane : m_panes) pane->timeline().showPath(isShown);
    });
    view->addSeparator();
    new RanksMenu(*view, m_panes);
    view->addSeparator();
    view->addAction("&Show all that is hidden", this, [this] {
        for (RunPane* pane : m_panes) pane->model().changeLanes([](LaneTree& lanes) { lanes.showAll(); });
    });
    view->addAction("For&get what was chosen for this run", this, &MainWindow::forgetChoices);
    view->addAction("&Put the panels back", this, &MainWindow::forgetPlaces);
    m_docksMenu = menuBar()->addMenu("&Panels");
    QMenu* help = menuBar()->addMenu("&Help");
    help->addAction("Keys and mouse\t?", this, &MainWindow::showHelp)->setShortcut(Qt::Key_F1);
}

void MainWindow::makeDocks() {
    setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);  // the findings keep their height
    for (RunPane* pane : m_panes) pane->addDocks(*m_docksMenu);
    if (m_panes.size() == 2) compare();
    // All docks below the timeline share one place, but what B did in the selected time stands beside what A did.
    auto* beside = m_panes.size() == 2 ? findChild<QDockWidget*>(objectNameFor(m_panes[1]->letter(), "range-dock"),
                                                                 Qt::FindDirectChildrenOnly)
                                       : nullptr;
    QDockWidget* below = nullptr;
    for (QDockWidget* dock : findChildren<QDockWidget*>(Qt::FindDirectChildrenOnly)) {
        if (dockWidgetArea(dock) != Qt::BottomDockWidgetArea || dock == beside) continue;
        if (below) tabifyDockWidget(below, dock);
        below = dock;
    }
    if (beside) {
        addDockWidget(Qt::BottomDockWidgetArea, beside, Qt::Horizontal);
        connect(beside, &QDockWidget::visibilityChanged, this, [this, beside, below](bool visible) {
            if (visible) resizeDocks({below, beside}, {1, 1}, Qt::Horizontal);
        });
    }
    resizeDocks({m_panes.front()->findingsDock()}, {m_panes.size() == 1 ? 380 : 450}, Qt::Horizontal);
}

void MainWindow::setDark(bool dark) {
    applyWindowColours(dark);
    for (RunPane* pane : m_panes) pane->setDark(dark);
}

void MainWindow::lookIfSettled() {
    if (std::any_of(m_panes.begin(), m_panes.end(), [](RunPane* pane) { return pane->isBusy(); }) ||
        (m_differences && m_differences->isWaiting())) {
        m_settled = false;
        return;
    }
    // What was shown last may still want other room for itself.
    if (!std::exchange(m_settled, true)) return;
    m_settling.stop();
    emit ready();
}

void MainWindow::compare() {
    RunPane &a = *m_panes[0], &b = *m_panes[1];
    auto* dock = new QDockWidget("Differences", this);
    dock->setObjectName("differences-dock");
    m_differences = new DifferencesPanel(a, b, dock);
    dock->setWidget(m_differences);
    m_docksMenu->insertAction(m_docksMenu->actions().value(0), dock->toggleViewAction());
    addDockWidget(Qt::RightDockWidgetArea, dock);
    tabifyDockWidget(a.findingsDock(), b.findingsDock());
    tabifyDockWidget(b.findingsDock(), dock);
    tabifyDockWidget(a.detailsDock(), b.detailsDock());
    dock->raise();
    a.detailsDock()->raise();
    for (RunPane* pane : m_panes)
        connect(&pane->model(), &TimelineModel::selectionChanged, pane, [pane] {
            if (pane->model().selection().valid()) pane->detailsDock()->raise();
        });
    connect(&a.timeline(), &TimelineView::labelWidthChanged, &b.timeline(), &TimelineView::setLabelWidth);
    connect(&b.timeline(), &TimelineView::labelWidthChanged, &a.timeline(), &TimelineView::setLabelWidth);
    connect(new RunPairing(a.model(), b.model(), this), &RunPairing::paired, m_differences, &DifferencesPanel::ask);
}

void MainWindow::showRun(RunPane& pane) {
    const RunInfo& run = *pane.model().run();
    const auto counted = [](size_t count, const char* what) {
        return QString("%1 %2%3").arg(count).arg(what).arg(count == 1 ? "" : "s");
    };
    m_message->setText(counted(run.outline.ranks.size(), "rank") + " on " + counted(run.outline.hosts.size(), "host"));
    if (run.outline.ranks.size() >= kManyRanks)
        pane.model().changeLanes([](LaneTree& lanes) { lanes.setCompact(true); });
    if (run.outline.ranks.size() <= 2) pane.model().changeLanes([](LaneTree& lanes) { lanes.setAllExpanded(true); });
    if (!m_request.panel.empty())
        openPanel(
            QString::fromStdString(m_request.panel));  // once more: the layout that was kept may have another in front
    const size_t index = static_cast<size_t>(std::find(m_panes.begin(), m_panes.end(), &pane) - m_panes.begin());
    const auto opened = [this] {
        if (++m_opened == m_panes.size()) goToRequested();
    };
    if (index < m_kept.size())
        keepRecentFile(QFileInfo(QString::fromStdString(m_request.runs[index])).absoluteFilePath());
    if (!m_kept.empty())
        pane.timeline().setLabelWidth(
            keptLabelWidth(pane.timeline().labelWidth()));  // now that the window has its size
    if (index < m_kept.size())
        m_kept[index]->restore(opened);
    else
        opened();
    QStringList names;
    for (RunPane* each : m_panes)
        if (each->model().run()) names << QString::fromStdString(displayText(each->model().run()->name));
    setWindowTitle(names.join(" and ") + " - Rankscope");
}

void MainWindow::goToRequested() {
    if (m_request.goTo.empty()) return;
    QStringList runs;
    for (RunPane* pane : m_panes) {
        if (pane->tour().goTo(m_request.goTo)) return;
        runs << QString::fromStdString(m_request.runs[static_cast<size_t>(runs.size())]);
    }
    emit failed(QString("%1: no finding %2 in it (rankscope analyze lists them)")
                    .arg(runs.join(", "), QString::fromStdString(m_request.goTo)));
}

QStringList MainWindow::panelNames() {
    return {"findings",   "details", "events",    "range",    "sql",      "stragglers",
            "step-times", "matrix",  "bandwidth", "roofline", "pipeline", "differences"};
}

void MainWindow::openPanel(const QString& name) {
    // Of two runs the first one's.
    for (const QString& dockName : {name + "-dock", name + "-dock-a"}) {
        auto* dock = findChild<QDockWidget*>(dockName, Qt::FindDirectChildrenOnly);
        if (!dock) continue;
        constexpr int kReadableHeight = 320;
        dock->show();
        dock->raise();
        if (dockWidgetArea(dock) == Qt::BottomDockWidgetArea)
            resizeDocks({dock}, {std::max(kReadableHeight, height() / 3)}, Qt::Vertical);
        // Statistics need a time.
        if (name == "range")
            connect(&m_panes.front()->session(), &RunSession::loaded, m_panes.front(), &RunPane::selectTimeInView,
                    Qt::UniqueConnection);
    }
}

void MainWindow::exportView() {
    const QString file = QFileDialog::getSaveFileName(
        this, "Export what the timeline shows", QString(),
        "Picture (*.png);;Picture that can be scaled (*.svg);;Table of the events in view (*.csv)");
    if (file.isEmpty()) return;
    const auto done = [this, file](const QString& wrong) {
        m_message->setText(wrong.isEmpty() ? file + " is written" : wrong);
        if (!wrong.isEmpty()) QMessageBox::warning(this, "Export", wrong);
    };
    if (!file.endsWith(".csv", Qt::CaseInsensitive)) return done(saveTimelines(*this, file));
    m_message->setText("writing " + file + " \u2026");
    m_exporting.start(
        [parts = eventsInView(m_panes), file](const std::atomic<bool>&) { return saveEvents(parts, file); }, done);
}

void MainWindow::forgetChoices() {
    for (KeptChoices* kept : m_kept) kept->forget();
}

void MainWindow::forgetPlaces() {
    forgetLayout(m_panes.size());
    forgetLabelWidth();
    for (RunPane* pane : m_panes) pane->timeline().setLabelWidth(TimelineView::kLabelWidth);
    restoreState(m_firstLayout);
}

void MainWindow::closeEvent(QCloseEvent* event) {
    if (!m_request.isHeadless()) keepLayout(*this, m_panes.size());
    if (!m_request.isHeadless() && m_panes.front()->model().run())
        keepLabelWidth(m_panes.front()->timeline().labelWidth());  // which showRun brought back
    for (KeptChoices* kept : m_kept) kept->finish();
    QMainWindow::closeEvent(event);
}

// What cannot be understood is asked for once more, with what is wrong with it.
void MainWindow::askForPlace(TimelineModel& model) {
    QString text, question = "Time since the recording began, or step, such as 2.27 s, 2.27 s to 2.72 s or step 5:";
    do {
        bool given = false;
        text = QInputDialog::getText(this, "Go to", question, QLineEdit::Normal, text, &given);
        if (!given) return;
        question = model.goToPlace(text);
        if (!question.isEmpty()) question[0] = question[0].toUpper();
    } while (!question.isEmpty());
}

void MainWindow::showHelp() {
    if (!m_help) m_help = new HelpWindow(this);
    m_help->show();
    m_help->raise();
}

}  // namespace rankscope::gui
