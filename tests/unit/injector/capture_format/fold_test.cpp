// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "injector/capture_format/fold_decoder.h"
#include "injector/capture_format/fold_encoder.h"

using namespace rankscope::capture;

namespace {

constexpr int64_t kUnit = 1 << kFoldUnitBits;

FoldItem call(uint32_t communicator, uint64_t count, int64_t startNs, int64_t deviceStartNs, int64_t deviceNs) {
    FoldItem item;
    item.key.thread = 3;
    item.key.kind = FoldKind::call;
    item.key.flags = foldHasPlugin | foldHasSpan;
    item.key.op = static_cast<uint8_t>(NcclOp::allReduce);
    item.key.communicator = communicator;
    item.key.peerOrRoot = -1;
    item.key.count = count;
    item.key.stream = 0x7f12'3456'7890;
    item.key.commHash = 0xfedc'ba98'7654'3210;
    item.startNs = startNs;
    item.deviceStartNs = deviceStartNs;
    item.deviceEndNs = deviceStartNs + deviceNs;
    return item;
}

FoldItem mark(FoldKind kind, int64_t timeNs, uint64_t name) {
    FoldItem item;
    item.key.thread = 1;
    item.key.kind = kind;
    item.startNs = timeNs;
    item.name = name;
    return item;
}

/// Steps of a job: a mark, then calls of changing sizes whose times vary by some per cent.
std::vector<FoldItem> someSteps(int steps, int calls) {
    std::mt19937 random(7);
    std::vector<FoldItem> items;
    int64_t ns = 1'700'000'000'000'000'000;
    const auto about = [&](int64_t mean) { return mean + static_cast<int64_t>(random() % (mean / 20)) - mean / 40; };
    for (int step = 0; step < steps; ++step) {
        items.push_back(mark(FoldKind::push, ns, 0x1234));
        for (int i = 0; i < calls; ++i) {
            ns += about(2'000'000);
            items.push_back(
                call(1 + static_cast<uint32_t>(i % 3), 1000u << (i % 7), ns, ns + about(40'000'000), about(300'000)));
        }
        items.push_back(mark(FoldKind::pop, ns, 0));
    }
    return items;
}

struct Written {
    FoldRecord head;
    std::vector<uint8_t> bytes;
};

std::vector<Written> encode(const std::vector<FoldItem>& items) {
    auto encoder = std::make_unique<FoldEncoder>();
    std::vector<Written> records;
    const auto take = [&] {
        const auto* bytes = static_cast<const uint8_t*>(encoder->record());
        if (bytes == nullptr) return;
        EXPECT_EQ(encoder->recordBytes() % kCellBytes, 0u);
        Written& written = records.emplace_back();
        std::memcpy(&written.head, bytes, sizeof written.head);
        EXPECT_EQ(encoder->recordBytes(), size_t{written.head.head.cells} * kCellBytes);
        written.bytes.assign(bytes + sizeof written.head, bytes + sizeof written.head + written.head.bytes);
        encoder->finish();
    };
    for (const FoldItem& item : items) {
        if (encoder->add(item)) continue;
        take();
        EXPECT_TRUE(encoder->add(item));
    }
    take();
    return records;
}

std::vector<FoldItem> decode(const std::vector<Written>& records, int* unusable = nullptr) {
    FoldDecoder decoder;
    std::vector<FoldItem> items;
    for (const Written& record : records) {
        if (!decoder.begin(record.head, record.bytes.data()) && unusable != nullptr) ++*unusable;
        while (const auto item = decoder.next()) items.push_back(*item);
    }
    return items;
}

void expectSame(const FoldItem& a, const FoldItem& b) {
    EXPECT_EQ(std::memcmp(&a.key, &b.key, sizeof a.key), 0);
    EXPECT_EQ(a.startNs / kUnit, b.startNs / kUnit);
    EXPECT_EQ(a.deviceStartNs / kUnit, b.deviceStartNs / kUnit);
    EXPECT_EQ(a.deviceEndNs / kUnit, b.deviceEndNs / kUnit);
    for (size_t i = 0; i < kFoldSends; ++i) EXPECT_EQ(a.networkNs[i] / kUnit, b.networkNs[i] / kUnit);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.rangeId, b.rangeId);
}

}  // namespace

TEST(Fold, GivesBackEachItemToTheUnit) {
    std::vector<FoldItem> items = someSteps(3, 20);
    FoldItem sends = call(2, 5, items.back().startNs + 1, items.back().startNs, 7 * kUnit);
    sends.key.sends = 2;
    sends.key.send[0] = {1, 8, 4096};
    sends.key.send[1] = {7, 8, 8192};
    sends.networkNs[0] = 90'000;
    sends.networkNs[1] = 5'000'000'000;
    items.push_back(sends);
    items.push_back(mark(FoldKind::start, items.back().startNs - 900, 0xffff'ffff'ffff'ffff));
    items.back().rangeId = 12;
    items.push_back(mark(FoldKind::end, items.back().startNs + 5, 0));
    items.back().rangeId = 12;
    items.push_back(call(2, 5, 0, 3, INT64_MAX / 2));  // from here to there

    const std::vector<FoldItem> told = decode(encode(items));
    ASSERT_EQ(told.size(), items.size());
    for (size_t i = 0; i < items.size(); ++i) expectSame(told[i], items[i]);
}

TEST(Fold, ACallOfALongJobCostsFewBytes) {
    constexpr int kSteps = 300, kCalls = 100;
    size_t bytes = 0;
    for (const Written& record : encode(someSteps(kSteps, kCalls)))
        bytes += cellsFor(sizeof record.head + record.bytes.size()) * kCellBytes + kBlockHeaderBytes;
    EXPECT_LT(bytes, size_t{1000} * kSteps);  // a kilobyte a step
    EXPECT_GT(bytes, size_t{kCalls} * kSteps);
}

TEST(Fold, MoreKeysThanTheModelHoldsBeginItAnew) {
    std::vector<FoldItem> items;
    for (int i = 0; i < 5000; ++i) items.push_back(call(1, static_cast<uint64_t>(i), i * kUnit, i * kUnit, kUnit));
    const std::vector<FoldItem> told = decode(encode(items));
    ASSERT_EQ(told.size(), items.size());
    for (size_t i = 0; i < items.size(); ++i) expectSame(told[i], items[i]);
}

TEST(Fold, BehindAMissingRecordNothingIsToldUntilTheModelBeginsAnew) {
    const std::vector<FoldItem> items = someSteps(4000, 100);
    std::vector<Written> records = encode(items);
    ASSERT_GT(records.size(), 70u);
    EXPECT_EQ(records[0].head.head.aux, kFoldStartsAnew);
    size_t anew = 3;
    while ((records[anew].head.head.aux & kFoldStartsAnew) == 0) ++anew;
    size_t kept = records[0].head.items + records[1].head.items;
    for (size_t i = anew; i < records.size(); ++i) kept += records[i].head.items;
    const auto behind = items[items.size() - 1];
    records.erase(records.begin() + 2);
    int unusable = 0;
    const std::vector<FoldItem> told = decode(records, &unusable);
    EXPECT_EQ(told.size(), kept);
    EXPECT_EQ(static_cast<size_t>(unusable), anew - 3);
    expectSame(told.back(), behind);
}

TEST(Fold, DamagedBytesEndARecordAndNothingElse) {
    const std::vector<Written> whole = encode(someSteps(40, 60));
    std::mt19937 random(11);
    int noticed = 0;
    for (int round = 0; round < 500; ++round) {
        std::vector<Written> records = whole;
        Written& victim = records[random() % records.size()];
        for (int flips = 0; flips < 4; ++flips)
            victim.bytes[random() % victim.bytes.size()] = static_cast<uint8_t>(random());
        if (round % 3 == 0)
            victim.bytes.resize(victim.head.bytes = static_cast<uint32_t>(random() % victim.bytes.size()));
        FoldDecoder decoder;
        size_t told = 0, announced = 0;
        for (const Written& record : records) {
            announced += record.head.items;
            decoder.begin(record.head, record.bytes.data());
            while (decoder.next()) ++told;
            if (decoder.isDamaged()) ++noticed;
        }
        EXPECT_LE(told, announced);
    }
    EXPECT_GT(noticed, 100);
}
