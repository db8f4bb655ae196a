// SPDX-License-Identifier: Apache-2.0
// A claim about a job that a person can act on (rankscope.report/1, `findings`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/facts/statistics.h"
#include "analyzer/job/change.h"

namespace rankscope::job {

enum class Verdict : uint8_t { found, inconclusive, note };

/// A row of trace.db that shows the claim.
struct EvidenceRow {
    std::string table;
    int64_t id = 0;
    int rank = -1;
    std::string note;
    std::optional<int64_t> startNs = std::nullopt;  // where one of several is chosen by when it was; not reported
};

struct Evidence {
    std::vector<std::string> facts;                       // sentences for a reader
    std::vector<std::pair<std::string, double>> numbers;  // the same for a program; the unit is in the name
    std::vector<EvidenceRow> rows;
};

struct Finding {
    std::string id;  // RS301
    std::string title;
    std::vector<std::string> alternatives;  // ids of diagnoses that it may as well be: the recording does not tell
    std::vector<int> ranks;                 // where the fix goes
    std::vector<int> affectedRanks;         // who waits
    std::optional<int64_t> communicator;
    std::vector<int> steps;     // that support the claim
    int64_t windowStartNs = 0;  // where it is best seen; empty when both are 0
    int64_t windowEndNs = 0;
    std::string cause;
    Evidence evidence;
    std::vector<std::string> fix;
    std::string whyInconclusive;  // a reason for which it is not certain, whatever it costs
    std::string whyNote;          // a reason for which it is no finding, whatever it costs
    double leastShare = 0;        // of the step, from which it is a finding where that is more than for others

    // What diagnose/price.h says of it.
    Verdict verdict = Verdict::found;
    // Share of the step, 0..1, that the repair saves, with those of causes that share its gain; that it costs, where it
    // is not played.
    double severity = 0;
    double costNs = 0;                        // per step: what the cause was seen to take
    std::optional<facts::Estimate> savingNs;  // per step, of the replayed job; none: it was not played
    std::string whyNotPlayed;                 // in a few words; empty where it was
    double meanStepNs = 0;        // of what hits some steps only: the mean step, which shares are then of; 0: they are
                                  // of the typical step
    std::vector<Change> changes;  // what the fix amounts to, where it can be played

    /// What it is worth to look at, ns per step: the saving, or where that is unknown the cost.
    double worthNs() const { return savingNs ? savingNs->expected : costNs; }
};

/// What its saving is of the step that its shares are of; 0 without one.
inline double savingShare(const Finding& finding, double typicalStepNs) {
    const double stepNs = finding.meanStepNs > 0 ? finding.meanStepNs : typicalStepNs;
    return stepNs > 0 ? finding.worthNs() / stepNs : 0;
}

}  // namespace rankscope::job
