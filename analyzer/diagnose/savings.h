// SPDX-License-Identifier: Apache-2.0
// What the findings of a run save, from replays of the job without what they name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/edits/step_sides.h"
#include "analyzer/job/finding.h"

namespace rankscope::diagnose {

struct SavingThresholds {
    static constexpr double kLargestError =
        0.03;  // of the unchanged replay: where it is further off, savings stay estimates
    static constexpr double kHostPace = 0.5;   // of the step: the critical path of the replay is the host's
    static constexpr double kSameCost = 0.05;  // of a cost: a detector's estimate and the replay that differ by less
                                               // mean the same, and the replay's is told
    static constexpr double kBusyIdle = 0.05;  // of the step: a device that the host really keeps waiting idles more
};

/// What all certain findings together save.
struct Ceiling {
    facts::Estimate savingNs;
    double share = 0;     // of the typical replayed step; where rare steps alone gain, of the mean one
    size_t findings = 0;  // whose repair was replayed
};

/// The changes that a finding's fix amounts to, as `rankscope whatif --change` takes them; empty: it has none that can
/// be replayed.
std::vector<std::string> changesFor(const job::Analysis& analysis, const job::Finding& finding);

/// Gives each certain finding its changes and, where they can be made, its saving: the difference that they make on top
/// of the changes of all deeper causes, so that no time is counted twice. What saves less than
/// CommonThresholds::kFloorShare of the step becomes a note, and a note that is one by its estimate alone becomes a
/// finding when it saves more. Others keep their detector's estimate. Nothing without a replay as good as
/// SavingThresholds asks for. Sorts them by saving.
std::optional<Ceiling> replaySavings(const job::Analysis& analysis, std::vector<job::Finding>& findings);

/// Step time on a network on which every transfer takes no time / step time; nothing without a replay.
std::optional<double> transferEfficiency(const job::Analysis& analysis);

}  // namespace rankscope::diagnose
