// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/light_recording.h"

#include <algorithm>

#include "analyzer/job/analysis.h"

namespace rankscope::job {

bool isLight(const RecordedJob& job) {
    return !job.facts.text("light").empty();
}

bool isByCalls(const RecordedJob& job) {
    return isLight(job) &&
           std::ranges::any_of(job.ranks, [](const facts::RankSummary& rank) { return rank.kernels.empty(); });
}

bool isSummarised(const RecordedJob& job) {
    return isLight(job) && !isByCalls(job);
}

}  // namespace rankscope::job
