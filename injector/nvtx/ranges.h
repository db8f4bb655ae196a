// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/nvtx/domains.h"
#include "injector/nvtx/payload_schemas.h"

namespace rankscope::injector::nvtx {

/// An NVTX event in the shape we record it: what the many entry points have in common.
struct Event {
    const char* text = nullptr;  ///< need not be terminated
    size_t bytes = 0;
    uint32_t color = 0;
    uint32_t category = 0;
    uint64_t payload = 0;
    uint16_t payloadType = 0;
    const nvtxPayloadData_t* payloads = nullptr;  ///< extended payloads
    size_t payloadCount = 0;
};

Event eventOf(const nvtxEventAttributes_t* attributes, char* wideRoom, size_t wideRoomBytes) noexcept;

// All may be called by any thread at any time; they start the session when it is not running, keep errno and never
// fail.
void push(const Domain* domain, const Event& event) noexcept;
void pop(const Domain* domain, const nvtxPayloadData_t* payloads, size_t count) noexcept;
void mark(const Domain* domain, const Event& event) noexcept;
/// Returns the id of the range; never 0.
uint64_t start(const Domain* domain, const Event& event) noexcept;
void end(const Domain* domain, uint64_t rangeId) noexcept;
void nameThread(uint32_t tid, const char* name) noexcept;

}  // namespace rankscope::injector::nvtx
