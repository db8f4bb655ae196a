// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string_view>
#include <type_traits>

#include "injector/capture_format/records.h"

namespace rankscope::capture {

/// One record of a capture file. Valid until the reader's next step.
struct RecordView {
    const uint8_t* data = nullptr;
    size_t bytes = 0;                  ///< whole cells; at least what the struct of its type needs
    uint32_t threadIndex = kNoThread;  ///< of the block
    Source source = Source::none;      ///< of the block
    uint32_t blockSequence = 0;
    uint64_t fileOffset = 0;  ///< for messages

    RecordHead head() const { return as<RecordHead>(); }
    RecordType type() const { return head().type; }

    /// A copy of the record as its struct. The caller has looked at type(); bytes a shorter record lacks read as zero.
    template <typename Record>
    Record as() const {
        static_assert(std::is_trivially_copyable_v<Record>);
        Record record{};
        std::memcpy(&record, data, sizeof record < bytes ? sizeof record : bytes);
        return record;
    }

    /// Text of a StringRecord.
    std::string_view text() const { return tail(sizeof(StringRecord), head().aux); }
    /// Key of a MetadataRecord.
    std::string_view key() const { return tail(sizeof(MetadataRecord), head().aux); }
    /// Value of a MetadataRecord.
    std::string_view value() const {
        return tail(sizeof(MetadataRecord) + head().aux, as<MetadataRecord>().valueBytes);
    }

  private:
    std::string_view tail(size_t offset, size_t length) const {
        if (offset > bytes || length > bytes - offset) return {};
        return {reinterpret_cast<const char*>(data) + offset, length};
    }
};

}  // namespace rankscope::capture
