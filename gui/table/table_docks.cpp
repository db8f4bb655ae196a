// SPDX-License-Identifier: Apache-2.0
#include "gui/table/table_docks.h"

#include <QShortcut>

#include "gui/table/details_panel.h"
#include "gui/table/range_panel.h"
#include "gui/table/search_panel.h"

namespace rankscope::gui {
namespace {

constexpr int kBottomHeight = 230;

QDockWidget* makeDock(QMainWindow& window, const char* title, const char* name, QWidget* panel, QMenu& panels) {
    auto* dock = new QDockWidget(title, &window);
    dock->setObjectName(name);
    dock->setWidget(panel);
    panel->setParent(dock);
    panels.addAction(dock->toggleViewAction());
    return dock;
}

void bring(QDockWidget* dock) {
    dock->show();
    dock->raise();
}

}  // namespace

void addTableDocks(QMainWindow& window, TimelineView& timeline, TimelineModel& model, RunSession& session, QDockWidget& findings, QMenu& panels) {
    auto* search = new SearchPanel(model);
    auto* event = new DetailsPanel(model, session);
    auto* time = new RangePanel(model, session);
    QDockWidget* details = makeDock(window, "Selected event", "details-dock", event, panels);
    QDockWidget* events = makeDock(window, "Events", "events-dock", search, panels);
    QDockWidget* range = makeDock(window, "Selected time", "range-dock", time, panels);
    window.addDockWidget(Qt::RightDockWidgetArea, details);
    window.splitDockWidget(&findings, details, Qt::Vertical);
    window.addDockWidget(Qt::BottomDockWidgetArea, events);
    window.tabifyDockWidget(events, range);
    window.resizeDocks({events}, {kBottomHeight}, Qt::Vertical);
    events->hide();
    range->hide();

    const auto find = [events, search] {
        bring(events);
        search->focusBox();
    };
    QObject::connect(&timeline, &TimelineView::searchWanted, search, find);
    QObject::connect(search, &SearchPanel::jumped, &timeline, &TimelineView::scrollToSelection);
    QObject::connect(event, &DetailsPanel::jumped, &timeline, &TimelineView::scrollToSelection);
    QObject::connect(time, &RangePanel::jumped, &timeline, &TimelineView::scrollToSelection);
    QObject::connect(search, &SearchPanel::left, &timeline, [&timeline] { timeline.setFocus(); });
    QObject::connect(&model, &TimelineModel::timeSelectionChanged, range, [range, &model, was = false]() mutable {
        if (!std::exchange(was, model.timeSelection().has_value()) && was) bring(range);
    });
    QObject::connect(new QShortcut(QKeySequence::Find, &window), &QShortcut::activated, search, find);
    QObject::connect(new QShortcut(Qt::Key_F3, &window), &QShortcut::activated, search, [search] { search->step(1); });
    QObject::connect(new QShortcut(Qt::SHIFT | Qt::Key_F3, &window), &QShortcut::activated, search, [search] { search->step(-1); });
}

}  // namespace rankscope::gui
