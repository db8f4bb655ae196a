// SPDX-License-Identifier: Apache-2.0
// What a report does not know, in words: the same in every format and in the window.
#pragma once

#include <string>
#include <vector>

#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// "Unexplained: 54.9 % of the step is waiting for other ranks (ranks 1-5, 7), 46 % of it for rank 0, … To settle it:
/// ….": one per unexplained category; empty where all is.
std::vector<std::string> unexplainedSentences(const diagnose::Accounting& accounting);

/// What is known of it, as parts of sentences.
std::vector<std::string> unexplainedFacts(const diagnose::Accounting& accounting);

/// "12.3 % of the step is transfer: 11.0 % the first gather …": of what is large and accounted for by theory alone;
/// empty without.
std::string saidText(const diagnose::Accounting& accounting);

/// "RS203, RS204: no link peak": one per need, the first id first.
std::vector<std::string> notJudgedLines(const std::vector<diagnose::NotJudged>& notJudged);

}  // namespace rankscope::report
