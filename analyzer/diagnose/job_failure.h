// SPDX-License-Identifier: Apache-2.0
// What ended a job, told once for the three diagnoses that tell it.
#pragma once

#include <string>
#include <vector>

#include "analyzer/diagnose/waiting_ranks.h"
#include "analyzer/job/analysis.h"
#include "analyzer/job/finding.h"

namespace rankscope::diagnose {

struct FailureThresholds {
    /// Of a job that somebody ended. Healthy ranks are a part of a step apart; people and schedulers wait longer than
    /// this before they take a job for hung.
    static constexpr double kLeastStallNs = 5e9;
    /// Steps with a checkpoint or an evaluation in them take several times as long as others: what a job did before
    /// once, it may be doing again.
    static constexpr double kStallOverGap = 3;
    /// Of the evidence: those of four nodes with eight ranks each, and no more than a list that is read.
    static constexpr size_t kMostRows = 32;
};

struct JobFailure {
    enum class Kind { none, missing, chain, cycle } kind = Kind::none;
    /// Of a flight recorder, what is known of the root: it called no further; its device ended nothing more; it wrote
    /// no dump, or one that lacks its last calls; its device did not begin what others' did;
    /// all of it called the same, and nobody ended it.
    enum class Trace { called, stands, untold, unbegun, transfer } trace = Trace::called;
    std::vector<int> root;     // who is to be looked at; of a cycle all its ranks, of a flight recorder all of one kind
    std::vector<int> waiting;  // who waited for them
    std::vector<Wait> chain;   // cycle: once round; else the longest by which a rank waited for the root
    /// Of a flight recorder: nothing but messages shows it that the root may have sent.
    bool mayHaveSent = false;
    bool isCertain = true;  // false: others may be the root as well
    double stalledNs = 0;   // from the last progress to the end
};

/// Nothing of a job that ended well, that somebody ended while it still got on, or that ended by a contradiction. Of a
/// flight recorder, which tells of a moment when all who could wait did, each cause for itself: there may be several.
std::vector<JobFailure> failuresOf(const job::Analysis& analysis);

/// The contradiction that the job ended by, or that it went on from with wrong results; nullptr: there is none.
const facts::Contradiction* contradictionOf(const job::Analysis& analysis);
/// Nobody got through it: no member's kernel of it, or of a later collective, ended.
bool hasHung(const facts::JobEnd& end, const facts::Contradiction& contradiction);

/// "all_reduce 260 of data parallel 0-7 (128 MiB, bf16)".
std::string callText(const job::Analysis& analysis, const facts::EndedCall& call);
/// "rank 5 waits for rank 3 in all_reduce 12 of …".
std::string waitText(const job::Analysis& analysis, const Wait& wait);
/// How the rank ended, in a few words: "ran out of memory (cudaMalloc of 70 GiB was refused) and ended with exit status
/// 1".
std::string endText(const facts::RankEnd& rank, double stalledNs);
/// What it did last, a sentence each.
std::vector<std::string> lastActs(const job::Analysis& analysis, const facts::RankEnd& rank);
/// How the root of a failure in a flight recorder is known to be one, as the cause of a finding, and for each of its
/// ranks what shows it.
std::string recordedCause(const job::Analysis& analysis, const JobFailure& failure);
std::vector<std::string> recordedFacts(const job::Analysis& analysis, const JobFailure& failure);
std::vector<std::string> recordedFixes(const job::Analysis& analysis, const JobFailure& failure);
/// What to do about a rank that ended so.
std::vector<std::string> fixesFor(const facts::RankEnd& rank, double stalledNs);
/// From the last progress to the end.
void setLastWindow(const job::Analysis& analysis, job::Finding& finding);
/// What every finding of a failure tells: how long nobody got on, the root's last NCCL call, those that waited, and
/// whether others may be the root.
void tellEnd(const job::Analysis& analysis, const JobFailure& failure, job::Finding& finding);

}  // namespace rankscope::diagnose
