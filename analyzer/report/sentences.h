// SPDX-License-Identifier: Apache-2.0
// What every format, and the window, says of a run in the same words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/report/report_model.h"

namespace rankscope::report {

/// Says an error bound: "12 us"; "under 1 us" for less, since clocks are not read more exactly than that.
std::string boundText(int64_t ns);

/// Says where the steps' boundaries come from: "steps are the ranges ProfilerStep", "steps by the period of the
/// kernels".
std::string stepSourceText(const std::string& source);

/// Says which window a finding names: "best seen in step 2, 62.2 ms to 90.4 ms into the recording; 12 analysed steps
/// show it".
std::string bestSeenText(const Report& report, const job::Finding& finding);

/// Says how the job was split: "dp4 tp2 pp1, ZeRO-1"; "unknown" when nothing speaks for any degree.
std::string layoutText(const facts::Layout& layout);

/// Says what a finding is worth: "32.8 % of the step"; of one that ended the job, "it ended the job", or in a dump of a
/// job that had not ended, "the job stood still by it".
std::string worthText(const Report& report, const job::Finding& finding);

/// Says how well the replay, from which savings are told, reproduces the measured step; or why there is none. One line
/// without a full stop.
std::string replayText(const ReplaySection& replay);

/// Says what the critical path through all ranks consists of, and on which ranks it lies. One line without a full stop;
/// empty without a replay.
std::string criticalPathText(const ReplaySection& replay);

/// Says what repairing everything found gains, of `found` certain findings. One sentence.
std::string ceilingText(const diagnose::Ceiling& ceiling, size_t found);

/// What there is of a run without device activity.
std::string whatIsThereText(const RunSection& run);

/// "8 ranks on 2 hosts, virtual GPUs", "rank 3 of 8", "1 rank": what nobody told is not said.
std::string ranksOnHostsText(const RunSection& run);

/// Says why devices idle: words and share of the step over all ranks, largest first; shares under half a percent are
/// left out.
std::vector<std::pair<std::string, double>> idleShares(const Report& report);

/// "idle, in % of the step over all ranks: the host launches late 8.2 %, …"; empty where hardly any is.
std::string idleText(const Report& report);

/// Writes a line for each rank that costs the others most: "rank 5 costs ranks 0-4, 6, 7 148 ms of each step (32.9 %):
/// 85.1 ms waiting, 63.0 ms transfer that would have been hidden". None where no rank costs
/// PriceThresholds::kFloorShare of the step.
std::vector<std::string> delayLines(const Report& report);

/// Says who arrived last how often, most often first: "rank 3 (100 %)", at most so many, leaving out who seldom did;
/// "none mostly", "unknown".
std::string lastText(const CollectiveRow& row, size_t most);

/// Says how many calls a step has: "12", "0.5".
std::string countText(double perStep);

/// "12.3 ms", "unknown".
std::string knownDurationText(const std::optional<double>& ns);

/// Puts first what the reader should see first: the rank a death began with, then errors, warnings and the rest, each
/// in its order.
void orderLosses(std::vector<LossRow>& losses);

/// Says a loss in one line, its rank named once; without its severity.
std::string lossText(const LossRow& loss);

/// Is what a reader is told of one kind of loss: "ranks 0-2, 4: records did not fit (12 x)".
struct LossLine {
    std::string severity;
    std::string text;
};

/// Writes one line for what happened alike on several ranks, in the order of the rows. Where their texts differ by
/// numbers alone, the first rank's stands for all and is said to.
std::vector<LossLine> lossLines(const std::vector<LossRow>& losses);

/// "Unexplained: 54.9 % of the step is waiting for other ranks (ranks 1-5, 7), 46 % of it for rank 0, … To settle it:
/// ….": one per unexplained category; empty where all is.
std::vector<std::string> unexplainedSentences(const diagnose::Accounting& accounting);

/// Says what is known of it, as parts of sentences.
std::vector<std::string> unexplainedFacts(const diagnose::Accounting& accounting);

/// "12.3 % of the step is transfer: 11.0 % the first gather …": of what is large and accounted for by theory alone;
/// empty without.
std::string saidText(const diagnose::Accounting& accounting);

/// "RS203, RS204: no link peak": one per need, the first id first.
std::vector<std::string> notJudgedLines(const std::vector<diagnose::NotJudged>& notJudged);

/// Is true when nothing was found, nothing left open and nothing missing from the recording.
bool isClean(const Report& report);

/// Returns the sentence in place of the findings; for reports without a certain one.
std::string nothingFoundText(const Report& report);

/// Counts the findings that are certain.
size_t certainFindings(const Report& report);

/// "2 findings. The first costs 32.6 % of every step: …", or that nothing was found, and of what that can be said.
std::string verdictText(const Report& report);

/// "4.2 ms per step (12.0 %; 3.9 ms to 4.5 ms), replayed"; or that it is unknown, why, and what the cause takes.
std::string savingText(const Report& report, const job::Finding& finding);
/// Why a note is no finding: "under 3 % of the step".
std::string whyNoteText(const job::Finding& note);
/// A note in one line, with the share of the step and whyNoteText().
std::string noteText(const job::Finding& note);

}  // namespace rankscope::report
