// SPDX-License-Identifier: Apache-2.0
#include "injector/nccl_plugin/plugin_events.h"

#include <atomic>

#include "injector/nccl_plugin/profiler_abi.h"
#include "injector/nccl_plugin/proxy_events.h"
#include "injector/nccl_plugin/vocabulary.h"
#include "injector/session/session.h"
#include "injector/text.h"

namespace rankscope::injector {

namespace {

constexpr size_t kContexts = 1024;

struct Tables {
    Mutex mutex;
    PluginContext contexts[kContexts];
    PluginEvent events[kPluginEvents];
    PluginEvent channels[kPluginChannels];
    std::atomic<uint32_t> nextEvent{0}, nextChannel{0};
    std::atomic<bool> told{false};
};

constinit Tables g_tables;

template <typename Entry, size_t kCount>
bool isIn(const Entry (&table)[kCount], const void* entry) noexcept {
    const auto at = reinterpret_cast<uintptr_t>(entry);
    const auto first = reinterpret_cast<uintptr_t>(table);
    return at >= first && at < first + sizeof table && (at - first) % sizeof(Entry) == 0;
}

/// What is known of the channels of an operation, once.
void writeSpan(PluginEvent& operation) noexcept {
    if (operation.channelsEnded == 0) return;
    operation.channelsEnded = 0;
    if (!g_session.isRecording(Cause::gpu)) return;
    capture::PluginChannelRecord record{};
    record.head = {capture::RecordType::pluginKernelChannel, 1, capture::kAllChannels};
    record.seq = operation.record.seq;
    record.startNs = static_cast<int64_t>(operation.channelStart);
    record.endNs = static_cast<int64_t>(operation.channelEnd);
    record.commHash = operation.record.commHash;
    // The stamps are the GPU's; the ring's own order needs none of them.
    g_session.push(record, 0);
}

/// Adds a channel to its operation. Written when all of them have ended; where NCCL tells fewer than it announced, when
/// the operation's place in the table is needed, or its communicator ends.
void addToSpan(PluginEvent& operation, uint64_t start, uint64_t end) noexcept {
    const bool first = operation.channelsEnded++ == 0;
    if (first || start < operation.channelStart) operation.channelStart = start;
    if (first || end > operation.channelEnd) operation.channelEnd = end;
    if (operation.channelsEnded >= operation.record.nChannels) writeSpan(operation);
}

}  // namespace

PluginContext* openContext(uint64_t commHash, int32_t rank, uint8_t version) noexcept {
    const ErrnoKeeper keep;
    if (commHash != 0) t_thread.toldCommHash = commHash;
    if (g_session.isAlive(Cause::gpu) && !g_tables.told.exchange(true)) {
        FixedText<32> message;
        message.append("profiler plugin v").append(static_cast<int64_t>(version));
        g_session.tellStatus(capture::Source::ncclPlugin, 1, 0, message.c_str());
    }
    const Lock lock(g_tables.mutex);
    for (auto& context : g_tables.contexts) {
        if (context.used) continue;
        context = {commHash, nullptr, rank, true};
        return &context;
    }
    return nullptr;
}

PluginContext* asContext(void* context) noexcept {
    return isIn(g_tables.contexts, context) ? static_cast<PluginContext*>(context) : nullptr;
}

void closeContext(PluginContext* context) noexcept {
    tellLostProxyOps();
    for (PluginEvent& event : g_tables.events)
        if (event.record.commHash == context->commHash) writeSpan(event);
    const Lock lock(g_tables.mutex);
    context->used = false;
}

void renewPluginLock() noexcept {
    g_tables.mutex.renew();
    for (PluginEvent& event : g_tables.events) event.channelsEnded = 0;  // the parent writes them
}

int wantedEvents() noexcept {
    int events = profiler_abi::coll | profiler_abi::p2p;
    if (g_session.config().ncclProxy) events |= profiler_abi::proxyOp | profiler_abi::proxyStep;
    if (g_session.config().ncclChannels != Config::Channels::none) events |= profiler_abi::kernelChannel;
    return events;
}

PluginEvent* newEvent() noexcept {
    const uint32_t index = g_tables.nextEvent.fetch_add(1, std::memory_order_relaxed) % kPluginEvents;
    PluginEvent& event = g_tables.events[index];
    writeSpan(event);
    event = {};
    return &event;
}

PluginEvent* newChannel() noexcept {
    const uint32_t index = g_tables.nextChannel.fetch_add(1, std::memory_order_relaxed) % kPluginChannels;
    PluginEvent& channel = g_tables.channels[index];
    channel = {};
    return &channel;
}

PluginEvent* asEvent(void* handle) noexcept {
    if (isIn(g_tables.events, handle) || isIn(g_tables.channels, handle)) return static_cast<PluginEvent*>(handle);
    return nullptr;
}

void beginOperation(PluginEvent& event, const PluginOperation& operation, uint8_t version) noexcept {
    if (!g_session.isRecording(Cause::gpu)) return;
    capture::PluginCollRecord& record = event.record;
    record.head.type = operation.p2p ? capture::RecordType::pluginP2p : capture::RecordType::pluginColl;
    record.head.cells = sizeof record / capture::kCellBytes;
    record.head.aux = static_cast<uint16_t>(opFromWord(operation.func));
    record.seq = g_session.nextSeq();
    record.startNs = g_session.now();
    record.commHash = operation.commHash;
    record.seqNumber = operation.seqNumber;
    record.count = operation.count;
    record.algorithm = static_cast<uint8_t>(algorithmFromWord(operation.algorithm));
    record.protocol = static_cast<uint8_t>(protocolFromWord(operation.protocol));
    record.nChannels = operation.nChannels;
    record.nWarps = operation.nWarps;
    record.dataType = dataTypeFromWord(operation.dataType);
    record.pluginVersion = version;
    record.peerOrRoot = operation.peerOrRoot;
    record.rank = operation.rank;
}

void beginChannel(PluginEvent& event, const PluginContext& context, PluginEvent* parent, uint16_t channel,
                  uint64_t gpuTimer) noexcept {
    event.isChannel = true;
    event.channel = channel;
    event.channelStart = gpuTimer;
    event.parentSeq = parent == nullptr ? 0 : parent->record.seq;
    event.parent = parent;
    event.record.commHash = context.commHash;
}

void endChannel(PluginEvent& event, uint64_t gpuTimer) noexcept {
    if (!event.isChannel || !g_session.isRecording(Cause::gpu)) return;
    PluginEvent* parent = event.parent;
    // The parent's place may have been given to another operation since.
    if (g_session.config().ncclChannels == Config::Channels::spans && parent != nullptr &&
        parent->record.seq == event.parentSeq && parent->record.commHash == event.record.commHash) {
        event.isChannel = false;
        return addToSpan(*parent, event.channelStart, gpuTimer);
    }
    capture::PluginChannelRecord record{};
    record.head = {capture::RecordType::pluginKernelChannel, 1, event.channel};
    record.seq = event.parentSeq;
    record.startNs = static_cast<int64_t>(event.channelStart);
    record.endNs = static_cast<int64_t>(gpuTimer);
    record.commHash = event.record.commHash;
    event.isChannel = false;
    // The channel's stamps are the GPU's; the ring's own order needs none of them.
    g_session.push(record, 0);
}

void endEvent(PluginEvent& event) noexcept {
    if (event.record.head.type == capture::RecordType::padding || !g_session.isRecording(Cause::gpu)) return;
    event.record.endNs = g_session.now();
    g_session.push(event.record, event.record.endNs);
    event.record.head.type = capture::RecordType::padding;
}

}  // namespace rankscope::injector
