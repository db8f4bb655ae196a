// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/fold_records.h"

#include <cstring>

#include "injector/capture_format/record_traits.h"

namespace rankscope::capture {

template <typename Record>
void FoldRecords::add(Record record, RecordType type, uint16_t aux) {
    record.head = {type, static_cast<uint8_t>(cellsFor(sizeof record)), aux};
    const size_t at = m_cells.size();
    m_cells.resize(at + cellsFor(sizeof record) * kCellBytes);
    std::memcpy(m_cells.data() + at, &record, sizeof record);
}

void FoldRecords::addCall(const FoldItem& item) {
    const FoldKey& key = item.key;
    NcclCallRecord call{};
    call.seq = m_seq++;
    call.startNs = call.endNs = item.startNs;
    call.count = key.count;
    call.stream = key.stream;
    call.communicator = key.communicator;
    call.peerOrRoot = key.peerOrRoot;
    uint32_t& group = m_groupOfThread[key.thread];
    if (key.group == FoldGroup::first) group = m_group++;
    call.groupId = key.group == FoldGroup::none ? 0 : group;
    call.dataType = key.dataType;
    call.reduceOp = key.reduceOp;
    call.result = key.result;
    add(call, RecordType::ncclCall, key.op);
    if ((key.flags & foldHasPlugin) == 0) return;

    const auto op = static_cast<NcclOp>(key.op);
    PluginCollRecord plugin{};
    plugin.seq = m_seq++;
    plugin.startNs = plugin.endNs = item.startNs;
    plugin.commHash = key.commHash;
    plugin.count = key.count;
    plugin.algorithm = key.algorithm;
    plugin.protocol = key.protocol;
    plugin.nChannels = key.nChannels;
    plugin.nWarps = key.nWarps;
    plugin.dataType = key.dataType;
    plugin.pluginVersion = key.pluginVersion;
    plugin.peerOrRoot = key.peerOrRoot;
    plugin.rank = key.pluginRank;
    add(plugin, op == NcclOp::send || op == NcclOp::recv ? RecordType::pluginP2p : RecordType::pluginColl, key.op);
    if ((key.flags & foldHasSpan) != 0) {
        PluginChannelRecord span{};
        span.seq = plugin.seq;
        span.startNs = item.deviceStartNs;
        span.endNs = item.deviceEndNs;
        span.commHash = key.commHash;
        add(span, RecordType::pluginKernelChannel, kAllChannels);
    }
    for (size_t i = 0; i < key.sends; ++i) {
        PluginProxyOpRecord send{};
        send.parentSeq = plugin.seq;
        send.parentStartNs = plugin.startNs;
        send.startNs = (key.flags & foldHasSpan) != 0 ? item.deviceStartNs : item.startNs;
        send.endNs =
            static_cast<int64_t>(static_cast<uint64_t>(send.startNs) + static_cast<uint64_t>(item.networkNs[i]));
        send.commHash = key.commHash;
        send.bytes = key.send[i].bytes;
        send.peer = key.send[i].peer;
        send.steps = key.send[i].steps;
        send.networkWaitNs = item.networkNs[i];
        send.channel = kEveryChannel;
        send.isSend = 1;
        send.pluginVersion = key.pluginVersion;
        send.rank = key.pluginRank;
        add(send, RecordType::pluginProxyOp, key.op);
    }
}

const std::vector<uint8_t>& FoldRecords::of(const FoldItem& item) {
    m_cells.clear();
    NvtxRecord mark{};
    mark.timeNs = item.startNs;
    mark.name = item.name;
    mark.rangeId = item.rangeId;
    switch (item.key.kind) {
        case FoldKind::call:
            addCall(item);
            break;
        case FoldKind::push:
            mark.seq = m_seq++;
            add(mark, RecordType::nvtxPush, 0);
            break;
        case FoldKind::pop:
            mark.seq = m_seq++;
            add(mark, RecordType::nvtxPop, 0);
            break;
        case FoldKind::start:
            mark.seq = m_seq++;
            add(mark, RecordType::nvtxStart, 0);
            break;
        case FoldKind::end:
            mark.seq = m_seq++;
            add(mark, RecordType::nvtxEnd, 0);
            break;
        default:
            break;
    }
    return m_cells;
}

}  // namespace rankscope::capture
