// SPDX-License-Identifier: Apache-2.0
// What a step gains when its communication takes less time, everything else as recorded.
#pragma once

#include <vector>

#include "analyzer/diagnose/critical_step.h"

namespace rankscope::diagnose {

/// Step time saved when task i of the step takes newTransferNs[i] instead of its recorded transfer. Communication that
/// follows on communication is one busy period of the network: what its messages gain moves up the later ones and
/// shortens the period's exposed part, less what the last message still exposes by itself.
double savingOf(const CriticalStep& step, const std::vector<double>& newTransferNs);

/// The recorded transfers of the step's tasks, to be changed.
std::vector<double> transfersOf(const CriticalStep& step);

}  // namespace rankscope::diagnose
