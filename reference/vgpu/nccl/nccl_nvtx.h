// SPDX-License-Identifier: Apache-2.0
// The NVTX ranges NCCL itself emits: domain "NCCL", registered names, payloads by schema.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::vgpu {

/// Schema numbers of NCCL 2.28 (nvtx.h); the id on the wire is 0x1000000 more.
enum class NcclSchema : uint32_t {
    commInitRank = 0,
    commInitAll = 1,
    commDestroy = 2,
    commAbort = 3,
    allGather = 4,
    allReduce = 5,
    broadcast = 6,
    reduceScatter = 7,
    reduce = 8,
    send = 9,
    recv = 10,
    commInitRankConfig = 11,
    commInitRankScalable = 12,
    commSplit = 13,
    commFinalize = 14,
    commShrink = 15,
    allToAll = 16,
    gather = 17,
    scatter = 18,
};

/// The range of one NCCL call. Calls with a payload known at entry push it; those that make a communicator hand it over
/// at the end.
class NcclRange {
  public:
    /// A collective or message: `detail` is the root, the peer or the reduction, whichever the schema has.
    NcclRange(const char* name, NcclSchema schema, uint64_t commHash, size_t bytes, int detail = 0, int op = 0);
    /// A range whose payload comes with its end.
    NcclRange(const char* name, NcclSchema schema);
    ~NcclRange();
    NcclRange(const NcclRange&) = delete;
    NcclRange& operator=(const NcclRange&) = delete;

    void setCommunicator(uint64_t commHash, int size, int rank, int device);
    void setSplit(uint64_t newHash, uint64_t parentHash, int size, int rank, int device, int color, int key);

  private:
    bool m_active = false;
    NcclSchema m_schema;
    uint64_t m_payload[6]{};
    size_t m_payloadBytes = 0;
};

}  // namespace rankscope::vgpu
