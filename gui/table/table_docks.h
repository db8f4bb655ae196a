// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QDockWidget>
#include <QMainWindow>
#include <QMenu>
#include <functional>

#include "gui/run/run_session.h"
#include "gui/view/timeline_view.h"

namespace rankscope::gui {

/// What the docks of one run's tables need to know.
struct TableDockPlace {
    QMainWindow& window;
    QWidget& keys;   ///< Ctrl+F and F3 anywhere in it are this run's
    QString letter;  ///< of the run, where there are two (run_letter.h)
    QDockWidget& findings;
    QMenu& panels;
};

struct TableDocks {
    QDockWidget* details = nullptr;
    std::function<bool()> isBusy;  ///< a panel in sight waits for its numbers
};

/// Docks for the search and its table, and for the selected time, below the timeline and shown when wanted; for the
/// selected event, below `findings`.
TableDocks addTableDocks(const TableDockPlace& place, TimelineView& timeline, TimelineModel& model,
                         RunSession& session);

}  // namespace rankscope::gui
