// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace rankscope::gui {

/// What of the timeline shows a diagnosis ("RS301"), for someone who sees it for the first time: colours, lanes, who is
/// where. Empty for an unknown one.
std::string readingHint(std::string_view diagnosis);

/// What `rankscope explain` says of a diagnosis. Empty for an unknown one.
std::string explanationOf(std::string_view diagnosis);

}  // namespace rankscope::gui
