// SPDX-License-Identifier: Apache-2.0
#include "injector/light/call_folder.h"

#include <atomic>
#include <cstring>

namespace rankscope::injector {

using capture::FoldFlags;
using capture::FoldGroup;
using capture::FoldItem;
using capture::FoldKey;
using capture::FoldKind;
using capture::RecordType;

namespace {

template <typename Record>
Record load(const uint8_t* bytes) noexcept {
    Record record;
    std::memcpy(&record, bytes, sizeof record);
    return record;
}

uint64_t placeOf(uint64_t commHash, uint32_t seq) noexcept {
    return ((commHash ^ seq) * 0x9e3779b97f4a7c15ull) >> 32;
}

}  // namespace

void CallFolder::begin(Write write, void* to, const SlowSteps& slowSteps, const StepBegins& stepBegins,
                       CountLoss countLoss, void* lossesTo) noexcept {
    m_countLoss = countLoss;
    m_lossesTo = lossesTo;
    m_slowSteps = slowSteps;
    m_stepBegins = stepBegins;
    m_write = write;
    m_to = to;
}

void CallFolder::take(uint32_t thread, const uint8_t* bytes) noexcept {
    const auto head = load<capture::RecordHead>(bytes);
    switch (head.type) {
        case RecordType::string: {
            const auto record = load<capture::StringRecord>(bytes);
            m_marks.noteText(record.id, reinterpret_cast<const char*>(bytes) + sizeof record, head.aux);
            break;
        }
        case RecordType::communicator: {
            const auto record = load<capture::CommunicatorRecord>(bytes);
            m_hashes[record.index % kCommunicators] = {record.hash, record.index};
            break;
        }
        case RecordType::ncclCall:
            takeCall(thread, load<capture::NcclCallRecord>(bytes));
            break;
        case RecordType::pluginColl:
        case RecordType::pluginP2p:
            takePlugin(load<capture::PluginCollRecord>(bytes));
            break;
        case RecordType::pluginKernelChannel:
            takeChannel(load<capture::PluginChannelRecord>(bytes));
            break;
        case RecordType::pluginProxyOp:
            takeProxyOp(load<capture::PluginProxyOpRecord>(bytes));
            break;
        case RecordType::nvtxPush:
        case RecordType::nvtxPop:
        case RecordType::nvtxStart:
        case RecordType::nvtxEnd:
            takeMark(thread, load<capture::NvtxRecord>(bytes));
            break;
        default:
            return;
    }
    settle();
}

CallFolder::Waiting& CallFolder::append() noexcept {
    if (m_end - m_first == kCalls) emitFirst();
    Waiting& waiting = at(m_end++);
    waiting = Waiting{};
    return waiting;
}

/// 0: another communicator has its place by now, and what the plugin says of either must not be told of the other.
uint64_t CallFolder::hashOf(const capture::NcclCallRecord& record) noexcept {
    const CommunicatorHash& known = m_hashes[record.communicator % kCommunicators];
    if (known.index == record.communicator) return known.hash;
    if (known.index > record.communicator && m_countLoss != nullptr)
        m_countLoss(m_lossesTo, capture::LossKind::tooManyCommunicators, 1, record.startNs);
    return 0;
}

void CallFolder::takeCall(uint32_t thread, const capture::NcclCallRecord& record) noexcept {
    Waiting& call = append();
    FoldKey& key = call.item.key;
    key.thread = thread;
    key.kind = FoldKind::call;
    uint32_t& lastGroup = m_lastGroup[thread % kThreads];
    key.group = record.groupId == 0           ? FoldGroup::none
                : record.groupId == lastGroup ? FoldGroup::same
                                              : FoldGroup::first;
    lastGroup = record.groupId;
    key.op = static_cast<uint8_t>(record.head.aux);
    key.dataType = record.dataType;
    key.reduceOp = record.reduceOp;
    key.result = record.result;
    key.communicator = record.communicator;
    key.peerOrRoot = record.peerOrRoot;
    key.count = record.count;
    key.stream = record.stream;
    key.commHash = hashOf(record);
    call.item.startNs = record.startNs;
    call.endNs = record.endNs;
    if (record.endNs > m_newestNs) m_newestNs = record.endNs;
    // Inside a call only what the plugin said since its begin can be about it.
    for (Early& early : m_early) {
        if (!early.used || early.record.commHash != key.commHash || early.record.head.aux != key.op) continue;
        early.used = false;
        if (early.record.startNs < record.startNs) continue;
        return attach(m_end - 1, early.record);
    }
}

void CallFolder::takePlugin(const capture::PluginCollRecord& record) noexcept {
    if (m_bare < m_first) m_bare = m_first;
    bool isFirst = true;
    for (uint64_t position = m_bare; position != m_end; ++position) {
        const Waiting& call = at(position);
        const FoldKey& key = call.item.key;
        const bool isBare = key.kind == FoldKind::call && (key.flags & capture::foldHasPlugin) == 0;
        if (isBare && key.commHash == record.commHash && key.op == record.head.aux &&
            call.item.startNs <= record.startNs) {
            attach(position, record);
            if (isFirst) m_bare = position + 1;
            return;
        }
        if (isBare) isFirst = false;
        if (isFirst) m_bare = position + 1;
    }
    Early& early = m_early[m_nextEarly++ % kEarly];
    early.record = record;
    early.used = true;
}

void CallFolder::attach(uint64_t position, const capture::PluginCollRecord& record) noexcept {
    Waiting& call = at(position);
    FoldKey& key = call.item.key;
    key.flags |= capture::foldHasPlugin;
    key.algorithm = record.algorithm;
    key.protocol = record.protocol;
    key.nChannels = record.nChannels;
    key.nWarps = record.nWarps;
    key.pluginRank = record.rank;
    key.pluginVersion = record.pluginVersion;
    call.pluginStartNs = record.startNs;
    call.pluginSeq = record.seq;
    m_places[placeOf(record.commHash, record.seq) % kPlaces] = position + 1;
    Ahead* ahead = findAhead(record.commHash, record.seq);
    if (ahead == nullptr) return;
    ahead->used = false;
    key.flags |= ahead->told.key.flags;
    call.item.deviceStartNs = ahead->told.deviceStartNs;
    call.item.deviceEndNs = ahead->told.deviceEndNs;
    if (ahead->parentStartNs != record.startNs) return;
    key.sends = ahead->told.key.sends;
    std::memcpy(key.send, ahead->told.key.send, sizeof key.send);
    std::memcpy(call.item.networkNs, ahead->told.networkNs, sizeof call.item.networkNs);
}

CallFolder::Waiting* CallFolder::find(uint64_t commHash, uint32_t seq) noexcept {
    const uint64_t place = m_places[placeOf(commHash, seq) % kPlaces];
    if (place == 0 || place - 1 < m_first || place - 1 >= m_end) return nullptr;
    Waiting& call = at(place - 1);
    return call.pluginSeq == seq && call.item.key.commHash == commHash ? &call : nullptr;
}

CallFolder::Ahead* CallFolder::findAhead(uint64_t commHash, uint32_t seq) noexcept {
    const uint32_t place = m_aheadPlaces[placeOf(commHash, seq) % kAheadPlaces];
    if (place == 0) return nullptr;
    Ahead& ahead = m_ahead[place - 1];
    return ahead.used && ahead.seq == seq && ahead.commHash == commHash ? &ahead : nullptr;
}

CallFolder::Ahead& CallFolder::aheadOf(uint64_t commHash, uint32_t seq) noexcept {
    if (Ahead* known = findAhead(commHash, seq)) return *known;
    const uint32_t index = m_nextAhead++ % kAhead;
    m_aheadPlaces[placeOf(commHash, seq) % kAheadPlaces] = index + 1;
    Ahead& ahead = m_ahead[index];
    ahead = Ahead{};
    ahead.commHash = commHash;
    ahead.seq = seq;
    ahead.used = true;
    return ahead;
}

void CallFolder::addSpan(const capture::PluginChannelRecord& record, FoldItem& item) noexcept {
    const bool isFirst = (item.key.flags & capture::foldHasSpan) == 0;
    item.key.flags |= capture::foldHasSpan;
    if (isFirst || record.startNs < item.deviceStartNs) item.deviceStartNs = record.startNs;
    if (isFirst || record.endNs > item.deviceEndNs) item.deviceEndNs = record.endNs;
}

void CallFolder::addSend(const capture::PluginProxyOpRecord& record, FoldItem& item) noexcept {
    FoldKey& key = item.key;
    size_t i = 0;
    while (i < key.sends && key.send[i].peer != record.peer) ++i;
    if (i == capture::kFoldSends) return;
    if (i == key.sends) {
        ++key.sends;
        key.send[i].peer = record.peer;
    }
    key.send[i].steps += record.steps;
    key.send[i].bytes += record.bytes;
    if (record.networkWaitNs > item.networkNs[i]) item.networkNs[i] = record.networkWaitNs;
}

void CallFolder::takeChannel(const capture::PluginChannelRecord& record) noexcept {
    Waiting* call = find(record.commHash, record.seq);
    addSpan(record, call != nullptr ? call->item : aheadOf(record.commHash, record.seq).told);
}

void CallFolder::takeProxyOp(const capture::PluginProxyOpRecord& record) noexcept {
    const bool isForeign = (record.flags & 1) != 0;
    if (record.isSend == 0 || isForeign) return;
    if (Waiting* call = find(record.commHash, record.parentSeq)) {
        if (call->pluginStartNs == record.parentStartNs) addSend(record, call->item);
        return;
    }
    Ahead& ahead = aheadOf(record.commHash, record.parentSeq);
    if (ahead.parentStartNs == 0) ahead.parentStartNs = record.parentStartNs;
    if (ahead.parentStartNs == record.parentStartNs) addSend(record, ahead.told);
}

void CallFolder::takeMark(uint32_t thread, const capture::NvtxRecord& record) noexcept {
    FoldKind kind = FoldKind::none;
    if (record.timeNs > m_newestNs) m_newestNs = record.timeNs;
    switch (record.head.type) {
        case RecordType::nvtxPush:
            if (record.domain == 0 && m_marks.isStep(record.name)) noteStep(thread, record.timeNs);
            if (m_marks.push(thread, record.name, record.domain == 0)) kind = FoldKind::push;
            break;
        case RecordType::nvtxPop:
            if (m_marks.pop(thread)) kind = FoldKind::pop;
            break;
        case RecordType::nvtxStart:
            if (record.domain == 0 && m_marks.start(record.name, record.rangeId)) kind = FoldKind::start;
            break;
        case RecordType::nvtxEnd:
            if (m_marks.end(record.rangeId)) kind = FoldKind::end;
            break;
        default:
            break;
    }
    if (kind == FoldKind::none) return;
    Waiting& mark = append();
    mark.item.key.thread = thread;
    mark.item.key.kind = kind;
    mark.item.startNs = record.timeNs;
    mark.item.name = record.name;
    mark.item.rangeId = record.rangeId;
}

void CallFolder::noteStep(uint32_t thread, int64_t ns) noexcept {
    const int64_t tookNs = m_pace.begin(thread, m_marks.depth(thread), ns);
    if (tookNs >= 0) m_sampler.stepBegins(ns);
    if (tookNs >= 0 && m_stepBegins.call != nullptr) m_stepBegins.call(m_stepBegins.to, ns);
    const int64_t medianNs = m_pace.medianNs();
    if (m_slowSteps.counter == nullptr || m_slowSteps.factorE9 == 0 || medianNs == 0) return;
    if (static_cast<double>(tookNs) * 1e9 <= static_cast<double>(medianNs) * static_cast<double>(m_slowSteps.factorE9))
        return;
    std::atomic_ref(*m_slowSteps.counter).fetch_add(1, std::memory_order_relaxed);
}

bool CallFolder::isWhole(const Waiting& waiting) const noexcept {
    const FoldKey& key = waiting.item.key;
    // The plugin told of it, and tells of its time on the device when that is over, with NCCL 2.27 and newer.
    const uint8_t told = key.flags & (capture::foldHasPlugin | capture::foldHasSpan);
    return key.kind != FoldKind::call || told != capture::foldHasPlugin;
}

bool CallFolder::isSettled(const Waiting& waiting) const noexcept {
    const bool isCall = waiting.item.key.kind == FoldKind::call;
    return isWhole(waiting) && (!isCall || m_newestNs - waiting.endNs >= kSettleNs);
}

void CallFolder::settle() noexcept {
    while (m_first != m_end && isSettled(at(m_first))) emitFirst();
}

void CallFolder::settleUntil(int64_t ns, int64_t inAnyCaseNs) noexcept {
    // In their order: what comes behind one that began later waits with it, and began about then.
    while (m_first != m_end) {
        const Waiting& waiting = at(m_first);
        if (waiting.item.startNs >= ns || (!isWhole(waiting) && waiting.item.startNs >= inAnyCaseNs)) return;
        emitFirst();
    }
}

void CallFolder::emitFirst() noexcept {
    Waiting& waiting = at(m_first++);
    const int64_t startNs = waiting.item.startNs;
    if (waiting.item.key.kind != FoldKind::call) return emit(waiting);
    if (!m_sampler.keeps(startNs)) return leaveOut(waiting.item);
    if (m_gapCount != 0) {
        m_sampler.noteBytes(startNs, sizeof(capture::BlockHeader) + m_gapCount * sizeof m_gaps[0]);
        flushGaps();
    }
    const size_t before = m_encoder.itemBytes();
    emit(waiting);
    const size_t behind = m_encoder.itemBytes();  // less than before where a record was full
    m_sampler.noteBytes(startNs, behind > before ? behind - before : behind);
}

void CallFolder::leaveOut(const FoldItem& item) noexcept {
    const FoldKey& key = item.key;
    const auto op = static_cast<capture::NcclOp>(key.op);
    const bool isMessage = op == capture::NcclOp::send || op == capture::NcclOp::recv;
    const uint16_t aux = isMessage ? key.op : 0;
    const int32_t peer = isMessage ? key.peerOrRoot : -1;
    if (const bool isBefore = item.startNs < m_edgeNs; isBefore != m_gapsAreBefore) {
        flushGaps();
        m_gapsAreBefore = isBefore;
    }
    for (uint32_t i = 0; i < m_gapCount; ++i) {
        capture::CallGapRecord& gap = m_gaps[i];
        if (gap.communicator != key.communicator || gap.head.aux != aux || gap.peer != peer) continue;
        ++gap.calls;
        if (item.startNs < gap.fromNs) gap.fromNs = item.startNs;
        if (item.startNs > gap.untilNs) gap.untilNs = item.startNs;
        return;
    }
    if (m_gapCount == kGaps) flushGaps();
    m_gaps[m_gapCount++] = {{RecordType::callGap, 1, aux}, key.communicator, item.startNs, item.startNs, 1, peer};
}

void CallFolder::flushGaps() noexcept {
    if (m_gapCount == 0) return;
    int64_t lastNs = m_gaps[0].untilNs;
    for (uint32_t i = 1; i < m_gapCount; ++i)
        if (m_gaps[i].untilNs > lastNs) lastNs = m_gaps[i].untilNs;
    m_write(m_to, m_gaps, m_gapCount * sizeof m_gaps[0], m_gapCount, lastNs);
    m_gapCount = 0;
}

void CallFolder::noteEdge(int64_t ns) noexcept {
    flushGaps();
    m_edgeNs = ns;
}

void CallFolder::emit(Waiting& waiting) noexcept {
    FoldKey& key = waiting.item.key;
    for (size_t i = 1; i < key.sends; ++i)  // in the order of the peers, whoever was first
        for (size_t j = i; j > 0 && key.send[j].peer < key.send[j - 1].peer; --j) {
            const capture::FoldSend send = key.send[j];
            key.send[j] = key.send[j - 1];
            key.send[j - 1] = send;
            const int64_t ns = waiting.item.networkNs[j];
            waiting.item.networkNs[j] = waiting.item.networkNs[j - 1];
            waiting.item.networkNs[j - 1] = ns;
        }
    if (m_encoder.add(waiting.item)) return;
    flushFold();
    m_encoder.add(waiting.item);
}

void CallFolder::flush() noexcept {
    flushGaps();
    flushFold();
}

void CallFolder::flushFold() noexcept {
    const void* record = m_encoder.record();
    if (record == nullptr) return;
    m_write(m_to, record, m_encoder.recordBytes(), 1, capture::recordTimeNs(record));
    m_encoder.finish();
}

void CallFolder::clear() noexcept {
    m_first = m_end = m_bare = 0;
    m_newestNs = 0;
    std::memset(m_lastGroup, 0, sizeof m_lastGroup);
    for (CommunicatorHash& known : m_hashes) known = {};
    std::memset(m_places, 0, sizeof m_places);
    for (Early& early : m_early) early.used = false;
    for (uint32_t i = 0; i < m_nextAhead && i < kAhead; ++i) m_ahead[i].used = false;  // pages never used stay so
    m_nextAhead = 0;
    m_marks.clear();
    m_pace = {};
    m_sampler.clear();
    m_gapCount = 0;
    m_edgeNs = 0;
    m_encoder.clear();
}

}  // namespace rankscope::injector
