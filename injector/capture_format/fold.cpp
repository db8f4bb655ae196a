// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/fold.h"

namespace rankscope::capture {
namespace {

// Arithmetic modulo 2^64: whatever a damaged file says, nothing overflows.
int64_t minus(int64_t a, int64_t b) noexcept {
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t plus(int64_t a, int64_t b) noexcept {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t unitsOf(int64_t ns) noexcept {
    return ns >> kFoldUnitBits;
}
int64_t nsOf(int64_t units) noexcept {
    return static_cast<int64_t>(static_cast<uint64_t>(units) << kFoldUnitBits);
}

}  // namespace

FoldModel::Fields FoldModel::fieldsOf(const FoldItem& item) const noexcept {
    const FoldKey& key = item.key;
    Fields fields;
    size_t next = 0;
    fields.value[next++] = minus(unitsOf(item.startNs), m_lastNs[key.thread % kThreads]);
    if (key.kind == FoldKind::call) {
        if ((key.flags & foldHasSpan) != 0) {
            const int64_t begin = unitsOf(item.deviceStartNs);
            fields.value[next++] = minus(begin, m_deviceEnd[key.communicator % kCommunicators]);
            fields.value[next++] = minus(unitsOf(item.deviceEndNs), begin);
        }
        for (size_t i = 0; i < key.sends; ++i) fields.value[next++] = unitsOf(item.networkNs[i]);
        return fields;
    }
    if (key.kind == FoldKind::push || key.kind == FoldKind::start)
        fields.value[next++] = static_cast<int64_t>(item.name);
    if (key.kind == FoldKind::start || key.kind == FoldKind::end)
        fields.value[next++] = static_cast<int64_t>(item.rangeId);
    return fields;
}

FoldItem FoldModel::itemOf(const FoldKey& key, const Fields& fields) const noexcept {
    FoldItem item;
    item.key = key;
    size_t next = 0;
    item.startNs = nsOf(plus(fields.value[next++], m_lastNs[key.thread % kThreads]));
    if (key.kind == FoldKind::call) {
        if ((key.flags & foldHasSpan) != 0) {
            const int64_t begin = plus(fields.value[next++], m_deviceEnd[key.communicator % kCommunicators]);
            item.deviceStartNs = nsOf(begin);
            item.deviceEndNs = nsOf(plus(begin, fields.value[next++]));
        }
        for (size_t i = 0; i < key.sends; ++i) item.networkNs[i] = nsOf(fields.value[next++]);
        return item;
    }
    if (key.kind == FoldKind::push || key.kind == FoldKind::start)
        item.name = static_cast<uint64_t>(fields.value[next++]);
    if (key.kind == FoldKind::start || key.kind == FoldKind::end)
        item.rangeId = static_cast<uint64_t>(fields.value[next++]);
    return item;
}

void FoldModel::learn(uint32_t keyNumber, const FoldItem& item, const Fields& fields) noexcept {
    Guess& guess = m_guesses[place()];
    guess.key = keyNumber;
    guess.fields = fields;
    constexpr uint64_t kLastThree = (uint64_t{1} << 33) - 1;  // a number has 11 bits
    m_history = (m_history << 11 | keyNumber) & kLastThree;
    m_lastNs[item.key.thread % kThreads] = unitsOf(item.startNs);
    if (item.key.kind == FoldKind::call && (item.key.flags & foldHasSpan) != 0)
        m_deviceEnd[item.key.communicator % kCommunicators] = unitsOf(item.deviceEndNs);
}

}  // namespace rankscope::capture
