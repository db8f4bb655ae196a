// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/cli/doctor/machine_check.h"

namespace rankscope::cli {

// The links that a recording on this machine would hold, read by the injector's own code.
MachineCheck checkGpuLinks();
MachineCheck checkNetworkLinks();

}  // namespace rankscope::cli
