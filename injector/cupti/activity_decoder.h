// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/cupti/stream_table.h"
#include "injector/record/block_builder.h"
#include "injector/record/ended_kernel.h"

namespace rankscope::injector::cupti {

using ActivityBlock = BlockBuilder<65536>;

/// Turns one CUPTI activity record into ours. Reads only fields that every layout from 11.8 to 13.x has at the same
/// place; `version` is cuptiGetVersion's and opens the few newer ones. Thread-safe.
class ActivityDecoder {
  public:
    constexpr ActivityDecoder() = default;

    void setVersion(uint32_t version) noexcept { m_version = version; }
    void decode(const void* activity, ActivityBlock& block, StringTable& strings) noexcept;
    enum class Ended : uint8_t { noKernel, untimed, kernel };
    /// `untimed`: without a begin or an end, as one that has not ended. Of a kernel writes its stream, when it is new.
    Ended decodeEnded(const void* activity, ActivityBlock& block, EndedKernel& kernel) noexcept;
    /// The index of a stream in the file; writes its record when it is new.
    uint16_t streamOf(CaptureSink& sink, uint32_t device, uint32_t context, uint32_t stream) noexcept;
    /// As StreamTable::indexOutside.
    uint16_t streamOutside(uint32_t context, uint32_t stream) noexcept {
        return m_streams.indexOutside(context, stream);
    }
    static bool isOfDevice(const void* activity) noexcept;
    void clear() noexcept { m_streams.clear(); }

  private:
    uint16_t stream(ActivityBlock& block, uint32_t device, uint32_t context, uint32_t stream) noexcept;
    /// For records without a device.
    uint16_t stream(ActivityBlock& block, uint32_t context, uint32_t stream) noexcept;
    void decodeKernel(const void* activity, ActivityBlock& block, StringTable& strings) noexcept;

    uint32_t m_version = 0;
    StreamTable m_streams;
};

}  // namespace rankscope::injector::cupti
