// SPDX-License-Identifier: Apache-2.0
// Each list is its count of rows (8 bytes) and its rows. A row is a bit for each of its numbers, the lowest bit of the
// first byte first, that says whether the number is another than in the row before (0 before the first), and by how
// much each of those is: zigzag, seven bits a byte, the lowest first. A column is a number; one that may be NULL is
// two, of which the first says whether there is a value, and the second stays what it was where there is none.
#include "collector/ingest/packed_events.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <tuple>
#include <type_traits>

#include "collector/ingest/trace_tables.h"
#include "collector/store/tables.h"

namespace rankscope::collector {
namespace {

template <typename Value>
inline constexpr bool kMayBeNull = false;
template <typename Value>
inline constexpr bool kMayBeNull<std::optional<Value>> = true;

/// Calls field(row.x) for each column.
template <typename Row, typename Field>
void forEachColumn(Row& row, const Field& field) {
    std::apply([&](const auto&... column) { (field(row.*column.field), ...); },
               store::Table<std::remove_const_t<Row>>::kColumns);
}

template <typename Row>
inline constexpr size_t kNumbers = std::apply(
    [](const auto&... column) {
        return (size_t{0} + ... + (kMayBeNull<std::decay_t<decltype(std::declval<Row>().*column.field)>> ? 2 : 1));
    },
    store::Table<Row>::kColumns);
template <typename Row>
inline constexpr size_t kMaskBytes = (kNumbers<Row> + 7) / 8;
template <typename Row>
using Numbers = std::array<uint64_t, kNumbers<Row>>;

constexpr size_t kLongestNumber = 10;  // bytes
constexpr uint64_t kMore = 0x80;       // of a byte: another is behind it

template <typename Value>
uint64_t numberOf(Value value) {
    static_assert(std::is_integral_v<Value> || std::is_enum_v<Value>, "events hold numbers, and ids of texts");
    return static_cast<uint64_t>(static_cast<int64_t>(value));
}

class Writer {
  public:
    template <typename Row>
    void write(const std::vector<Row>& rows) {
        constexpr size_t kRoom = kMaskBytes<Row> + kLongestNumber * kNumbers<Row>;
        require(sizeof(uint64_t));
        const uint64_t count = rows.size();
        std::memcpy(m_bytes.data() + m_used, &count, sizeof count);
        m_used += sizeof count;
        Numbers<Row> before{};
        for (const Row& row : rows) {
            require(kRoom);
            uint8_t* const start = m_bytes.data() + m_used;
            uint8_t* at = start + kMaskBytes<Row>;
            uint64_t mask = 0;
            size_t number = 0;
            const auto put = [&](uint64_t value) {
                const uint64_t difference = value - before[number];
                if (difference != 0) {
                    mask |= uint64_t{1} << number;
                    before[number] = value;
                    uint64_t left = difference << 1 ^ (difference >> 63 ? ~uint64_t{0} : 0);
                    for (; left >= kMore; left >>= 7) *at++ = static_cast<uint8_t>(left | kMore);
                    *at++ = static_cast<uint8_t>(left);
                }
                ++number;
            };
            forEachColumn(row, [&]<typename Value>(const Value& value) {
                if constexpr (kMayBeNull<Value>) {
                    put(value.has_value());
                    value ? put(numberOf(*value)) : static_cast<void>(++number);
                } else {
                    put(numberOf(value));
                }
            });
            for (size_t i = 0; i < kMaskBytes<Row>; ++i) start[i] = static_cast<uint8_t>(mask >> 8 * i);
            m_used = static_cast<size_t>(at - m_bytes.data());
        }
    }

    std::vector<uint8_t> take() && { return {m_bytes.data(), m_bytes.data() + m_used}; }

  private:
    void require(size_t bytes) {
        if (m_bytes.size() - m_used < bytes) m_bytes.resize(std::max(2 * m_bytes.size(), m_used + bytes));
    }

    std::vector<uint8_t> m_bytes = std::vector<uint8_t>(size_t{1} << 16);
    size_t m_used = 0;
};

class Reader {
  public:
    explicit Reader(const uint8_t* at) : m_at(at) {}

    template <typename Row>
    void read(std::vector<Row>& rows) {
        static_assert(kNumbers<Row> <= 64, "the mask is one word");
        uint64_t count = 0;
        std::memcpy(&count, m_at, sizeof count);
        m_at += sizeof count;
        rows.resize(count);
        Numbers<Row> numbers{};
        for (Row& row : rows) {
            uint64_t mask = 0;
            for (size_t i = 0; i < kMaskBytes<Row>; ++i) mask |= uint64_t{*m_at++} << 8 * i;
            for (; mask != 0; mask &= mask - 1) numbers[static_cast<size_t>(__builtin_ctzll(mask))] += difference();
            size_t number = 0;
            forEachColumn(row, [&]<typename Value>(Value& value) {
                if constexpr (kMayBeNull<Value>) {
                    if (numbers[number] != 0) value = static_cast<typename Value::value_type>(numbers[number + 1]);
                    number += 2;
                } else {
                    value = static_cast<Value>(numbers[number++]);
                }
            });
        }
    }

  private:
    uint64_t difference() {
        uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            const uint64_t byte = *m_at++;
            value |= (byte & (kMore - 1)) << shift;
            if (byte < kMore) return value >> 1 ^ (~(value & 1) + 1);
        }
    }

    const uint8_t* m_at;
};

}  // namespace

PackedEvents::PackedEvents(RankRecording& recording) {
    Writer writer;
    forEachEventTable(recording, [&]<typename Row>(std::vector<Row>& rows) {
        writer.write(rows);
        rows = std::vector<Row>();
    });
    m_bytes = std::move(writer).take();
}

void PackedEvents::unpack(RankRecording& recording) const {
    Reader reader(m_bytes.data());
    forEachEventTable(recording, [&](auto& rows) { reader.read(rows); });
}

}  // namespace rankscope::collector
