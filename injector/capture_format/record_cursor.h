// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/capture_format/record_traits.h"
#include "injector/capture_format/record_view.h"

namespace rankscope::capture {

/// Walks the records of one run of cells, whatever is in them.
class RecordCursor {
  public:
    enum class Step : uint8_t { record, unknown, malformed, end };

    RecordCursor() = default;
    RecordCursor(const uint8_t* data, size_t bytes) : m_data(data), m_bytes(bytes) {}

    /// Malformed means that the rest of the run cannot be trusted: the next step is the end.
    Step next() {
        while (m_offset < m_bytes) {
            const uint8_t* record = m_data + m_offset;
            RecordHead head;
            if (m_bytes - m_offset < kCellBytes) break;
            std::memcpy(&head, record, sizeof head);
            const size_t length = size_t{head.cells} * kCellBytes;
            if (length == 0 || length > m_bytes - m_offset) {
                m_offset = m_bytes;
                return Step::malformed;
            }
            m_offset += length;
            if (head.type == RecordType::padding) continue;
            const size_t needed = recordStructBytes(head.type);
            if (needed == 0) return Step::unknown;
            if (needed > length || recordTextBytes(record) > length - needed) return Step::malformed;
            m_record = record;
            m_recordBytes = length;
            return Step::record;
        }
        return Step::end;
    }

    const uint8_t* record() const { return m_record; }
    size_t recordBytes() const { return m_recordBytes; }

  private:
    const uint8_t* m_data = nullptr;
    size_t m_bytes = 0;
    size_t m_offset = 0;
    const uint8_t* m_record = nullptr;
    size_t m_recordBytes = 0;
};

}  // namespace rankscope::capture
