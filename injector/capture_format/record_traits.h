// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/capture_format/records.h"

namespace rankscope::capture {

/// Bytes the struct of a record type needs; 0 for a type this version does not know.
size_t recordStructBytes(RecordType type) noexcept;

/// Newest timestamp of a record, or 0 when its type carries none. `record` must hold recordStructBytes(type) bytes.
int64_t recordTimeNs(const void* record) noexcept;

/// Whether a record tells that its process gets on: work of the device, launches, and NCCL's calls and transfers. A
/// process that stands still goes on asking for events and errors (watchdogs), and may close ranges. `record` as above.
bool isProgress(const void* record) noexcept;

/// Bytes that follow the struct: text of a string record, key and value of a metadata record, items of a fold record or
/// a kernel summary; 0 for all others.
size_t recordTextBytes(const void* record) noexcept;

/// Cells a record with `bytes` bytes occupies.
constexpr size_t cellsFor(size_t bytes) noexcept {
    return (bytes + kCellBytes - 1) / kCellBytes;
}

inline constexpr size_t kMaxRecordCells = 255;
/// What recordTimeNs() reads of a record at most.
inline constexpr size_t kMaxTimedCells = cellsFor(sizeof(PluginProxyOpRecord));
/// Longest text a StringRecord carries; what is longer is cut and says so in fullBytes.
inline constexpr size_t kMaxTextBytes = kMaxRecordCells * kCellBytes - sizeof(StringRecord) - 16;

}  // namespace rankscope::capture
