// SPDX-License-Identifier: Apache-2.0
// What kernels took where a few replicas stand for all in the replay: what the others did is in no graph.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

namespace rankscope::job {

struct RecordedJob;

/// Kernels of one name in one step of the ranks of a pipeline stage.
struct WorkKey {
    int stage = -1;  // -1: the job has no pipeline
    int step = 0;    // its number
    int32_t nameId = 0;

    auto operator<=>(const WorkKey&) const = default;
};

struct RecordedWork {
    std::map<int, double> replayedNs;  // by rank
    double othersNs = 0;               // of all ranks that are left out
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(RecordedWork& value, const Visit& visit) {
    auto& [replayedNs, othersNs] = value;
    visit(replayedNs, othersNs);
}

using RecordedWorks = std::map<WorkKey, RecordedWork>;

/// Of the analysed steps; empty where nobody is left out. `leftOut`: sorted.
RecordedWorks recordedWorks(const RecordedJob& job, const std::vector<int>& leftOut);

}  // namespace rankscope::job
