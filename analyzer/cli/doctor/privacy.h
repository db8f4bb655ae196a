// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace rankscope::cli {

/// Says for people what a recording holds of a job's environment and command: of one that is started here, with the
/// words `command` (none: not known yet).
std::string privacyText(const std::vector<std::string>& command);

}  // namespace rankscope::cli
