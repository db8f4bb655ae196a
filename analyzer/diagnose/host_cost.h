// SPDX-License-Identifier: Apache-2.0
// What standstills made by the host cost the step: shared by RS401 to RS406.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyzer/diagnose/claims.h"
#include "analyzer/job/analysis.h"
#include "analyzer/job/finding.h"

namespace rankscope::diagnose {

/// A rank's step without waiting for others, ns: the longest of these sets the pace.
double ownTimeNs(const job::Analysis& analysis, const facts::RankSummary& rank, int step);

/// Time of one step that a rank would not need.
struct Stalled {
    double ns = 0;
    double hiddenNs = 0;  // beyond ns: what would show if nobody else did it, as when copies go on while the rank waits
                          // for peers that copy, too
};

struct HostCost {
    std::vector<std::vector<double>> stallNs;  // by rank of analysis.ranks, then by analysed step
    std::vector<double> costNs;         // by analysed step: how much earlier the last rank is done without its stalls
    std::vector<int> ranks;             // that stall; the others wait for them or for nobody
    std::vector<double> medianStallNs;  // by rank of analysis.ranks, without what is hidden

    /// The rank that stalls longest, as index into analysis.ranks.
    size_t worst() const;
};

/// Ranks that stall less than half as long as the worst, hidden stalls included, are not named.
HostCost hostCost(const job::Analysis& analysis,
                  const std::function<Stalled(const facts::RankSummary&, int step)>& stallOf);

using StallTest = std::function<bool(const facts::HostStall&)>;
/// Sum over the stalls of a rank and step that pass the test.
Stalled stallSum(const facts::RankSummary& rank, int step, const StallTest& wanted);

/// The stalls of the worst rank in the finding's window, longest first.
std::vector<facts::HostStall> longestStalls(const job::Analysis& analysis, const HostCost& cost,
                                            const job::Finding& finding, const StallTest& wanted);

/// Fills ranks, affected ranks, cost, window; false when it costs nothing worth a word.
bool describeHostCost(const job::Analysis& analysis, const HostCost& cost, job::Finding& finding);

/// The same for what hits some steps only, and by the mean over all: of three steps at least, else they are accidents.
/// `cost`'s ranks and medianStallNs become those of the mean. False, with both as they were, when it costs less than a
/// finding must.
bool describeIntermittentCost(const job::Analysis& analysis, HostCost& cost, job::Finding& finding);

/// The longest idle gaps of that cause in the finding's window become rows of evidence, five in all.
void addGapRows(const facts::RankSummary& rank, facts::IdleCause cause, job::Finding& finding);

/// Books what a finding explains: the stalling ranks' own standstill, the others' waiting.
void claimHostCost(const job::Analysis& analysis, const HostCost& cost, const job::Finding& finding, Claims& claims);

/// What the diagnoses of hosts have charged the host of a rank with in a step.
double claimedByHostNs(const Claims& claims, int rank, int step);

/// "rank 3", "ranks 0-3, 6", "all ranks".
std::string ranksText(const job::Analysis& analysis, const std::vector<int>& ranks);

/// Text of a name id, `fallback` for 0.
std::string nameOr(const job::Analysis& analysis, int32_t nameId, const std::string& fallback);

/// "layer" of "layer 3", "ProfilerStep" of "ProfilerStep#7".
std::string withoutNumber(std::string name);

}  // namespace rankscope::diagnose
