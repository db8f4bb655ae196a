// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/fold_encoder.h"

#include <cstring>

namespace rankscope::capture {
namespace {

uint64_t zigzag(int64_t value) noexcept {
    return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}

uint64_t difference(int64_t value, int64_t guess) noexcept {
    return zigzag(static_cast<int64_t>(static_cast<uint64_t>(value) - static_cast<uint64_t>(guess)));
}

uint64_t hashOf(const FoldKey& key) noexcept {
    uint64_t words[kFoldKeyWords];
    std::memcpy(words, &key, sizeof words);
    uint64_t hash = 0;
    for (const uint64_t word : words) hash = (hash ^ word) * 0x9e3779b97f4a7c15ull ^ hash >> 29;
    return hash ^ hash >> 32;
}

}  // namespace

void FoldEncoder::put(uint64_t value) noexcept {
    for (; value >= 0x80; value >>= 7) m_bytes[sizeof m_head + m_used++] = static_cast<uint8_t>(value | 0x80);
    m_bytes[sizeof m_head + m_used++] = static_cast<uint8_t>(value);
}

/// 0: it is new, and has a number from now on.
uint32_t FoldEncoder::numberOf(const FoldKey& key) noexcept {
    for (uint64_t at = hashOf(key);; ++at) {
        uint16_t& number = m_numbers[at % kPlaces];
        if (number == 0) {
            number = static_cast<uint16_t>(m_model.addKey(key));
            return 0;
        }
        if (std::memcmp(&m_model.key(number), &key, sizeof key) == 0) return number;
    }
}

bool FoldEncoder::add(const FoldItem& item) noexcept {
    if (m_head.items != 0 && (sizeof m_head + m_used + kMostItemBytes > kRecordBytes || m_model.isFull())) return false;
    if (m_head.items == 0 && (!m_builds || m_model.isFull() || m_sinceStart >= kRecordsPerStart)) {
        m_model.clear();
        std::memset(m_numbers, 0, sizeof m_numbers);
        m_sinceStart = 0;
        m_builds = true;
        m_head.head.aux = kFoldStartsAnew;
    }
    const FoldModel::Guess guess = m_model.guess();
    const bool hit = guess.key != 0 && std::memcmp(&m_model.key(guess.key), &item.key, sizeof item.key) == 0;
    const FoldModel::Fields fields = m_model.fieldsOf(item);
    const FoldModel::Fields expected = hit ? guess.fields : FoldModel::Fields{};
    // The first difference carries one bit more: 1 says that the key was not foreseen and follows.
    const uint64_t first = difference(fields.value[0], expected.value[0]);
    put((first & (UINT64_MAX >> 1)) << 1 | static_cast<uint64_t>(!hit));
    uint32_t number = guess.key;
    if (!hit) {
        number = numberOf(item.key);
        put(number);
        if (number == 0) {
            uint64_t words[kFoldKeyWords];
            std::memcpy(words, &item.key, sizeof words);
            for (const uint64_t word : words) put(word);
            number = m_model.keyCount();
        }
    }
    for (size_t i = 1; i < FoldModel::fieldCount(item.key); ++i) put(difference(fields.value[i], expected.value[i]));
    m_model.learn(number, item, fields);
    if (m_head.items++ == 0) m_head.firstNs = item.startNs;
    if (item.startNs < m_head.firstNs) m_head.firstNs = item.startNs;
    if (item.startNs > m_head.lastNs) m_head.lastNs = item.startNs;
    return true;
}

size_t FoldEncoder::recordBytes() const noexcept {
    return cellsFor(sizeof m_head + m_used) * kCellBytes;
}

const void* FoldEncoder::record() noexcept {
    if (m_head.items == 0) return nullptr;
    m_head.head.type = RecordType::fold;
    m_head.head.cells = static_cast<uint8_t>(cellsFor(sizeof m_head + m_used));
    m_head.bytes = static_cast<uint32_t>(m_used);
    std::memcpy(m_bytes, &m_head, sizeof m_head);
    std::memset(m_bytes + sizeof m_head + m_used, 0, recordBytes() - sizeof m_head - m_used);
    return m_bytes;
}

void FoldEncoder::finish() noexcept {
    const uint32_t sequence = m_head.sequence + 1;
    m_head = FoldRecord{};
    m_head.sequence = sequence;
    m_used = 0;
    ++m_sinceStart;
}

void FoldEncoder::clear() noexcept {
    m_head = FoldRecord{};
    m_used = 0;
    m_builds = false;
}

}  // namespace rankscope::capture
