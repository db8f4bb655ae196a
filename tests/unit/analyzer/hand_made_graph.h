// SPDX-License-Identifier: Apache-2.0
// Task graphs small enough to be played by hand.
#pragma once

#include <vector>

#include "analyzer/replay/graph_draft.h"
#include "tests/unit/analyzer/units.h"

namespace rankscope::test {

constexpr int64_t kGroup = 7;  // a communicator

inline replay::TaskInfo on(uint32_t lane, replay::TaskKind kind, uint32_t detail = 0) {
    replay::TaskInfo info;
    info.lane = lane & replay::kNoLane;
    info.kind = kind;
    info.detail = detail;
    info.step = 0;
    return info;
}

/// All members leave together, when the last one has come.
inline void joinAll(replay::GraphDraft& draft, store::Op op, int64_t bytes,
                    const std::vector<replay::ExchangeMember>& members, int64_t communicator = kGroup) {
    replay::Exchange exchange;
    exchange.communicatorId = static_cast<uint32_t>(communicator);
    exchange.op = op;
    exchange.bytes = bytes;
    exchange.step = 0;
    exchange.join = draft.addTask(on(replay::kNoLane, replay::TaskKind::join), 0);
    const uint32_t number = draft.addExchange(exchange, members);
    for (const replay::ExchangeMember& member : members) {
        draft.info(member.arrival).detail = draft.info(member.transfer).detail = number;
        draft.addEdge(exchange.join, member.arrival, replay::WaitKind::peer);
        draft.addEdge(member.transfer, exchange.join, replay::WaitKind::peer);
    }
}

}  // namespace rankscope::test
