// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "injector/record/mutex.h"

namespace rankscope::injector::cupti {

/// Numbers the (device, context, stream) triples of this file 0, 1…
class StreamTable {
  public:
    static constexpr uint32_t kMaxStreams = 4096;
    static constexpr uint16_t kNone = 0xffff;

    constexpr StreamTable() = default;

    /// `isNew` is set when the caller has to write the StreamRecord. kNone when the table is full.
    uint16_t indexOf(uint32_t device, uint32_t context, uint32_t stream, bool& isNew) noexcept;
    /// For records that do not tell the device: it is that of another stream of the context. kNone when there is none
    /// yet.
    uint16_t indexInContext(uint32_t context, uint32_t stream, uint32_t& device, bool& isNew) noexcept;
    /// Of a stream that is in another context than this: known if one other alone has a stream of that number. Else
    /// kNone.
    uint16_t indexOutside(uint32_t context, uint32_t stream) noexcept;
    void clear() noexcept;

  private:
    struct Stream {
        uint32_t device;
        uint32_t context;
        uint32_t stream;
    };
    Mutex m_mutex;
    uint32_t m_count = 0;
    Stream m_streams[kMaxStreams] = {};
};

}  // namespace rankscope::injector::cupti
