// SPDX-License-Identifier: Apache-2.0
// What the formats for other programs share. Texts are as they came: each format escapes them in its own way.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/compare/comparison.h"

namespace rankscope::analyzer {

/// More findings than this are left out of a format, which says so; rankscope.compare/1 has all.
inline constexpr size_t kMostPrintedFindings = 1000;

/// "+3.20 ms", "-12.0 us".
std::string signedDurationText(double ns);

/// "+3.2 %".
std::string signedPercentText(double share);

/// "RS301 straggler rank, rank 3 (dp 3)".
std::string findingName(const FindingChange& finding);

/// The cause, what it costs on both sides, and what to do; a sentence or two each, on lines of their own.
std::string findingBody(const FindingChange& finding);

/// ", in 1 of 3 new runs"; empty where all of them have it, or none.
std::string inRunsText(const FindingChange& finding);

/// "failed", "passed" or "not judged".
std::string_view gateWord(const GateResult& gate);

/// It costs time that it did not cost before.
bool isTrouble(const FindingChange& finding);

/// It made the gate fail.
bool failsGate(const Comparison& comparison, const FindingChange& finding);

/// The step time made the gate fail.
bool stepFailsGate(const Comparison& comparison);

/// Findings with those that matter most in front, at most `most` of them.
std::vector<const FindingChange*> firstFindings(const Comparison& comparison, size_t most);

/// "and 9000 of 10000 findings are left out": empty when all are shown.
std::string leftOutText(const Comparison& comparison, size_t most);

}  // namespace rankscope::analyzer
