// SPDX-License-Identifier: Apache-2.0
// NCCL's calls as Nsight Systems records them: NVTX ranges of NCCL's domain, and what NCCL tells of each in a payload.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/importers/nsys_database.h"
#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// What the payload of one range tells; empty what it does not.
struct NcclPayload {
    std::optional<int64_t> communicator;  ///< its hash, the same on every member
    std::optional<int64_t> bytes;         ///< that this rank hands in, or gets of a reduce-scatter
    std::optional<int64_t> rank, ranks;   ///< in the communicator; of ncclCommInitRank and its like
    std::optional<int64_t> peer;          ///< rank in the communicator
};

/// Reads payloads by the schemas that NCCL registered (tables NVTX_PAYLOAD_SCHEMAS and _ENTRIES; NCCL since 2.19).
class NsysPayloads {
  public:
    NsysPayloads(NsysDatabase& database, ImportLosses& losses);

    /// `blob` is NVTX_EVENTS.binaryData of an export with --include-blobs true: 32 bytes of header (domain and schema
    /// in the first and third 32-bit word, sizes of the payload and of all as 64-bit words from byte 16), then the
    /// payload. Nothing of a blob that is shorter than its schema, or of an unknown one.
    NcclPayload read(std::string_view blob) const;

  private:
    enum class Meaning : uint8_t { communicator, bytes, rank, ranks, peer };
    struct Field {
        Meaning meaning{};
        size_t offset = 0;
        size_t size = 0;
    };
    std::map<std::pair<int64_t, int64_t>, std::vector<Field>> m_fields;  // by domain and schema
};

/// One range of NCCL's domain.
struct NcclRange {
    enum class Kind : uint8_t { operation, groupStart, groupEnd, init };
    Kind kind{};
    store::Op op = store::Op::unknown;
    int32_t thread = 0;
    int64_t startNs = 0;
    int64_t endNs = 0;
    NcclPayload payload;
};

/// What the name of a range of NCCL's domain says: "ncclAllReduce", "ncclGroupEnd". None for what moves no bytes and
/// tells nothing of a communicator.
std::optional<std::pair<NcclRange::Kind, store::Op>> parseNcclRange(std::string_view name);

/// Operations that NCCL starts together, since they are one group, or one alone.
struct NcclBatch {
    int32_t thread = 0;
    int64_t startNs = 0;
    int64_t endNs = 0;
    std::vector<NcclRange> operations;
};

/// A launch of one of NCCL's kernels.
struct NcclLaunch {
    int32_t thread = 0;
    int64_t startNs = 0;
};

/// Batches by (thread, start). A group that began or ended outside the recording is what is seen of it. `launches`, by
/// (thread, start), show where a group is over whose end is not recorded, since calls within a group launch nothing;
/// `unended` is how many those were.
std::vector<NcclBatch> batchesOf(std::vector<NcclRange> ranges, const std::vector<NcclLaunch>& launches,
                                 int64_t& unended);

}  // namespace rankscope::collector
