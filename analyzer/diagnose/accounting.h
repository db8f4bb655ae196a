// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/account.h"
#include "analyzer/diagnose/claims.h"
#include "analyzer/job/analysis.h"
#include "analyzer/job/finding.h"

namespace rankscope::diagnose {

struct AccountingThresholds {
    // The field's target for pipeline bubbles, and what healthy jobs of the reference suite stay under where nothing is
    // to be repaired: up to here a step is as good as they come.
    static constexpr double kWorthSaying = 0.10;
    static constexpr double kNamedShare = 0.10;  // of the waiting: for whom less is waited is not named
    static constexpr size_t kMostNamed = 4;      // ranks that are waited for
};

/// `findings` as reported, savings replayed; `claims` of their detectors.
Accounting accountFor(const job::Analysis& analysis, const Claims& claims, const std::vector<job::Finding>& findings);

}  // namespace rankscope::diagnose
