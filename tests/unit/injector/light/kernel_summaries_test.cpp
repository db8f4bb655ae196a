// SPDX-License-Identifier: Apache-2.0
#include "injector/light/kernel_summaries.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "injector/capture_format/record_cursor.h"

using namespace rankscope::capture;
using namespace rankscope::injector;

namespace {

constexpr int64_t kMillisecond = 1'000'000;

struct ToldItem {
    KernelItem item;
    KernelKeyRecord key{};
};

struct ToldStep {
    KernelSummaryRecord record{};
    std::map<std::string, ToldItem> items;  // by name, those of a stream above 0 with it behind
    size_t bytes = 0;                       // with the keys and names in front of it, and its block's head
};

/// One process whose kernels the test makes.
class KernelSums : public testing::Test {
  protected:
    void SetUp() override { m_sums->begin({&write, this}); }

    void kernel(const char* name, int64_t startNs, int64_t durNs, uint16_t stream = 0, uint32_t grid = 1) {
        const EndedKernel ended{name, startNs, startNs + durNs, grid, 256, stream, 0};
        m_sums->take(&ended, 1);
    }

    static void write(void* to, const void* records, size_t bytes, uint32_t count, int64_t) noexcept {
        static_cast<KernelSums*>(to)->read(static_cast<const uint8_t*>(records), bytes, count);
    }

    void read(const uint8_t* records, size_t bytes, uint32_t count) {
        EXPECT_LE(bytes, kMaxBlockPayloadBytes);
        RecordCursor cursor(records, bytes);
        size_t before = sizeof(BlockHeader);
        for (; cursor.next() == RecordCursor::Step::record; --count) {
            RecordView view;
            view.data = cursor.record();
            view.bytes = cursor.recordBytes();
            before += view.bytes;
            if (view.type() == RecordType::string) m_names[view.as<StringRecord>().id] = view.text();
            if (view.type() == RecordType::kernelKey)
                m_keys[view.as<KernelKeyRecord>().number] = view.as<KernelKeyRecord>();
            if (view.type() != RecordType::kernelSummary) continue;
            ToldStep& step = m_steps.emplace_back();
            step.record = view.as<KernelSummaryRecord>();
            step.bytes = std::exchange(before, sizeof(BlockHeader));
            const uint8_t* at = view.data + sizeof step.record;
            KernelItem item;
            for (uint32_t i = 0, previous = 0; i < step.record.items; ++i, previous = item.number) {
                at = takeKernelItem(at, view.data + sizeof step.record + step.record.bytes, previous, item);
                ASSERT_NE(at, nullptr);
                const KernelKeyRecord key = m_keys.at(item.number);
                step.items[m_names.at(key.name) + (key.head.aux == 0 ? "" : " " + std::to_string(key.head.aux))] = {
                    item, key};
            }
        }
        EXPECT_EQ(count, 0u);
    }

    static int64_t kernelsIn(const ToldStep& step) {
        int64_t count = step.record.otherCount;
        for (const auto& [name, told] : step.items) count += told.item.count;
        return count;
    }

