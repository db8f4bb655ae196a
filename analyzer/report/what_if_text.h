// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/edits/what_if.h"

namespace rankscope::report {

std::string renderWhatIfText(const edits::WhatIf& result, const std::vector<std::string>& changes);

/// Schema rankscope.whatif/1: {changes, measured_step_ns, replay {predicted_step_ns, error}, changed_step_ns,
/// tokens_factor, saving_ns_per_step, saving_share, saving_interval_ns, ranks [{rank, before, after: {compute_ns,
/// waiting_ns, transfer_ns}}], critical_path {before, after: [{category, rank, ns_per_step}]}, assumed}.
std::string renderWhatIfJson(const edits::WhatIf& result, const std::vector<std::string>& changes);

}  // namespace rankscope::report
