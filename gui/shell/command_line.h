// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QSize>
#include <optional>
#include <string>
#include <vector>

namespace rankscope::gui {

/// What `rankscope view` passes on.
struct ViewRequest {
    std::vector<std::string> runs;   ///< one, or two to compare
    std::string goTo;                ///< diagnosis to go to, "RS301"
    std::string screenshot;          ///< picture of the window to write instead of showing it
    std::string exported;            ///< .csv, .svg or .png of the view to write instead of showing it
    std::string panel;               ///< to open and bring to the front: "stragglers"
    std::optional<QSize> givenSize;  ///< of the window or picture
    bool dark = false;

    QSize size() const { return givenSize.value_or(QSize(1600, 900)); }
    /// Files are written and no window is shown: nothing the user chose before plays a part, nothing is remembered.
    bool isHeadless() const { return !screenshot.empty() || !exported.empty(); }
};

}  // namespace rankscope::gui
