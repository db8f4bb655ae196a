// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QDockWidget>
#include <QMainWindow>
#include <QMenu>

#include "gui/shell/run_session.h"
#include "gui/view/timeline_view.h"

namespace rankscope::gui {

/// Docks for the search and its table, and for the selected time, below the timeline and shown when wanted; for the selected event, below `findings`.
void addTableDocks(QMainWindow& window, TimelineView& timeline, TimelineModel& model, RunSession& session, QDockWidget& findings, QMenu& panels);

}  // namespace rankscope::gui
