// SPDX-License-Identifier: Apache-2.0
#include "injector/light/kernel_names.h"

#include <cstring>

#include "injector/record/string_table.h"

namespace rankscope::injector {
namespace {

/// As the collector knows NCCL's kernels (collector/ingest/communication_kernels.cpp), RCCL's and MSCCL's. CUPTI tells
/// mangled names: "_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE".
bool namesNccl(const char* name) noexcept {
    for (const char* const part :
         {"ncclKernel", "ncclDevKernel", "ncclSym", "mscclKernel", "rcclKernel", "rcclGenericKernel"})
        if (std::strstr(name, part) != nullptr) return true;
    return false;
}

}  // namespace

uint32_t KernelNames::numberOf(const char* name) noexcept {
    auto& recent = m_recent[(reinterpret_cast<uintptr_t>(name) >> 4) % kRecent];
    if (recent.name == name && recent.number != 0 && std::strcmp(name, text(recent.number)) == 0) return recent.number;
    const size_t bytes = std::strlen(name);
    const uint64_t id = stringId(name, bytes);
    for (uint64_t at = id;; ++at) {
        uint16_t& place = m_places[at % kPlaces];
        if (place == 0) {
            if (m_count == kNames || bytes >= kTextBytes - m_textBytes) return 0;
            place = static_cast<uint16_t>(++m_count);
            m_names[place] = {id, m_textBytes, static_cast<uint32_t>(bytes), namesNccl(name)};
            std::memcpy(m_texts + m_textBytes, name, bytes + 1);
            m_textBytes += static_cast<uint32_t>(bytes) + 1;
        } else if (m_names[place].id != id) {
            continue;
        }
        recent = {name, place};
        return place;
    }
}

void KernelNames::clear() noexcept {
    m_count = m_textBytes = 0;
    std::memset(m_places, 0, sizeof m_places);
    for (auto& recent : m_recent) recent = {};
}

}  // namespace rankscope::injector
