// SPDX-License-Identifier: Apache-2.0
// Numbers of a comparison as people read them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/compare/comparison.h"

namespace rankscope::compare {

/// What a reader should know of the baseline: which of its runs are the base side, what it held before, and how far the
/// step has come since. None for sides that were named run by run.
std::vector<std::string> historySentences(const BaselineHistory& history, const StepTimeChange& step);

/// "3.2 % slower (2.8 % to 3.6 %)".
std::string changeText(const StepTimeChange& step);

/// A slow-down that would have been seen: "3.2 %", "more than twice".
std::string smallestVisibleText(double share);

/// Says how much runs differ, who told so, and what would have been seen, where the verdict does not say it; empty:
/// nothing tells. No full stop.
std::string noiseSentence(const StepTimeChange& step);

/// The verdict with its numbers, in one sentence: StepTimeChange::reason.
std::string verdictSentence(const StepTimeChange& step);

/// The verdict `undecided` in one sentence: which of the new runs is not like the others, where it is slow, and what
/// the others say.
std::string undecidedSentence(const Comparison& comparison);

/// The same on lines of their own, for a reader: the first says the verdict.
std::vector<std::string> undecidedLines(const Comparison& comparison);

/// Says of an odd run that it does not count: "step-time-2 is 30.0 % slower than the other new runs, ...".
std::string oddRunNote(const OddRun& odd);

/// The heading over the causes: "Why"; of a change that is not claimed "Why, if it is more than noise".
std::string causesHeading(const Comparison& comparison);

/// A value of a metric with its unit: "12.3 ms", "45.6 %", "38.4 GB/s".
std::string metricText(double value, const std::string& unit);

/// Says how much it changed: "-12.6 points" of a share, "+5.2 %" of other numbers.
std::string metricChangeText(double base, double now, const std::string& unit);

/// The metrics that both sides have, those that changed significantly first.
std::vector<const MetricChange*> comparedMetrics(const Comparison& comparison);

/// The same of a metric that both sides have; empty: it is not compared.
std::string metricChangeText(const MetricChange& metric);

/// "better", "worse", "not compared"; empty: no sure change.
std::string metricVerdict(const MetricChange& metric);

/// The first parts of a change; those beyond `most` are one row more: "12 smaller parts".
std::vector<AttributionRow> foldedParts(std::vector<AttributionRow> rows, size_t most);

/// More findings than this are left out of a format, which says so, as a page of them would not open in a browser;
/// rankscope.compare/1 has all.
inline constexpr size_t kMostPrintedFindings = 1000;

/// "+3.20 ms", "-12.0 us".
std::string signedDurationText(double ns);

/// "+3.2 %".
std::string signedPercentText(double share);

/// "RS301 straggler rank, rank 3 (dp 3)".
std::string findingName(const FindingChange& finding);

/// The cause, what it comes to on both sides, and what to do; a sentence or two each, on lines of their own.
std::string findingBody(const FindingChange& finding);

/// ", in 1 of 3 new runs"; empty where all of them have it, or none.
std::string inRunsText(const FindingChange& finding);

/// Says what is compared of a finding: "costs 3.20 ms -> 4.10 ms a step", "its repair saves 3.20 ms a step",
/// "costs 3.20 ms a step before", and which side could not play its repair where the other could; empty: not known.
std::string worthText(const FindingChange& finding);

/// The same of one side, for a table: "saves 3.20 ms", "costs 4.10 ms", "unknown"; "none" where it is not there.
std::string worthText(const FindingChange& finding, const FindingSide& side);

/// What the runs of a side are of: their label, "c20 to c33" of several, their names where they have none.
std::string sideName(const ComparedSide& side);

/// "c34 against c20 to c33".
std::string titleText(const Comparison& comparison);

/// Says what both sides are runs of: "8 ranks, dp 8, virtual GPUs, NCCL 2.28.9". What differs between them is left out.
std::string jobText(const Comparison& comparison);

/// The parts of the step's change are worth a reader's time: it is more than noise, or nothing tells that it is noise.
bool showsAttribution(const Comparison& comparison);

/// A reason or notice of the gate under a heading that has said the verdict: what it repeats of it is left out.
std::string gateLineText(const Comparison& comparison, const std::string& line);

/// Lists the causes, each on a line of its own that begins with a newline: "\n+1.20 ms", `between`, the sentence.
std::string causeLines(const Comparison& comparison, std::string_view between);

/// What to do about a cause that takes time: the fix of the finding that it is, most urgent first. None: no finding
/// tells it.
std::vector<std::string> fixOf(const Comparison& comparison, const ChangeCause& cause);

/// "failed", "passed", "undecided" or "not judged".
std::string_view gateWord(const GateResult& gate);

/// It costs time that it did not cost before.
bool isTrouble(const FindingChange& finding);

/// It made the gate fail.
bool failsGate(const Comparison& comparison, const FindingChange& finding);

/// The step time made the gate fail.
bool stepFailsGate(const Comparison& comparison);

/// Returns the findings with those that matter most in front, at most `most` of them.
std::vector<const FindingChange*> firstFindings(const Comparison& comparison, size_t most);

/// "and 9000 of 10000 findings are left out": empty when all are shown.
std::string leftOutText(const Comparison& comparison, size_t most);

}  // namespace rankscope::compare
