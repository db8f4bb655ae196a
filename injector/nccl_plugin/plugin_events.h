// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "injector/capture_format/records.h"

namespace rankscope::injector {

/// One communicator as NCCL's init call told it. Lives in a fixed table for as long as the process does.
struct PluginContext {
    uint64_t commHash = 0;
    void* chained = nullptr;  ///< context of the user's plugin
    int32_t rank = -1;
    bool used = false;
};

/// One event between its start and its stop. NCCL holds a pointer to it and may name it as a parent after its stop, so
/// handles come from rotating tables and are never freed; after kPluginEvents further operations, or kPluginChannels
/// channels, a handle is reused, which at worst loses an event. Channels have a table of their own: an operation has up
/// to 64 of them, and those of one must not take the places of those that the device has not come to.
struct PluginEvent {
    capture::PluginCollRecord record{};  ///< type padding: nothing of ours to write at the stop
    void* chained = nullptr;             ///< handle of the user's plugin for the same event
    uint64_t channelStart = 0;           ///< kernel channel: GPU timer at the start; operation: of its first channel
    uint64_t channelEnd = 0;             ///< operation: GPU timer at the end of its last channel
    PluginEvent* parent = nullptr;       ///< kernel channel: its operation, unless that place is used again
    uint32_t channelsEnded = 0;          ///< operation: not written yet
    uint32_t parentSeq = 0;
    uint16_t channel = 0;
    bool isChannel = false;
};
inline constexpr uint32_t kPluginEvents = 8192;
inline constexpr uint32_t kPluginChannels = 4096;

/// A collective or send/recv in the newest shape, whatever version NCCL speaks.
struct PluginOperation {
    const char* func;
    const char* dataType;
    const char* algorithm;  ///< null for send/recv
    const char* protocol;
    uint64_t seqNumber;
    uint64_t count;
    uint64_t commHash;
    int32_t peerOrRoot;
    int32_t rank;
    uint8_t nChannels;
    uint8_t nWarps;
    bool p2p;
};

/// A context for a new communicator; null when the table is full (then the plugin stays out of it). Remembers the hash
/// for the ncclCommInit… call in progress on this thread.
PluginContext* openContext(uint64_t commHash, int32_t rank, uint8_t version) noexcept;
/// The context behind a pointer NCCL gave back, or null when it is none of ours.
PluginContext* asContext(void* context) noexcept;
void closeContext(PluginContext* context) noexcept;

/// The events we want of NCCL: Coll and P2p, ProxyOp and ProxyStep unless RANKSCOPE_NCCL_PROXY=0; kernel channels only
/// when asked for, because they cost the job time.
int wantedEvents() noexcept;

PluginEvent* newEvent() noexcept;
PluginEvent* newChannel() noexcept;
/// The event behind a pointer NCCL gave back, or null when it is none of ours (another process's, with PXN).
PluginEvent* asEvent(void* handle) noexcept;

void beginOperation(PluginEvent& event, const PluginOperation& operation, uint8_t version) noexcept;
void beginChannel(PluginEvent& event, const PluginContext& context, PluginEvent* parent, uint16_t channel,
                  uint64_t gpuTimer) noexcept;
void endChannel(PluginEvent& event, uint64_t gpuTimer) noexcept;
/// Writes what the event holds. Once per event.
void endEvent(PluginEvent& event) noexcept;

/// In a forked child.
void renewPluginLock() noexcept;

}  // namespace rankscope::injector
