// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace rankscope::cli {

/// Says for people what a recording holds of the job's environment and command.
std::string privacyText();

}  // namespace rankscope::cli
