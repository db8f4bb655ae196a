// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/rank_tasks.h"

#include "analyzer/replay/rank_recorder.h"

namespace rankscope::replay {

EdgeCounts& EdgeCounts::operator+=(const EdgeCounts& other) {
    launches += other.launches;
    eventWaits += other.eventWaits;
    blockingCalls += other.blockingCalls;
    inferredWaits += other.inferredWaits;
    inferredBlocking += other.inferredBlocking;
    contradicted += other.contradicted;
    return *this;
}

RankTasks rankTasks(const facts::RankEvents& events, const facts::TraceFacts& facts, const ReplayWindow& window) {
    return RankRecorder(events, facts, window).run();
}

}  // namespace rankscope::replay
