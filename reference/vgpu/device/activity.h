// SPDX-License-Identifier: Apache-2.0
// CUPTI's activity side: which kinds are wanted, the record buffers, and how finished work becomes records.
#pragma once

#include <cstdint>

#include "reference/vgpu/device/local_process.h"
#include "reference/vgpu/device/memory.h"
#include "reference/vgpu/engine/public_api.h"

namespace rankscope::vgpu {

/// True while records of this kind are asked for.
bool activityWanted(CUpti_ActivityKind kind);
bool apiWanted(CUpti_CallbackDomain domain, CUpti_CallbackId id);

/// Appends a record of any kind; `bytes` is its size. Full buffers are kept until deliverBuffers.
void appendRecord(const void* record, size_t bytes);

/// Turns a finished operation into its record; times are stamps.
void recordOperation(const OpReport& report, int64_t startNs, int64_t endNs);

/// A piece of memory that comes or goes.
struct MemoryEvent {
    bool isRelease;
    MemoryKind kind;
    const void* address;
    uint64_t bytes;
    uint32_t correlation, deviceId, streamId;
    bool isAsync;
};
void recordMemory(const MemoryEvent& event, int64_t stampNs);
/// A kind of memory in CUPTI's numbers.
uint8_t activityMemoryKind(MemoryKind kind);

/// A launched graph as one record, by the report of any of its nodes.
void recordGraph(const OpReport& report, int64_t startNs, int64_t endNs);

/// Records of the ids pushed by the calling thread, tied to `correlation`.
void recordExternalCorrelation(uint32_t correlation);

/// Hands full buffers (and with `partial` the one being filled) to the client. Called without any lock held.
void deliverBuffers(bool partial);

uint32_t nextCorrelation();
void resetActivityAfterFork();

/// Length of a record in a buffer, 0 for kinds that are never written.
size_t recordBytes(CUpti_ActivityKind kind);

}  // namespace rankscope::vgpu
