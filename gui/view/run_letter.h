// SPDX-License-Identifier: Apache-2.0
// How the docks of a window are called where it shows two runs: each run has a letter, and its docks carry it.
#pragma once

#include <QString>

namespace rankscope::gui {

/// "Findings", or "Findings of B".
inline QString titleFor(const QString& letter, const char* title) {
    return letter.isEmpty() ? QString(title) : QString("%1 of %2").arg(title, letter);
}

/// "findings-dock", or "findings-dock-b": unique in the window, so that its layout can be kept.
inline QString objectNameFor(const QString& letter, const char* name) {
    return letter.isEmpty() ? QString(name) : QString("%1-%2").arg(name, letter.toLower());
}

}  // namespace rankscope::gui
