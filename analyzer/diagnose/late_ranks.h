// SPDX-License-Identifier: Apache-2.0
// Stragglers by calls alone, for recordings without kernels of the program's own (`rankscope run --light`): ranks that
// spend more of each step outside of communication than their peers, which wait for them meanwhile. What RS301 (one
// rank) and RS302 (all ranks of a host) share there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/diagnose/slow_since.h"
#include "analyzer/job/finding.h"

namespace rankscope::diagnose {

inline constexpr Threshold kLateShare{"late share", 0.05, "of the step",
                                      "of light recordings, the rank's time outside of communication beyond its peers' "
                                      "median: noise of single kernels adds up to some percent, to another rank in "
                                      "each step"};
inline constexpr Threshold kLateInStep{"late in a step", 0.03, "of the step",
                                       "of light recordings, in nearly each: what is a finding at all"};
inline constexpr Threshold kLateSteps{"late steps", 0.9, "of the steps",
                                      "of light recordings: without kernels to compare, only constancy tells a rank "
                                      "that is slow from one that had bad luck"};
inline constexpr Threshold kMuchLater{"much later", 1.5, "times",
                                      "of light recordings, how much later a rank must be than another whose lateness "
                                      "it explains: whoever waits for it in one group comes late to its other groups, "
                                      "by less than the rank itself"};

struct LateRank {
    size_t index = 0;                  // into analysis.ranks
    double share = 0;                  // of the step that it is late, the middle one of the steps from firstStep on
    double ratio = 1;                  // of its time outside of communication to its peers', the same; no more than the
                                       // loss tells
    size_t firstStep = 0;              // index of the analysed step from which on it is late; 0: it always was
    std::optional<PaceChange> change;  // of that time to its peers', where it is late since then
    bool isStage = false;              // its peers are the other stages of its pipeline
    std::optional<double> lossSeen;    // what the others lose to it is known (lost_to_rank.h), of so much of its time
    std::vector<double> waitedNs;      // by analysed step: its time outside of communication beyond its peers'; 0
                                       // before firstStep
    std::vector<double> extraNs;       // the same, no more than the loss
};

/// Peers of a rank are all others, or where ranks exchange messages, as the stages of a pipeline do, those that it
/// meets in collectives with none of whose members it exchanges any; where it meets nobody there, the other stages,
/// unless one of them computes beside its messages, so that what it computes does not show. Ranks that are late because
/// one that they share a smaller group with is later are left out. Ascending by rank.
std::vector<LateRank> lateRanks(const job::Analysis& analysis);

/// "in each step", "in each step from step 7 on (1.00x before)".
std::string whenLate(const job::Analysis& analysis, const LateRank& late);

/// Fills everything of a finding but id, cause and fix. `late`: one rank, or those of a host.
void describeLateness(const job::Analysis& analysis, const std::vector<LateRank>& late, job::Finding& finding);

/// "no kernels were recorded: light mode", where ranks have no peers to compare them with; else empty.
std::string withoutPeersByCalls(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
