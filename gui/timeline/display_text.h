// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace rankscope::gui {

/// A name of a trace as one line that is safe to show: at most `maxBytes` of UTF-8 (an ellipsis follows what is cut),
/// control characters and line breaks as a middle dot, and no marks that turn the direction of the text around them.
std::string displayText(std::string_view text, size_t maxBytes = 240);

}  // namespace rankscope::gui
