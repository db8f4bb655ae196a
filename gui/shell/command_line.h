// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QSize>
#include <string>
#include <vector>

namespace rankscope::gui {

/// What `rankscope view` passes on.
struct ViewRequest {
    std::vector<std::string> runs;   ///< one, or two to compare
    std::string goTo;                ///< diagnosis to go to, "RS301"
    std::string screenshot;          ///< file to write instead of showing a window
    QSize size{1600, 900};
    bool dark = false;
};

}  // namespace rankscope::gui
