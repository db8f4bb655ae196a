// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/packed_events.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <tuple>
#include <type_traits>

#include "collector/ingest/trace_tables.h"
#include "collector/store/tables.h"

namespace rankscope::collector {
namespace {

/// Smallest, largest, zero, next to zero, any; and none where there may be none.
class Values {
  public:
    template <typename Value>
    void fill(Value& value) {
        using Number = typename std::conditional_t<std::is_enum_v<Value>, std::underlying_type<Value>,
                                                   std::type_identity<Value>>::type;
        using Limits = std::numeric_limits<Number>;
        const auto any = static_cast<Number>(m_random());
        const Number choices[] = {Limits::min(), Limits::max(), Number{0}, Number{1}, any};
        value = static_cast<Value>(choices[m_random() % std::size(choices)]);
    }
    template <typename Value>
    void fill(std::optional<Value>& value) {
        value.reset();
        if (m_random() % 3 != 0) fill(value.emplace());
    }

  private:
    std::mt19937_64 m_random{7};
};

template <typename Row>
auto columnsOf(const Row& row) {
    return std::apply([&](const auto&... column) { return std::tuple(row.*column.field...); },
                      store::Table<Row>::kColumns);
}

RankRecording recordingWith(size_t rows) {
    RankRecording recording;
    Values values;
    forEachEventTable(recording, [&]<typename Row>(std::vector<Row>& list) {
        list.resize(rows);
        for (Row& row : list)
            std::apply([&](const auto&... column) { (values.fill(row.*column.field), ...); },
                       store::Table<Row>::kColumns);
    });
    return recording;
}

size_t rowsIn(RankRecording& recording) {
    size_t rows = 0;
    forEachEventTable(recording, [&](const auto& list) { rows += list.size(); });
    return rows;
}

TEST(PackedEvents, AreTheSameOnceUnpacked) {
    constexpr size_t kRows = 500;
    RankRecording recording = recordingWith(kRows), expected = recording;
    const PackedEvents packed(recording);
    EXPECT_EQ(rowsIn(recording), 0u);
    packed.unpack(recording);
    ASSERT_EQ(rowsIn(recording), rowsIn(expected));
    const auto check = [&]<typename Row>(const std::vector<Row>& got, const std::vector<Row>& wanted) {
        for (size_t i = 0; i < kRows; ++i)
            EXPECT_EQ(columnsOf(got[i]), columnsOf(wanted[i])) << store::Table<Row>::kName << " " << i;
    };
    check(recording.kernels, expected.kernels);
    check(recording.memcpys, expected.memcpys);
    check(recording.memsets, expected.memsets);
    check(recording.apiCalls, expected.apiCalls);
    check(recording.synchronizations, expected.synchronizations);
    check(recording.cudaEvents, expected.cudaEvents);
    check(recording.allocations, expected.allocations);
    check(recording.nvtx, expected.nvtx);
    check(recording.ncclCalls, expected.ncclCalls);
    check(recording.proxyOps, expected.proxyOps);
    check(recording.kernelSummaries, expected.kernelSummaries);
    check(recording.kernelSpans, expected.kernelSpans);
    check(recording.counters, expected.counters);
}

TEST(PackedEvents, OfNoneAreNone) {
    RankRecording recording;
    const PackedEvents packed(recording);
    packed.unpack(recording);
    EXPECT_EQ(rowsIn(recording), 0u);
}

TEST(PackedEvents, OfOrdinaryKernelsTakeASixthOfTheirMemory) {
    constexpr size_t kRows = 10'000;
    RankRecording recording;
    std::mt19937_64 random{11};
    int64_t nowNs = 1'700'000'000'000'000'000;
    for (size_t i = 0; i < kRows; ++i) {
        store::Kernel& kernel = recording.kernels.emplace_back();
        kernel.startNs = nowNs += static_cast<int64_t>(random() % 100'000);
        kernel.durNs = static_cast<int64_t>(random() % 1'000'000);
        kernel.nameId = static_cast<int32_t>(random() % 20);
        kernel.correlationId = static_cast<uint32_t>(3 * i);
        kernel.gridBlocks = 1 << random() % 10;
        kernel.blockThreads = 256;
    }
    const PackedEvents packed(recording);
    EXPECT_LT(packed.bytes(), kRows * sizeof(store::Kernel) / 6);
}

}  // namespace
}  // namespace rankscope::collector
