// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QStringList>

class QWidget;

namespace rankscope::gui {

/// Asks for a run and becomes `rankscope view` of it. Returns the exit status where there is nothing to become.
int chooseRun();

/// Asks for a run's file; empty when none was chosen.
QString askForRun(QWidget* parent, const QString& title);

/// Shows runs, one or two, in a window of their own: `rankscope view`, which analyses a run whose findings are missing.
/// Where it fails a box over `parent` says why.
void openInOwnWindow(QWidget* parent, const QStringList& runs);

}  // namespace rankscope::gui
