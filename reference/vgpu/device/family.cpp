// SPDX-License-Identifier: Apache-2.0
// Processes that are forked off, and what runs through pipes between them and inside them.
#include <unistd.h>

#include <algorithm>

#include "reference/vgpu/device/data_plane.h"
#include "reference/vgpu/device/local_process.h"
#include "reference/vgpu/device/operator_scope.h"

namespace rankscope::vgpu {
namespace {

/// The channel that is read under `key`; a new one takes the place of the one that was not used longest. Arena::lock is
/// held.
Channel& channelOf(Arena& arena, uint64_t key) {
    Channel* oldest = &arena.pipes[0];
    for (Channel& channel : arena.pipes) {
        if (channel.key == key) {
            channel.usedAt = ++arena.pipeUses;
            return channel;
        }
        if (channel.usedAt < oldest->usedAt) oldest = &channel;
    }
    *oldest = Channel{};
    oldest->key = key;
    oldest->usedAt = ++arena.pipeUses;
    return *oldest;
}

Channel::Message& messageAt(Channel& channel, uint32_t place) {
    return channel.messages[(channel.firstMessage + place) % kMessagesPerChannel];
}

bool hasUnread(const Arena& arena, uint64_t key) {
    return std::any_of(std::begin(arena.pipes), std::end(arena.pipes),
                       [&](const Channel& channel) { return channel.key == key && channel.messageCount > 0; });
}

SocketEnd* findSocket(Arena& arena, uint64_t socket) {
    SocketEnd* const last = arena.socketEnds + arena.socketEndCount;
    SocketEnd* const found =
        std::find_if(arena.socketEnds, last, [&](const SocketEnd& end) { return end.socket == socket; });
    return found == last ? nullptr : found;
}

bool waitsFor(const HostThread& thread, uint64_t key) {
    return thread.state == ThreadState::parked && thread.parkKind == ParkKind::outside &&
           std::find(thread.waitKeys, thread.waitKeys + thread.waitKeyCount, key) !=
               thread.waitKeys + thread.waitKeyCount;
}

}  // namespace

LocalProcess::Child LocalProcess::prepareFork(const ThreadClock& thread) {
    SharedLock lock(m_arena->lock);
    Child child;
    child.index = reserveProcess(*m_arena, m_index);
    if (child.index == kNone) return child;
    Process& process = m_arena->processes[child.index];
    process.lastClockNs = thread.ns;
    child.thread = &addThread(child.index, thread.ns, 0);
    engine().mergeIslands(m_index, child.index);
    return child;
}

void LocalProcess::forkEnded(Child child, int32_t pid) {
    if (child.index == kNone) return;
    SharedLock lock(m_arena->lock);
    Process& process = m_arena->processes[child.index];
    if (pid < 0) {
        engine().removeProcess(child.index);
        return;
    }
    if (process.pid != 0) return;  // the child was quicker
    process.startTime = processStartTime(pid);
    process.pid = pid;
}

void LocalProcess::beginForked(Arena& arena, Child child) {
    if (child.index == kNone) return;
    {
        SharedLock lock(arena.lock);
        Process& process = arena.processes[child.index];
        process.pid = getpid();
        process.startTime = processStartTime(process.pid);
    }
    reopenArena();
    instance().takePlace(arena, child);
}

void LocalProcess::beginStarted(const char* arenaPath, uint32_t index, uint32_t thread) {
    Arena* arena = joinArena(arenaPath);
    if (!arena || index >= arena->processCount || thread >= arena->threadCount) return;
    const Process& process = arena->processes[index];
    if (process.alive && process.pid == getpid()) instance().takePlace(*arena, {index, &arena->threads[thread]});
}

void LocalProcess::takePlace(Arena& arena, Child child) {
    m_arena = &arena;
    m_index = child.index;
    m_order.resize(kOpsPerProcess);
    adoptThread(child.thread);
}

void LocalProcess::tellWritten(uint64_t key, uint64_t bytes, int64_t ns) {
    SharedLock lock(m_arena->lock);
    Channel& channel = channelOf(*m_arena, key);
    channel.writtenBytes += bytes;
    if (channel.messageCount == kMessagesPerChannel) {  // the oldest counts as sent with the next one
        Channel::Message& second = messageAt(channel, 1);
        second.sentNs = std::max(second.sentNs, messageAt(channel, 0).sentNs);
        channel.firstMessage++;
        channel.messageCount--;
    }
    messageAt(channel, channel.messageCount++) = {channel.writtenBytes, ns};
    if (ns == kNoClock) return;
    for (uint32_t t = 0; t < m_arena->threadCount; t++)
        if (waitsFor(m_arena->threads[t], key)) {
            HostThread& waiting = m_arena->threads[t];
            engine().enter(waiting, ns);
            waiting.futex.fetch_add(1, std::memory_order_release);
            wakeBehindLock(waiting.futex);
        }
}

int64_t LocalProcess::whenWritten(uint64_t key, uint64_t bytes) {
    SharedLock lock(m_arena->lock);
    Channel& channel = channelOf(*m_arena, key);
    channel.readBytes = bytes == kAllBytes ? channel.writtenBytes : channel.readBytes + bytes;
    int64_t ns = kNoClock;
    uint64_t beginByte = 0;
    while (channel.messageCount) {
        const Channel::Message& message = messageAt(channel, 0);
        if (beginByte >= channel.readBytes) break;
        ns = std::max(ns, message.sentNs);
        if (message.endByte > channel.readBytes) break;
        beginByte = message.endByte;
        channel.firstMessage++;
        channel.messageCount--;
    }
    // Somebody wrote who does not tell: what comes next is counted from here.
    if (channel.readBytes > channel.writtenBytes) channel.writtenBytes = channel.readBytes;
    return ns;
}

int64_t LocalProcess::whenReadable(uint64_t key) {
    SharedLock lock(m_arena->lock);
    Channel& channel = channelOf(*m_arena, key);
    for (uint32_t i = 0; i < channel.messageCount; i++)
        if (const Channel::Message& message = messageAt(channel, i); message.endByte > channel.readBytes)
            return message.sentNs;
    return kNoClock;
}

void LocalProcess::tellSocket(uint64_t socket, SocketChannels channels) {
    SharedLock lock(m_arena->lock);
    SocketEnd* place = findSocket(*m_arena, socket);
    if (!place && m_arena->socketEndCount < kMaxSocketEnds) place = &m_arena->socketEnds[m_arena->socketEndCount++];
    if (!place)
        place = std::min_element(std::begin(m_arena->socketEnds), std::end(m_arena->socketEnds),
                                 [](const SocketEnd& a, const SocketEnd& b) { return a.usedAt < b.usedAt; });
    *place = {socket, channels.reads, channels.writes, ++m_arena->pipeUses};
}

LocalProcess::SocketChannels LocalProcess::channelsOf(uint64_t socket) {
    SharedLock lock(m_arena->lock);
    SocketEnd* end = findSocket(*m_arena, socket);
    if (!end) return {};
    end->usedAt = ++m_arena->pipeUses;
    return {end->reads, end->writes};
}

void LocalProcess::parkOutside(ThreadClock& thread, const char* call, int64_t deadlineNs,
                               std::span<const uint64_t> keys) {
    priceUnpricedLaunches();
    HostThread& shared = *thread.shared;
    sharedProcess().hostSleepers.fetch_add(1);
    DataPlane::instance().catchUp();
    SharedLock lock(m_arena->lock);
    shared.waitKeyCount = static_cast<uint32_t>(std::min<size_t>(keys.size(), kMaxWaitKeys));
    std::copy_n(keys.begin(), shared.waitKeyCount, shared.waitKeys);
    for (const uint64_t key : keys)
        if (hasUnread(*m_arena, key)) return;  // it came since the thread looked, so it is not blocked for long
    parkHere(thread, ParkKind::outside, call, deadlineNs, 0);
}

}  // namespace rankscope::vgpu
