// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "injector/nvtx/nvtx_types.h"

namespace rankscope::injector::nvtx {

/// What NCCL tells of one of its calls through NVTX. Fields it did not tell keep these values.
struct NcclPayload {
    uint64_t commHash = 0;
    uint64_t bytes = 0;  ///< of one message
    uint64_t schemaId = 0;
    int32_t peerOrRoot = -1;
    int32_t rank = -1;
    int32_t nRanks = -1;
    int32_t device = -1;
    uint32_t redop = 0;
    bool isInit() const noexcept { return nRanks > 0; }
};

/// Keeps the layout of a schema. NCCL's fields are known by the names its schemas give them, so that another version's
/// layout or numbers do no harm. Returns the schema's id: the caller's own, or a new one.
uint64_t registerSchema(const nvtxPayloadSchemaAttr_t& attributes) noexcept;
uint64_t registerEnum(uint64_t wantedId) noexcept;

/// Reads every payload whose schema is known into `into`; true when there was one.
bool decode(const nvtxPayloadData_t* payloads, size_t count, NcclPayload& into) noexcept;

/// In a forked child.
void renewSchemaLock() noexcept;

}  // namespace rankscope::injector::nvtx
