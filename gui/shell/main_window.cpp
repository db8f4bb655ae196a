// SPDX-License-Identifier: Apache-2.0
#include "gui/shell/main_window.h"

#include <QApplication>
#include <QDockWidget>
#include <QMenuBar>
#include <QMessageBox>
#include <QStatusBar>
#include <QVBoxLayout>

#include "gui/charts/chart_docks.h"
#include "gui/findings/findings_panel.h"
#include "gui/shell/state_log.h"
#include "gui/table/table_docks.h"
#include "gui/timeline/display_text.h"
#include "gui/view/head_bar.h"

namespace rankscope::gui {

MainWindow::MainWindow(const ViewRequest& request, QWidget* parent)
    : QMainWindow(parent), m_request(request), m_session(m_model), m_tour(m_model), m_links(m_model, m_session), m_timeline(new TimelineView(m_model, this)) {
    setObjectName("rankscope");
    auto* middle = new QWidget(this);
    auto* layout = new QVBoxLayout(middle);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(new HeadBar(m_model, middle));
    layout->addWidget(m_timeline, 1);
    setCentralWidget(middle);
    resize(request.size);
    m_timeline->setDark(request.dark);
    makeStatusBar();
    makeMenus();
    makeDocks();
    connect(&m_session, &RunSession::opened, this, &MainWindow::showRun);
    connect(&m_session, &RunSession::failed, this, &MainWindow::failed);
    connect(&m_session, &RunSession::damaged, this, [this](const QString& message) { m_message->setText("damaged: " + message); });
    connect(&m_session, &RunSession::progressed, this, [this](double share) { m_progress->setValue(static_cast<int>(share * 100)); });
    connect(&m_session, &RunSession::loaded, this, [this](bool cancelled) {
        m_progress->hide();
        m_cancel->hide();
        if (cancelled) m_message->setText("loading cancelled: ranks marked 'loading' are not shown");
        m_tour.loadingEnded();
        emit ready();
    });
    connect(&m_model, &TimelineModel::rankWanted, this, [this](int rank) { m_session.prefer({rank}); });
    connect(&m_tour, &FindingTour::arrived, m_timeline, &TimelineView::scrollToSelection);
    connect(m_timeline, &TimelineView::flowWanted, this, [this](int direction) {
        m_links.follow(direction);
        m_timeline->scrollToSelection();
    });
    connect(&m_links, &LinkFollower::described, this, [this](const QString& sentence) { m_message->setText(m_message->text() + "  \u00b7  " + sentence); });
    connect(m_timeline, &TimelineView::helpWanted, this, &MainWindow::showHelp);
    connect(&m_model, &TimelineModel::selectionChanged, this, [this] {
        const EventRef selected = m_model.selection();
        if (!selected.valid()) return;
        const TrackEvent event = m_model.event(selected);
        m_message->setText(QString("%1, %2, %3").arg(m_model.eventName(selected), QString::fromStdString(durationText(event.durNs)), m_model.place(selected)));
    });
    StateLog::attach(*this, *m_timeline, m_model, m_session);
    m_session.open(request.runs.front());
}

MainWindow::~MainWindow() = default;

void MainWindow::makeStatusBar() {
    m_message = new QLabel("opening", this);
    m_message->setObjectName("message");
    m_message->setTextFormat(Qt::PlainText);
    m_progress = new QProgressBar(this);
    m_progress->setRange(0, 100);
    m_progress->setMaximumWidth(180);
    m_cancel = new QToolButton(this);
    m_cancel->setText("Cancel");
    connect(m_cancel, &QToolButton::clicked, this, [this] { m_session.cancel(); });
    statusBar()->addWidget(m_message, 1);
    statusBar()->addPermanentWidget(m_progress);
    statusBar()->addPermanentWidget(m_cancel);
}

void MainWindow::makeMenus() {
    QMenu* view = menuBar()->addMenu("&View");
    view->addAction("Fit the whole run\tF", this, [this] { m_model.fit(); });
    view->addAction("Zoom to selection\tZ", this, [this] { m_model.zoomToSelection(); });
    view->addAction("Back\tBackspace", this, [this] { m_model.back(); });
    view->addSeparator();
    QAction* dark = view->addAction("Dark colours");
    dark->setCheckable(true);
    dark->setChecked(m_request.dark);
    connect(dark, &QAction::toggled, m_timeline, &TimelineView::setDark);
    m_docksMenu = menuBar()->addMenu("&Panels");
    QMenu* help = menuBar()->addMenu("&Help");
    help->addAction("Keys and mouse\t?", this, &MainWindow::showHelp);
}

void MainWindow::makeDocks() {
    auto* findings = new QDockWidget("Findings", this);
    findings->setObjectName("findings-dock");
    findings->setWidget(new FindingsPanel(m_model, m_tour, findings));
    addDockWidget(Qt::RightDockWidgetArea, findings);
    m_docksMenu->addAction(findings->toggleViewAction());
    setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);  // the findings keep their height
    addTableDocks(*this, *m_timeline, m_model, m_session, *findings, *m_docksMenu);
    auto* charts = new ChartDocks(*this, *m_docksMenu, m_session, m_model);
    charts->setDark(m_request.dark);
    connect(m_timeline, &TimelineView::paletteChanged, charts, [this, charts] { charts->setDark(&m_timeline->palette_() == &Palette::dark()); });
    connect(charts, &ChartDocks::jumped, m_timeline, &TimelineView::scrollToSelection);
    QDockWidget* below = nullptr;  // all docks below the timeline share one place
    for (QDockWidget* dock : findChildren<QDockWidget*>(Qt::FindDirectChildrenOnly)) {
        if (dockWidgetArea(dock) != Qt::BottomDockWidgetArea) continue;
        if (below) tabifyDockWidget(below, dock);
        below = dock;
    }
    resizeDocks({findings}, {380}, Qt::Horizontal);
}

void MainWindow::goToRequested() {
    if (m_request.goTo.empty()) return;
    if (!m_tour.goTo(m_request.goTo)) emit failed(QString("%1: no finding %2 in it (rankscope analyze lists them)").arg(QString::fromStdString(m_request.runs.front()), QString::fromStdString(m_request.goTo)));
}

void MainWindow::showRun() {
    const RunInfo& run = *m_model.run();
    setWindowTitle(QString("%1 - Rankscope").arg(QString::fromStdString(displayText(run.name))));
    m_message->setText(QString("%1 ranks on %2 hosts").arg(run.outline.ranks.size()).arg(run.outline.hosts.size()));
    if (run.outline.ranks.size() <= 2) m_model.changeLanes([](LaneTree& lanes) { lanes.setAllExpanded(true); });
    goToRequested();
}

void MainWindow::showHelp() {
    QMessageBox::information(this, "Keys and mouse",
                             "W S  zoom in, out\nA D  move left, right\nCtrl + wheel  zoom at the pointer\nwheel  scroll the lanes; with Shift sideways\ndrag  select time\n"
                             "Shift + drag  move\nclick  select an event; on a label: expand or collapse\ndouble click  zoom to the event\ndrag a rank's label  reorder\n\n"
                             "F  fit the whole run\nZ  zoom to the selection\nBackspace  back to the view before\n/  search; F3, Shift + F3  next, previous\n[ ]  follow the flow back, forth\nP  pin the rank\n"
                             "Esc  clear the selection\n?  this help");
}

}  // namespace rankscope::gui
