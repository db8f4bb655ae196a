// SPDX-License-Identifier: Apache-2.0
#include "injector/cupti/stream_table.h"

namespace rankscope::injector::cupti {

uint16_t StreamTable::indexOf(uint32_t device, uint32_t context, uint32_t stream, bool& isNew) noexcept {
    isNew = false;
    Lock lock(m_mutex);
    // Newest first: a job makes a few streams and goes on with the last.
    for (uint32_t i = m_count; i-- > 0;)
        if (m_streams[i].stream == stream && m_streams[i].context == context && m_streams[i].device == device)
            return static_cast<uint16_t>(i);
    if (m_count == kMaxStreams) return kNone;
    m_streams[m_count] = {device, context, stream};
    isNew = true;
    return static_cast<uint16_t>(m_count++);
}

uint16_t StreamTable::indexInContext(uint32_t context, uint32_t stream, uint32_t& device, bool& isNew) noexcept {
    isNew = false;
    {
        Lock lock(m_mutex);
        const Stream* known = nullptr;
        for (uint32_t i = m_count; i-- > 0;) {
            if (m_streams[i].context != context) continue;
            if (m_streams[i].stream == stream) return static_cast<uint16_t>(i);
            known = &m_streams[i];
        }
        if (known == nullptr) return kNone;
        device = known->device;
    }
    return indexOf(device, context, stream, isNew);
}

uint16_t StreamTable::indexOutside(uint32_t context, uint32_t stream) noexcept {
    Lock lock(m_mutex);
    uint16_t found = kNone;
    for (uint32_t i = 0; i < m_count; ++i) {
        if (m_streams[i].stream != stream || m_streams[i].context == context) continue;
        if (found != kNone) return kNone;
        found = static_cast<uint16_t>(i);
    }
    return found;
}

void StreamTable::clear() noexcept {
    m_mutex.renew();
    m_count = 0;
}

}  // namespace rankscope::injector::cupti
