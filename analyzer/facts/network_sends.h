// SPDX-License-Identifier: Apache-2.0
// What a rank's NIC did: of each collective or message the transfers to one peer on another node, as NCCL's proxy
// thread timed them on this host.
#pragma once

#include <cstdint>
#include <vector>

namespace rankscope::store {
class TraceReader;
}

namespace rankscope::facts {

struct NetworkSend {
    int64_t communicatorId = 0;
    int64_t callId = 0;     // row of nccl_call
    int32_t peer = 0;       // rank in the communicator
    int64_t bytes = 0;      // in all channels
    int64_t networkNs = 0;  // on the network: of the channel that was there longest, for they run side by side
    int64_t rowId = 0;      // of proxy_op: that channel's
};

/// In order of time; empty without the profiler plugin, and in traces that have no such table. What a proxy did for
/// another process (PXN) is left out: whose link it used cannot be told.
std::vector<NetworkSend> readNetworkSends(store::TraceReader& trace, int rank);

}  // namespace rankscope::facts
