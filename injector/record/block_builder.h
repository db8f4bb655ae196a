// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/capture_format/record_traits.h"
#include "injector/record/capture_sink.h"
#include "injector/record/string_table.h"

namespace rankscope::injector {

/// Gathers records of no thread and hands them to the sink as blocks. Lives on a stack or in static memory; one thread
/// at a time.
template <size_t Bytes>
class BlockBuilder {
    static_assert(Bytes % capture::kCellBytes == 0 && Bytes <= capture::kMaxBlockPayloadBytes && Bytes >= 8192);

  public:
    BlockBuilder(CaptureSink& sink, capture::Source source) noexcept : m_sink(sink), m_source(source) {}
    ~BlockBuilder() { flush(); }
    BlockBuilder(const BlockBuilder&) = delete;
    BlockBuilder& operator=(const BlockBuilder&) = delete;

    /// A record without text behind it. Sets head.cells.
    template <typename Record>
    void add(Record record) noexcept {
        constexpr size_t kCells = capture::cellsFor(sizeof(Record));
        record.head.cells = kCells;
        std::memcpy(room(kCells * capture::kCellBytes), &record, sizeof record);
        const int64_t time = capture::recordTimeNs(&record);
        if (time > m_highWaterNs) m_highWaterNs = time;
    }

    /// Writes the text of an id, unless `known` says that the file has it. Returns the id.
    uint64_t addString(StringTable& known, const char* text, size_t bytes) noexcept {
        const uint64_t id = stringId(text, bytes);
        if (id == 0 || known.contains(id)) return id;
        known.add(id);
        const size_t kept = bytes < capture::kMaxTextBytes ? bytes : capture::kMaxTextBytes;
        const size_t cells = capture::cellsFor(sizeof(capture::StringRecord) + kept);
        capture::StringRecord record{};
        record.head = {capture::RecordType::string, static_cast<uint8_t>(cells), static_cast<uint16_t>(kept)};
        record.fullBytes = static_cast<uint32_t>(bytes);
        record.id = id;
        uint8_t* into = room(cells * capture::kCellBytes);
        std::memcpy(into, &record, sizeof record);
        std::memcpy(into + sizeof record, text, kept);
        return id;
    }

    void addMetadata(const char* key, size_t keyBytes, const char* value, size_t valueBytes) noexcept {
        constexpr size_t kMaxKey = 256;
        constexpr size_t kMaxValue = 4096;
        if (keyBytes > kMaxKey) keyBytes = kMaxKey;
        if (valueBytes > kMaxValue) valueBytes = kMaxValue;
        const size_t cells = capture::cellsFor(sizeof(capture::MetadataRecord) + keyBytes + valueBytes);
        capture::MetadataRecord record{};
        record.head = {capture::RecordType::metadata, static_cast<uint8_t>(cells), static_cast<uint16_t>(keyBytes)};
        record.valueBytes = static_cast<uint32_t>(valueBytes);
        uint8_t* into = room(cells * capture::kCellBytes);
        std::memcpy(into, &record, sizeof record);
        std::memcpy(into + sizeof record, key, keyBytes);
        std::memcpy(into + sizeof record + keyBytes, value, valueBytes);
    }

    void flush() noexcept {
        if (m_used == 0) return;
        m_sink.append(m_source, m_bytes, m_used, m_records, m_highWaterNs);
        m_used = 0;
        m_records = 0;
        m_highWaterNs = 0;
    }

  private:
    uint8_t* room(size_t bytes) noexcept {
        if (m_used + bytes > Bytes) flush();
        uint8_t* into = m_bytes + m_used;
        std::memset(into + bytes - capture::kCellBytes, 0, capture::kCellBytes);
        m_used += bytes;
        ++m_records;
        return into;
    }

    CaptureSink& m_sink;
    capture::Source m_source;
    size_t m_used = 0;
    uint32_t m_records = 0;
    int64_t m_highWaterNs = 0;
    alignas(8) uint8_t m_bytes[Bytes];
};

}  // namespace rankscope::injector
