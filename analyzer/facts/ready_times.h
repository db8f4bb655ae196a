// SPDX-License-Identifier: Apache-2.0
// When the data of a collective were there: a communication stream is told by events which work to wait for
// (cudaEventRecord on the stream that does it, cudaStreamWaitEvent on its own). A kernel that starts well after that
// work has ended, and right after its own call, was held up by the host.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/facts/rank_events.h"

namespace rankscope::facts {

/// A stream waits for what another one had been given when an event was recorded. Times are those of the host calls.
struct StreamWait {
    int32_t streamId = 0;
    int64_t waitedNs = 0;
    int32_t recordedStreamId = 0;
    int64_t recordedNs = 0;
};

/// All stream waits of a rank whose event's record is known, by waitedNs.
std::vector<StreamWait> streamWaits(const RankEvents& events);

/// Fills CommTask::readyNs where the stream was told what to wait for before. A collective without a wait of its own is
/// ready with the one before it when it was called while that one ran, else when that one had ended. `events` needs
/// compute and hostCalls.
void findReadyTimes(const std::vector<StreamWait>& waits, RankEvents& events);

}  // namespace rankscope::facts
