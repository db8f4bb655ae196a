// SPDX-License-Identifier: Apache-2.0
// The kinds of jobs. Each runs all steps of the scenario and returns the exit status of Worker::finish().
#pragma once

#include "reference/workloads/worker.h"

namespace rankscope::reference {

int runDdp(Worker& worker);            ///< ddp, zero1 and zero2
int runFsdp(Worker& worker);           ///< fsdp and hsdp
int runModelParallel(Worker& worker);  ///< tp, tp+sp, pp, ep and 3d

}  // namespace rankscope::reference
