// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/message_pairs.h"

#include <algorithm>

namespace rankscope::gui {

MessagePairs readMessagePairs(store::TraceReader& reader, const ChartJob& job) {
    MessagePairs pairs;
    // Sorted by communicator, sender, receiver, sequence: the pair changes seldom.
    store::Statement rows(reader.database(),
                          "SELECT src_rank, dst_rank, bytes, send_arrival_ns, send_end_ns, send_call_id, "
                          "communicator_id FROM p2p ORDER BY id");
    MessagePair* pair = nullptr;
    std::pair<int32_t, int32_t> last{-1, -1};
    int64_t firstCommunicator = 0;
    while (rows.step()) {
        const int64_t source = rows.integer(0), destination = rows.integer(1);
        if (source != static_cast<int32_t>(source) || destination != static_cast<int32_t>(destination)) continue;
        const std::pair key{static_cast<int32_t>(source), static_cast<int32_t>(destination)};
        if (key.first == key.second || !job.knows(key.first) || !job.knows(key.second)) continue;
        if (!pair || key != last) {
            if (pairs.size() >= kMostPairs && !pairs.contains(key)) continue;
            pair = &pairs[key];
            last = key;
        }
        if (pair->count++ == 0) firstCommunicator = rows.integer(6);
        const int64_t bytes = rows.isNull(2) ? 0 : std::max<int64_t>(0, rows.integer(2));
        const bool timed = !rows.isNull(3) && !rows.isNull(4);
        const TimeRange range = timed ? soundRange(rows.integer(3), rows.integer(4)) : TimeRange{};
        pair->bytes += static_cast<double>(bytes);
        if (timed && pair->first.size() < MessagePair::kFirstMessages && rows.integer(6) == firstCommunicator)
            pair->first.push_back(range);
        if (bytes > pair->largestBytes) {
            pair->largestBytes = bytes;
            pair->largest = {rows.isNull(5) ? EventTable::none : EventTable::ncclCall, rows.integer(5), key.first,
                             range};
        }
    }
    return pairs;
}

}  // namespace rankscope::gui
