// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rankscope::reference {

/// A training script of a framework, started as its users start it: by torchrun, with options and environment
/// variables.
struct FrameworkJob {
    std::string script;                  ///< beside the folder of the built-in jobs, or a path: "pytorch/ddp_train.py"
    std::vector<std::string> arguments;  ///< words behind the script
    std::vector<std::pair<std::string, std::string>> environment;
    std::vector<std::string> modules;  ///< Python modules that it imports
};

}  // namespace rankscope::reference
