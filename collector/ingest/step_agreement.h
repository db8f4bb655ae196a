// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "collector/ingest/instance_groups.h"

namespace rankscope::collector {

/// What ranks did together: collectives and messages.
struct Encounters {
    const InstanceGroups& collectives;
    const std::vector<MessagePair>& messages;
};

/// Marks of every rank, in the order of the summaries; step k of a rank lies between its marks k and k + 1.
using RankMarks = std::vector<std::vector<StepMark>>;

/// Numbers the steps so that ranks met each other in the same ones: those that began earlier, or went on longer, lose
/// what others lack. Empty where the marks of the ranks contradict each other: then they mark no steps. Ranks whose
/// recording was cut may have fewer marks than others, or none.
RankMarks agreeingMarks(const std::vector<RankSummary>& summaries, const RankMarks& marks,
                        const Encounters& encounters);

}  // namespace rankscope::collector
