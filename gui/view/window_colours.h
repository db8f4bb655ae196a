// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rankscope::gui {

/// Colours of everything that is not drawn by ourselves: menus, tables, texts. Light ones are those the desktop chose
/// when the program began.
void applyWindowColours(bool dark);

}  // namespace rankscope::gui
