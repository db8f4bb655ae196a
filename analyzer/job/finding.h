// SPDX-License-Identifier: Apache-2.0
// A claim about a job that a person can act on (rankscope.report/1, `findings`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rankscope::job {

enum class Verdict : uint8_t { found, inconclusive, note };

/// A row of trace.db that shows the claim.
struct EvidenceRow {
    std::string table;
    int64_t id = 0;
    int rank = -1;
    std::string note;
};

struct Evidence {
    std::vector<std::string> facts;                       // sentences for a reader
    std::vector<std::pair<std::string, double>> numbers;  // the same for a program; the unit is in the name
    std::vector<EvidenceRow> rows;
};

struct Finding {
    std::string id;  // RS301
    std::string title;
    Verdict verdict = Verdict::found;
    std::string whyInconclusive;
    double severity = 0;  // share of the step it costs, 0..1
    double meanStepNs =
        0;  // of what hits some steps only: the step that shares are of, the mean one; 0: they are of the typical step
    std::vector<int> ranks;          // where the fix goes
    std::vector<int> affectedRanks;  // who waits
    std::optional<int64_t> communicator;
    std::vector<int> steps;     // that support the claim
    int64_t windowStartNs = 0;  // where it is best seen; empty when both are 0
    int64_t windowEndNs = 0;
    std::string cause;
    Evidence evidence;
    std::vector<std::string> fix;
    std::optional<double> savingNsPerStep;
    double savingLowNs = 0;
    double savingHighNs = 0;
    bool savingReplayed = false;       // savingNsPerStep is a difference of two replays, not the detector's estimate
    std::vector<std::string> changes;  // what the fix amounts to, as `rankscope whatif --change` takes it
};

/// What its saving is of the step that its shares are of; 0 without one.
inline double savingShare(const Finding& finding, double typicalStepNs) {
    const double stepNs = finding.meanStepNs > 0 ? finding.meanStepNs : typicalStepNs;
    return stepNs > 0 ? finding.savingNsPerStep.value_or(0) / stepNs : 0;
}

}  // namespace rankscope::job
