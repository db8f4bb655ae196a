// SPDX-License-Identifier: Apache-2.0
// Clocks of imported ranks that differ, and what only looks as if they did.
#include "collector/importers/clock_offsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "collector/importers/rank_of_file.h"

namespace rankscope::collector {
namespace {

constexpr int64_t kTransferNs = 50'000;

/// Eight ranks that meet in `count` all-reduces, 5 ms apart; each comes up to 2 ms after the first. With `ownGroups`
/// ranks 4 to 7 meet among themselves, always 300 us behind the others.
std::vector<RankCalls> job(size_t count, int64_t aheadNs, bool ownGroups = false) {
    std::mt19937 random(7);
    std::vector<RankCalls> ranks(8);
    for (int32_t rank = 0; rank < 8; ++rank) ranks[static_cast<size_t>(rank)].rank = rank;
    for (size_t k = 0; k < count; ++k) {
        std::vector<int64_t> arrivals;
        for (size_t rank = 0; rank < 8; ++rank)
            arrivals.push_back(static_cast<int64_t>(k) * 5'000'000 + static_cast<int64_t>(random() % 2'000'000));
        for (size_t rank = 0; rank < 8; ++rank) {
            const size_t first = ownGroups ? rank / 4 * 4 : 0, last = ownGroups ? first + 4 : 8;
            // Groups of their own end where they end; here ranks 4 to 7 follow the others, as stages of a pipeline do.
            int64_t endNs = *std::max_element(arrivals.begin() + (ownGroups ? 0 : static_cast<int64_t>(first)),
                                              arrivals.begin() + (ownGroups ? 4 : static_cast<int64_t>(last))) +
                            kTransferNs;
            int64_t startNs = arrivals[rank];
            if (ownGroups && rank >= 4) {
                endNs += 300'000;
                // The last of the group comes a transfer before the end.
                startNs = endNs - kTransferNs - (rank == 4 + k % 4 ? 0 : static_cast<int64_t>(random() % 1'000'000));
            }
            RankCalls::Call call;
            call.index = k;
            call.op = store::Op::allReduce;
            call.startNs = startNs + (rank >= 4 ? aheadNs : 0);
            call.endNs = endNs + static_cast<int64_t>(random() % 5000) + (rank >= 4 ? aheadNs : 0);
            ranks[rank].calls.push_back(call);
        }
    }
    return ranks;
}

std::vector<int64_t> aheadOf(const std::vector<ClockOffset>& offsets) {
    std::vector<int64_t> ahead;
    for (const ClockOffset& offset : offsets) ahead.push_back((offset.line.aheadNs + 5'000) / 10'000 * 10'000);
    return ahead;
}

/// The same calls as ranks 4 to 7 see them on a clock that is off by `line`.
std::vector<RankCalls> onClock(std::vector<RankCalls> ranks, const ClockLine& line) {
    for (size_t rank = 4; rank < 8; ++rank)
        for (RankCalls::Call& call : ranks[rank].calls) {
            call.startNs = line.reversed().moved(call.startNs);
            call.endNs = line.reversed().moved(call.endNs);
        }
    return ranks;
}

/// Largest distance between the ends of a collective, once its times are moved.
int64_t largestDistanceNs(const std::vector<RankCalls>& ranks, const std::vector<ClockOffset>& offsets) {
    int64_t largest = 0;
    for (size_t k = 0; k < ranks.front().calls.size(); ++k)
        for (size_t rank = 1; rank < ranks.size(); ++rank)
            largest = std::max(largest, std::abs(offsets[rank].line.moved(ranks[rank].calls[k].endNs) -
                                                 offsets.front().line.moved(ranks.front().calls[k].endNs)));
    return largest;
}

const std::vector<std::string> kOneHost(8, "a");
const std::vector<std::string> kNoHosts(8), kTwoHosts{"a", "a", "a", "a", "b", "b", "b", "b"};

TEST(ClockOffsets, EndsOfCommonCollectivesTellThem) {
    for (const int64_t ahead : {40'000ll, 300'000ll, 2'000'000'000ll}) {
        const std::vector<int64_t> expected{0, 0, 0, 0, ahead, ahead, ahead, ahead};
        EXPECT_EQ(aheadOf(clockOffsets(job(20, ahead), kNoHosts)), expected);
        EXPECT_EQ(aheadOf(clockOffsets(job(20, ahead), kTwoHosts)), expected);
    }
}

TEST(ClockOffsets, OneClockHasNone) {
    EXPECT_EQ(aheadOf(clockOffsets(job(20, 0), kNoHosts)), std::vector<int64_t>(8, 0));
    EXPECT_EQ(aheadOf(clockOffsets(job(20, 0), kTwoHosts)), std::vector<int64_t>(8, 0));
}

TEST(ClockOffsets, GroupsThatFollowOneAnotherAreNoClocks) {
    // Each has a last member of its own: nothing says that they are one. Told hosts have clocks of their own anyway.
    EXPECT_EQ(aheadOf(clockOffsets(job(20, 0, true), kNoHosts)), std::vector<int64_t>(8, 0));
}

TEST(ClockOffsets, ClocksThatDriftAreFollowed) {
    // 4,000 collectives, 5 ms apart: 50 ppm make a millisecond of their 20 seconds.
    const std::vector<RankCalls> straight = job(4000, 0);
    for (const double drift : {50e-6, -50e-6, 150e-6})
        for (const int64_t ahead : {0ll, 300'000ll, -2'000'000'000ll}) {
            const std::vector<RankCalls> ranks = onClock(straight, {ahead, drift, 0});
            for (const auto& hosts : {kNoHosts, kTwoHosts}) {
                const auto offsets = clockOffsets(ranks, hosts);
                EXPECT_LT(largestDistanceNs(ranks, offsets), 20'000) << drift << ' ' << ahead;
                EXPECT_NEAR(offsets[7].line.drift, drift, 1e-6);
                EXPECT_EQ(offsets[3].line.drift, 0);
                EXPECT_FALSE(offsets[7].doubted);
            }
        }
    EXPECT_EQ(clockOffsets(onClock(straight, {0, 400e-6, 0}), kTwoHosts)[7].samples, 0u)
        << "no two quartz clocks run apart so fast";
}

TEST(ClockOffsets, DriftThatNothingExplainsIsDoubted) {
    const auto offsets = clockOffsets(onClock(job(4000, 0, true), {0, 50e-6, 0}), kNoHosts);
    EXPECT_FALSE(offsets[3].doubted);
    EXPECT_TRUE(offsets[4].doubted);
    EXPECT_NEAR(offsets[4].line.drift, 50e-6, 1e-6);
}

TEST(ClockOffsets, OneNameOfTwoMachinesIsToldByTheirClocks) {
    const auto machines = [](const std::vector<ClockOffset>& offsets) {
        std::vector<size_t> told;
        for (const ClockOffset& offset : offsets) told.push_back(offset.machine);
        return told;
    };
    const std::vector<size_t> one(8, 0), two{0, 0, 0, 0, 1, 1, 1, 1};
    EXPECT_EQ(machines(clockOffsets(job(20, 0), kOneHost)), one);
    EXPECT_EQ(machines(clockOffsets(job(20, 300'000), kOneHost)), two);
    EXPECT_EQ(aheadOf(clockOffsets(job(20, 300'000), kOneHost)),
              (std::vector<int64_t>{0, 0, 0, 0, 300'000, 300'000, 300'000, 300'000}));
    EXPECT_EQ(machines(clockOffsets(onClock(job(4000, 0), {0, 50e-6, 0}), kOneHost)), two);
    EXPECT_EQ(machines(clockOffsets(job(20, 300'000), kTwoHosts)), one) << "their names tell them already";
    EXPECT_EQ(machines(clockOffsets(job(20, 0, true), kOneHost)), one) << "groups that follow one another";
}

TEST(ClockLine, LinesAreReversedAndJoined) {
    const ClockLine first{2'000'000'000, 50e-6, 1'000}, second{-300'000, -80e-6, 1'000};
    for (const int64_t timeNs : {int64_t{1'000}, int64_t{60'000'000'000}, int64_t{-5'000'000'000}}) {
        EXPECT_NEAR(static_cast<double>(first.reversed().moved(first.moved(timeNs)) - timeNs), 0, 2);
        EXPECT_NEAR(static_cast<double>(first.then(second).moved(timeNs) - second.moved(first.moved(timeNs))), 0, 2);
    }
    EXPECT_FALSE(fitClockLine({{1, 1}, {1, 2}}, 0, 2)) << "one time";
    EXPECT_FALSE(fitClockLine({{1, 1}}, 0, 2));
}

TEST(ClockOffsets, FewCollectivesTellNothing) {
    EXPECT_EQ(aheadOf(clockOffsets(job(3, 300'000), kNoHosts)), std::vector<int64_t>(8, 0));
    EXPECT_EQ(aheadOf(clockOffsets(job(3, 300'000), kTwoHosts)), std::vector<int64_t>(8, 0));
    EXPECT_TRUE(clockOffsets({}, {}).empty());
}

TEST(ClockOffsets, OtherOperationsAreOtherCollectives) {
    std::vector<RankCalls> ranks = job(20, 300'000);
    for (size_t rank = 4; rank < 8; ++rank) ranks[rank].calls[10].op = store::Op::broadcast;
    EXPECT_EQ(aheadOf(clockOffsets(ranks, kTwoHosts)), std::vector<int64_t>(8, 0));
}

TEST(ClockOffsets, LargerMessagesOfOneSideAreNoLateness) {
    // As above, but the fastest kernel of ranks 4 to 7 takes four times as long each time.
    std::vector<RankCalls> ranks = job(20, 0, true);
    for (size_t rank = 4; rank < 8; ++rank)
        for (RankCalls::Call& call : ranks[rank].calls) call.startNs = call.endNs - 4 * (call.endNs - call.startNs);
    EXPECT_EQ(aheadOf(clockOffsets(ranks, kNoHosts)), std::vector<int64_t>(8, 0));
}

TEST(ClockOffsets, OtherSizesAreOtherCollectives) {
    for (const bool ofGroups : {false, true}) {
        std::vector<RankCalls> ranks = job(20, 300'000);
        for (RankCalls& rank : ranks)
            for (RankCalls::Call& call : rank.calls) {
                if (ofGroups)
                    call.groupSize = rank.rank < 4 ? 4 : 8;
                else
                    call.bytes = rank.rank < 4 ? 4096 : 8192;
            }
        EXPECT_EQ(aheadOf(clockOffsets(ranks, kTwoHosts)), std::vector<int64_t>(8, 0)) << ofGroups;
        // Equal ones are the same.
        for (RankCalls& rank : ranks)
            for (RankCalls::Call& call : rank.calls) call.bytes = 4096, call.groupSize = 8;
        const std::vector<int64_t> expected{0, 0, 0, 0, 300'000, 300'000, 300'000, 300'000};
        EXPECT_EQ(aheadOf(clockOffsets(ranks, kTwoHosts)), expected) << ofGroups;
    }
}

TEST(ClockOffsets, ToldGroupsTieRanksThatNeverMeet) {
    // Ranks 0 to 3 are one group, 4 to 7 another, 3 and 4 a third: through it the clock of 5 to 7 is told to rank 0.
    std::vector<RankCalls> ranks = job(20, 300'000);
    for (RankCalls& rank : ranks) {
        std::vector<RankCalls::Call> calls = rank.calls;
        for (RankCalls::Call& call : calls) call.group = rank.rank < 4 ? 1 : 2;
        if (rank.rank == 3 || rank.rank == 4)
            for (RankCalls::Call call : rank.calls) {
                call.group = 3;
                calls.push_back(call);
            }
        rank.calls = calls;
    }
    const std::vector<int64_t> expected{0, 0, 0, 0, 300'000, 300'000, 300'000, 300'000};
    EXPECT_EQ(aheadOf(clockOffsets(ranks, kNoHosts)), expected);
    // Without the third group each group has the clock of its lowest rank.
    for (RankCalls& rank : ranks) rank.calls.resize(20);
    const std::vector<ClockOffset> apart = clockOffsets(ranks, kNoHosts);
    EXPECT_EQ(aheadOf(apart), std::vector<int64_t>(8, 0));
    for (size_t rank = 0; rank < 8; ++rank) EXPECT_EQ(apart[rank].against, rank < 4 ? 0 : 4) << rank;
}

TEST(ProfilerFileName, HostAndProcess) {
    const auto name = parseProfilerFileName("gpu-12.cluster_4711.1694128201545.pt.trace.json.gz");
    ASSERT_TRUE(name);
    EXPECT_EQ(name->host, "gpu-12.cluster");
    EXPECT_EQ(name->pid, 4711);
    for (const char* other : {"rank_0.json", "gpu_4711.pt.trace.json", "_4711.1694128201545.pt.trace.json",
                              "gpu_x.1694128201545.pt.trace.json", "gpu_99999999999.1.pt.trace.json", ""})
        EXPECT_FALSE(parseProfilerFileName(other)) << other;
}

}  // namespace
}  // namespace rankscope::collector
