// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rankscope::gui {

/// For who starts the window without naming a run: asks for one, and starts anew with it. Returns, with an exit code,
/// only when none was chosen or the command line tool is not where it belongs.
int chooseRun();

}  // namespace rankscope::gui
