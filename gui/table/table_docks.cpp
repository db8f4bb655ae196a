// SPDX-License-Identifier: Apache-2.0
#include "gui/table/table_docks.h"

#include <QShortcut>

#include "gui/table/details_panel.h"
#include "gui/table/range_panel.h"
#include "gui/table/search_panel.h"
#include "gui/table/sql_panel.h"
#include "gui/view/run_letter.h"

namespace rankscope::gui {
namespace {

constexpr int kBottomHeight = 230;

QDockWidget* makeDock(const TableDockPlace& place, const char* title, const char* name, QWidget* panel) {
    auto* dock = new QDockWidget(titleFor(place.letter, title), &place.window);
    dock->setObjectName(objectNameFor(place.letter, name));
    dock->setWidget(panel);
    panel->setParent(dock);
    place.panels.addAction(dock->toggleViewAction());
    return dock;
}

void bring(QDockWidget* dock) {
    dock->show();
    dock->raise();
}

}  // namespace

TableDocks addTableDocks(const TableDockPlace& place, TimelineView& timeline, TimelineModel& model,
                         RunSession& session) {
    auto* search = new SearchPanel(model);
    auto* event = new DetailsPanel(model, session);
    auto* time = new RangePanel(model, session,
                                place.letter.isEmpty() ? RangePanel::Layout::beside : RangePanel::Layout::oneList);
    QDockWidget* details = makeDock(place, "Selected event", "details-dock", event);
    QDockWidget* events = makeDock(place, "Events", "events-dock", search);
    QDockWidget* range = makeDock(place, "Selected time", "range-dock", time);
    place.window.addDockWidget(Qt::RightDockWidgetArea, details);
    place.window.splitDockWidget(&place.findings, details, Qt::Vertical);
    place.window.addDockWidget(Qt::BottomDockWidgetArea, events);
    place.window.tabifyDockWidget(events, range);
    QDockWidget* sql = makeDock(place, "SQL", "sql-dock", new SqlPanel(model));
    place.window.addDockWidget(Qt::BottomDockWidgetArea, sql);
    place.window.tabifyDockWidget(range, sql);
    sql->hide();
    place.window.resizeDocks({events}, {kBottomHeight}, Qt::Vertical);
    events->hide();
    range->hide();

    const auto find = [events, search] {
        bring(events);
        search->focusBox();
    };
    QObject::connect(&timeline, &TimelineView::searchWanted, search, find);
    QObject::connect(&timeline, &TimelineView::nameWanted, search, [find, search](const QString& name) {
        search->setName(name);
        find();
    });
    QObject::connect(search, &SearchPanel::jumped, &timeline, &TimelineView::scrollToSelection);
    QObject::connect(event, &DetailsPanel::jumped, &timeline, &TimelineView::scrollToSelection);
    QObject::connect(time, &RangePanel::jumped, &timeline, &TimelineView::scrollToSelection);
    QObject::connect(search, &SearchPanel::left, &timeline, [&timeline] { timeline.setFocus(); });
    QObject::connect(&model, &TimelineModel::timeSelectionChanged, range, [range, &model, was = false]() mutable {
        if (!std::exchange(was, model.timeSelection().has_value()) && was) bring(range);
    });
    const auto shortcut = [](QWidget* where, const QKeySequence& keys) {
        return new QShortcut(keys, where, nullptr, nullptr, Qt::WidgetWithChildrenShortcut);
    };
    // The search's own dock is no part of a pane; where the keys are the whole window's it is, and a second shortcut
    // would make them ambiguous.
    QList<QWidget*> places{&place.keys};
    if (!place.keys.isAncestorOf(search)) places.append(search);
    for (QWidget* where : places) {
        QObject::connect(shortcut(where, QKeySequence::Find), &QShortcut::activated, search, find);
        QObject::connect(shortcut(where, Qt::Key_F3), &QShortcut::activated, search, [search] { search->step(1); });
        QObject::connect(shortcut(where, Qt::SHIFT | Qt::Key_F3), &QShortcut::activated, search,
                         [search] { search->step(-1); });
    }
    return {details, [search, time] {
                return (search->isVisible() && !search->isSettled()) || (time->isVisible() && !time->isSettled());
            }};
}

}  // namespace rankscope::gui
