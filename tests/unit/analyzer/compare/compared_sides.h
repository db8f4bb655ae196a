// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/compare/compare.h"

namespace rankscope::compare {

constexpr double kMs = 1e6;

/// A data-parallel job of four ranks: 80 ms of compute, then 10 ms of a sum of gradients that nothing hides; `number`
/// makes runs differ a little.
RunSummary makeRun(int number);

using Change = void (*)(RunSummary&);

/// Three runs, numbered from `first`.
std::vector<RunSummary> makeSide(int first, Change change = nullptr);

/// Unchanged runs against changed ones.
Comparison compareWith(Change change, const CompareOptions& options = {});

void longerSteps(RunSummary& run, double ns);
/// Rank 2 computes 20 ms longer.
void slowRank(RunSummary& run);
/// The sum of gradients takes twice as long.
void slowLink(RunSummary& run);

FindingSummary finding(const std::string& id, double costNs, const std::string& verdict = "found");

/// Whether a notice of the gate holds the words.
bool isNoticed(const Comparison& c, const std::string& words);

}  // namespace rankscope::compare
