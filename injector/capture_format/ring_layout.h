// SPDX-License-Identifier: Apache-2.0
// Layout of NAME.ring, the file whose mapping holds the rings of a living process. After a clean end the file is
// unlinked; after a SIGKILL it holds what the writer thread had not yet moved into NAME.cap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::capture {

inline constexpr char kRingMagic[8] = {'R', 'A', 'N', 'K', 'R', 'I', 'N', 'G'};
inline constexpr size_t kRingFileHeaderBytes = 4096;
inline constexpr size_t kRingHeaderBytes = 4096;
inline constexpr uint32_t kRingMinCells = 512;
inline constexpr uint32_t kRingMaxCells = 1u << 20;
inline constexpr uint32_t kRingMaxCount = 4096;

/// First 4096 bytes of the file. Ring i starts at kRingFileHeaderBytes + i * (kRingHeaderBytes + cellsPerRing * 32).
struct RingFileHeader {
    char magic[8];
    uint32_t formatVersion;
    uint32_t endianMark;  ///< 0x01020304
    int32_t pid;
    uint32_t cellsPerRing;   ///< a power of two
    uint32_t ringCount;      ///< rings whose space exists; grows
    uint32_t unmapped;       ///< 1: the rings are in the process's own memory, and the file holds this header alone
    int64_t processStartNs;  ///< as in the FileHeader of the capture file: the two belong together
};
static_assert(sizeof(RingFileHeader) == 40);

/// First 4096 bytes of a ring; the cells follow. Positions count cells since the ring was made and never wrap; a cell's
/// place is position % cellsPerRing, and a record of several cells may wrap around the end.
struct RingHeader {
    // Written by the owning thread only.
    uint64_t head;         ///< every cell before it is committed (release store)
    uint64_t lostRecords;  ///< cumulative, of this thread
    int64_t lostFirstNs;
    int64_t lostLastNs;
    uint32_t threadIndex;
    int32_t tid;
    uint64_t reserved0[3];
    // Written by the writer thread only.
    uint64_t tail;         ///< every cell before it is in the capture file
    uint64_t pendingTail;  ///< tail once block pendingSequence is in the file; tells a reader whether the last write
                           ///< happened
    uint32_t pendingSequence;
    uint32_t reserved1;
    uint64_t reserved2[5];
};
static_assert(sizeof(RingHeader) == 128 && offsetof(RingHeader, tail) == 64);

}  // namespace rankscope::capture
