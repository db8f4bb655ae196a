// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/network_sends.h"

#include <map>

#include "collector/store/reader.h"

namespace rankscope::facts {

std::vector<NetworkSend> readNetworkSends(store::TraceReader& trace, int rank) {
    std::vector<NetworkSend> sends;
    if (trace.extent<store::ProxyOp>(rank).empty()) return sends;
    std::map<std::pair<int64_t, int32_t>, size_t> places;
    trace.forEach<store::ProxyOp>(rank, [&](const store::ProxyOp& row) {
        if (!row.isSend || !row.communicatorId || !row.callId || row.onBehalfOf || row.bytes <= 0) return;
        const auto [place, isNew] = places.try_emplace({*row.callId, row.peer}, sends.size());
        if (isNew) sends.push_back({*row.communicatorId, *row.callId, row.peer, 0, 0, 0});
        NetworkSend& send = sends[place->second];
        send.bytes += row.bytes;
        if (row.networkWaitNs < send.networkNs) return;
        send.networkNs = row.networkWaitNs;
        send.rowId = row.id;
    });
    return sends;
}

}  // namespace rankscope::facts
