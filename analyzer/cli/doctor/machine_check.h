// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/cli/console/install_layout.h"

namespace rankscope::cli {

// One thing that recording rests on, as `doctor` found it on this machine.
struct MachineCheck {
    std::string name;
    bool ok = false;
    std::string found;  // what is there, or why not
    std::string cost;   // what cannot be recorded without it; empty when ok
};

std::vector<MachineCheck> checkMachine(const InstallLayout& layout);

}  // namespace rankscope::cli
