// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/recorded_work.h"

#include <algorithm>

#include "analyzer/job/analysis.h"

namespace rankscope::job {

RecordedWorks recordedWorks(const RecordedJob& job, const std::vector<int>& leftOut) {
    RecordedWorks works;
    if (leftOut.empty()) return works;
    for (const facts::RankSummary& rank : job.ranks) {
        const int stage = job.layout.stageOf(rank.rank);
        const bool isReplayed = !std::ranges::binary_search(leftOut, rank.rank);
        for (const facts::KernelStatistics& kernel : rank.kernels) {
            RecordedWork& work = works[{stage, kernel.step, kernel.key.nameId}];
            (isReplayed ? work.replayedNs[rank.rank] : work.othersNs) += static_cast<double>(kernel.totalNs);
        }
    }
    return works;
}

}  // namespace rankscope::job
