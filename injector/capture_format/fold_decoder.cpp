// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/fold_decoder.h"

#include <cstring>

namespace rankscope::capture {
namespace {

int64_t behind(int64_t guess, uint64_t zigzag) {
    const uint64_t difference = zigzag >> 1 ^ (0 - (zigzag & 1));
    return static_cast<int64_t>(static_cast<uint64_t>(guess) + difference);
}

}  // namespace

bool FoldDecoder::begin(const FoldRecord& head, const uint8_t* bytes) {
    m_at = bytes;
    m_end = bytes + head.bytes;
    m_left = head.items;
    m_damaged = false;
    if ((head.head.aux & kFoldStartsAnew) != 0) {
        if (m_model == nullptr) m_model = std::make_unique<FoldModel>();
        m_model->clear();
        m_follows = true;
    } else if (head.sequence != m_nextSequence) {
        m_follows = false;
    }
    m_nextSequence = head.sequence + 1;
    if (!m_follows) m_left = 0;
    return m_follows;
}

bool FoldDecoder::take(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && m_at != m_end; shift += 7) {
        const uint8_t byte = *m_at++;
        value |= uint64_t{byte & 0x7fu} << shift;
        if ((byte & 0x80) == 0) return true;
    }
    return false;
}

bool FoldDecoder::takeKey(FoldKey& key) {
    if (m_model->isFull()) return false;
    uint64_t words[kFoldKeyWords];
    for (uint64_t& word : words)
        if (!take(word)) return false;
    std::memcpy(&key, words, sizeof key);
    return key.kind >= FoldKind::call && key.kind <= FoldKind::end && key.sends <= kFoldSends &&
           key.group <= FoldGroup::same;
}

std::optional<FoldItem> FoldDecoder::fail() {
    m_left = 0;
    m_damaged = true;
    m_follows = false;
    return std::nullopt;
}

std::optional<FoldItem> FoldDecoder::next() {
    if (m_left == 0) return std::nullopt;
    --m_left;
    const FoldModel::Guess guess = m_model->guess();
    uint64_t first = 0, number = guess.key;
    if (!take(first)) return fail();
    const bool hit = (first & 1) == 0;
    if (!hit) {
        if (!take(number)) return fail();
        if (number == 0) {
            FoldKey key;
            if (!takeKey(key)) return fail();
            number = m_model->addKey(key);
        }
    }
    if (number == 0 || number > m_model->keyCount()) return fail();
    const FoldKey key = m_model->key(static_cast<uint32_t>(number));
    FoldModel::Fields fields = hit ? guess.fields : FoldModel::Fields{};
    fields.value[0] = behind(fields.value[0], first >> 1);
    for (size_t i = 1; i < FoldModel::fieldCount(key); ++i) {
        uint64_t told = 0;
        if (!take(told)) return fail();
        fields.value[i] = behind(fields.value[i], told);
    }
    const FoldItem item = m_model->itemOf(key, fields);
    m_model->learn(static_cast<uint32_t>(number), item, fields);
    return item;
}

}  // namespace rankscope::capture