    std::unique_ptr<KernelSummaries> m_sums = std::make_unique<KernelSummaries>();
    std::map<StringId, std::string> m_names;
    std::map<uint32_t, KernelKeyRecord> m_keys;
    std::vector<ToldStep> m_steps;
};

TEST_F(KernelSums, tellsCountSumAndQuantilesOfEachKeyInTheStepInWhichItsKernelsBegan) {
    m_sums->stepBegins(100 * kMillisecond);
    m_sums->stepBegins(200 * kMillisecond);
    for (int i = 20; i > 0; --i)
        kernel("gemm", (100 + i) * kMillisecond, i * 1000, 0, 64);  // 1 to 20 us, the last one first
    kernel("once", 150 * kMillisecond, 77, 2);
    kernel("gemm", 200 * kMillisecond, 5000, 0, 64);
    m_sums->finish();
    ASSERT_EQ(m_steps.size(), 2u);
    const ToldStep& step = m_steps[0];
    EXPECT_EQ(step.record.startNs, 100 * kMillisecond);
    EXPECT_EQ(step.record.endNs, 200 * kMillisecond);
    EXPECT_EQ(step.record.otherCount, 0u);
    const ToldItem& gemm = step.items.at("gemm");
    EXPECT_EQ(gemm.item.count, 20u);
    EXPECT_EQ(gemm.item.totalNs, 210'000);
    EXPECT_EQ(gemm.item.tenthNs, 2'000);
    EXPECT_EQ(gemm.item.medianNs, 10'500);
    EXPECT_EQ(gemm.item.ninthNs, 19'000);
    EXPECT_EQ(gemm.item.longestNs, 20'000);
    EXPECT_EQ(gemm.key.gridBlocks, 64u);
    EXPECT_EQ(gemm.key.blockThreads, 256u);
    EXPECT_EQ(gemm.key.head.aux, 0u);
    EXPECT_EQ(step.items.at("once 2").item.totalNs, 77);
    EXPECT_EQ(m_steps[1].items.size(), 1u);
    EXPECT_EQ(m_steps[1].items.at("gemm").item.count, 1u);
}

TEST_F(KernelSums, measuresWhatKernelsCoverAndLetsThoseThatRunOnCountInTheNextStep) {
    m_sums->stepBegins(100);
    m_sums->stepBegins(200);
    kernel("gemm", 110, 40);
    kernel("relu", 140, 20);  // the last 10 of gemm's time, and 10 more
    kernel("_Z23ncclDevKernel_AllReduce24ncclDevKernelArgsStorageILm4096EE", 150,
           100);  // 10 beside relu, and on until 250
    kernel("gemm", 260, 10);
    m_sums->finish();
    ASSERT_EQ(m_steps.size(), 2u);
    EXPECT_EQ(m_steps[0].record.computeNs, 50);
    EXPECT_EQ(m_steps[0].record.ncclNs, 50);
    EXPECT_EQ(m_steps[0].record.busyNs, 90);
    EXPECT_EQ(m_steps[0].items.at("_Z23ncclDevKernel_AllReduce24ncclDevKernelArgsStorageILm4096EE").key.flags, 1u);
    EXPECT_EQ(m_steps[0].items.at("gemm").key.flags, 0u);
    EXPECT_EQ(m_steps[1].record.computeNs, 10);
    EXPECT_EQ(m_steps[1].record.ncclNs, 50);
    EXPECT_EQ(m_steps[1].record.busyNs, 60);
}

TEST_F(KernelSums, tellsAStepWhenTheDeviceHasBegunWithTheThirdBehindAndCountsWhatComesLater) {
    for (int step = 0; step < 4; ++step) m_sums->stepBegins((step + 1) * 100);
    kernel("a", 110, 5);
    kernel("b", 210, 5);
    kernel("c", 390, 5);
    m_sums->settle();
    EXPECT_TRUE(m_steps.empty());
    kernel("a", 150, 5);  // of another stream: it came late, but not too late
    kernel("d", 400, 5);
    m_sums->settle();
    ASSERT_EQ(m_steps.size(), 1u);
    EXPECT_EQ(m_steps[0].items.at("a").item.count, 2u);
    kernel("a", 190, 7);
    m_sums->finish();
    ASSERT_EQ(m_steps.size(), 4u);
    EXPECT_EQ(m_steps[1].record.lateCount, 1u);
    EXPECT_EQ(m_steps[1].record.otherCount, 1u);
    EXPECT_EQ(m_steps[1].record.otherNs, 7);
    EXPECT_EQ(kernelsIn(m_steps[1]), 2);
}

TEST_F(KernelSums, tellsWhatRanBeforeTheFirstMarkAlsoWhereItComesBehindIt) {
    m_sums->stepBegins(100 * kMillisecond);
    kernel("init", 60 * kMillisecond, 1000);
    kernel("init", 50 * kMillisecond, 1000);
    kernel("gemm", 150 * kMillisecond, 1000);
    m_sums->finish();
    ASSERT_EQ(m_steps.size(), 2u);
    EXPECT_EQ(m_steps[0].record.startNs, 50 * kMillisecond);
    EXPECT_EQ(m_steps[0].record.endNs, 100 * kMillisecond);
    EXPECT_EQ(m_steps[0].items.at("init").item.count, 2u);
    EXPECT_EQ(m_steps[1].items.at("gemm").item.count, 1u);
    for (const ToldStep& step : m_steps) EXPECT_EQ(step.record.lateCount, 0u);
}

TEST_F(KernelSums, cutsTimeIntoSecondsWhereTheJobMarksNoSteps) {
    for (int64_t ns = 500 * kMillisecond; ns < 3200 * kMillisecond; ns += 100 * kMillisecond) kernel("gemm", ns, 1000);
    m_sums->finish();
    ASSERT_EQ(m_steps.size(), 4u);
    const int64_t counts[] = {5, 10, 10, 2};
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(kernelsIn(m_steps[i]), counts[i]) << i;
    EXPECT_EQ(m_steps[1].record.startNs, 1000 * kMillisecond);
    EXPECT_EQ(m_steps[3].record.endNs, 3100 * kMillisecond + 1000);
}

TEST_F(KernelSums, cutsNothingWhereAMarkMayStillCome) {
    // The device's records come first, those of the host behind.
    for (int64_t ns = 500 * kMillisecond; ns < 9000 * kMillisecond; ns += 100 * kMillisecond) kernel("gemm", ns, 1000);
    m_sums->settle();
    EXPECT_TRUE(m_steps.empty());
    for (int64_t ns = 450 * kMillisecond; ns < 9000 * kMillisecond; ns += 300 * kMillisecond) m_sums->stepBegins(ns);
    m_sums->hostIsAt(9000 * kMillisecond);
    m_sums->settle();
    EXPECT_GT(m_steps.size(), 20u);
    for (const ToldStep& step : m_steps) EXPECT_EQ(kernelsIn(step), 3);
}

TEST_F(KernelSums, tellsSecondsWhileTheJobGoesOnWhereItMarksNoSteps) {
    for (int64_t ns = 500 * kMillisecond; ns < 9000 * kMillisecond; ns += 100 * kMillisecond) kernel("gemm", ns, 1000);
    m_sums->hostIsAt(9000 * kMillisecond);
    m_sums->settle();
    ASSERT_EQ(m_steps.size(), 6u);  // the device has begun with the third behind
    EXPECT_EQ(kernelsIn(m_steps[5]), 10);
}

TEST_F(KernelSums, keepsTwoKilobytesAStepHoweverManyKernelsThereAreAndCountsTheOthers) {
    // Three streams, 10,000 different kernels on each, in every step, whose names would be a megabyte.
    constexpr int kSteps = 40, kKinds = 10'000;
    std::vector<std::string> names;
    for (int kind = 0; kind < kKinds; ++kind)
        names.push_back("void kernel_" + std::to_string(kind) + std::string(90, 'x'));
    for (int step = 0; step < kSteps; ++step) m_sums->stepBegins((step + 1) * 1000 * kMillisecond);
    for (int step = 0; step < kSteps; ++step)
        for (int kind = 0; kind < kKinds; ++kind)
            for (uint16_t stream = 0; stream < 3; ++stream) {
                // The first ones take most of the time, and the names of some are those of one step alone.
                const std::string& name = kind % 3 == 0 ? names[(kind + step * 7) % kKinds] : names[kind];
                kernel(name.c_str(), (step + 1) * 1000 * kMillisecond + kind * 30'000 + stream, 20'000 - kind, stream);
            }
    m_sums->finish();
    size_t all = 0;
    ASSERT_GE(m_steps.size(), static_cast<size_t>(kSteps));
    int64_t kernels = 0;
    for (const ToldStep& step : m_steps) {
        all += step.bytes;
        kernels += kernelsIn(step);
        EXPECT_GT(step.items.size(), 20u);
        EXPECT_GT(step.record.otherKinds, 15'000u);  // names that did not fit are no kinds of their own
    }
    EXPECT_LE(all, KernelSummaries::kFirstNameBytes + m_steps.size() * 2000);
    EXPECT_EQ(kernels, int64_t{kSteps} * kKinds * 3);
    // What stands in a step is what takes most time.
    for (const auto& [name, told] : m_steps.back().items) EXPECT_GT(told.item.totalNs, 19'000) << name;
}

TEST_F(KernelSums, tellsAStepOfMoreKernelsThanItCanHoldInParts) {
    m_sums->stepBegins(kMillisecond);
    constexpr int kKernels = 600'000;
    for (int i = 0; i < kKernels; ++i) kernel("gemm", kMillisecond + i * 1000, 500);
    m_sums->finish();
    EXPECT_EQ(m_steps.size(), 3u);
    int64_t kernels = 0, compute = 0;
    for (const ToldStep& step : m_steps) {
        kernels += kernelsIn(step);
        compute += step.record.computeNs;
        EXPECT_EQ(step.record.lateCount, 0u);
    }
    EXPECT_EQ(kernels, kKernels);
    EXPECT_EQ(compute, int64_t{kKernels} * 500);
}

TEST_F(KernelSums, givesTheNumberOfTheKeyThatWasUsedLongestAgoToANewOne) {
    // 5,000 launch shapes of one kernel, some for each step and one for all of them.
    constexpr int kSteps = 500, kShapes = 10;
    for (int step = 0; step < kSteps; ++step) {
        m_sums->stepBegins((step + 1) * kMillisecond);
        kernel("always", (step + 1) * kMillisecond, 50'000);
        for (int shape = 0; shape < kShapes; ++shape)
            kernel("shaped", (step + 1) * kMillisecond + 1000 * shape, 100 + step, 0,
                   static_cast<uint32_t>(1 + step * kShapes + shape));
        m_sums->settle();
    }
    m_sums->finish();
    ASSERT_EQ(m_steps.size(), static_cast<size_t>(kSteps));
    EXPECT_LE(m_keys.rbegin()->first, 4096u);
    for (const ToldStep& step : m_steps) EXPECT_EQ(step.items.at("always").item.totalNs, 50'000);
    const ToldStep& last = m_steps.back();
    EXPECT_GE(last.items.at("shaped").key.gridBlocks, static_cast<uint32_t>((kSteps - 1) * kShapes));
    EXPECT_EQ(last.items.at("shaped").item.medianNs, 100 + kSteps - 1);
}

TEST(KernelItems, thatContradictThemselvesAreRefused) {
    KernelItem item{3, 7, 7000, 900, 1000, 1200, 1300}, read;
    uint8_t bytes[kMostKernelItemBytes];
    const size_t length = putKernelItem(bytes, 1, item);
    ASSERT_EQ(takeKernelItem(bytes, bytes + length, 1, read), bytes + length);
    EXPECT_EQ(read.number, 3u);
    EXPECT_EQ(read.totalNs, 7000);
    EXPECT_EQ(read.tenthNs, 900);
    EXPECT_EQ(read.longestNs, 1300);
    for (size_t cut = 0; cut < length; ++cut) EXPECT_EQ(takeKernelItem(bytes, bytes + cut, 1, read), nullptr) << cut;
    item.count = 0;
    putKernelItem(bytes, 1, item);
    EXPECT_EQ(takeKernelItem(bytes, bytes + sizeof bytes, 1, read), nullptr);
    item = {3, UINT32_MAX, 1, 0, int64_t{1} << 60, int64_t{1} << 60, int64_t{1} << 60};
    const size_t huge = putKernelItem(bytes, 1, item);
    EXPECT_EQ(takeKernelItem(bytes, bytes + huge, 1, read), nullptr);
}

}  // namespace
