// SPDX-License-Identifier: Apache-2.0
// A job of four ranks whose last calls are written down in sight.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/job_failure.h"

namespace rankscope::diagnose {
namespace {

using facts::EndedCall;

constexpr int64_t kSecondNs = 1'000'000'000;

/// Ranks that died without a farewell, after `silentS` seconds in which nothing got on.
class EndedJob {
  public:
    EndedJob(int ranks, int64_t silentS) {
        facts::JobEnd& end = m_analysis.facts.end.emplace();
        end.exitStatus = 134;
        end.lastProgressNs = 10 * kSecondNs;
        end.endNs = end.lastProgressNs + silentS * kSecondNs;
        for (int rank = 0; rank < ranks; ++rank) {
            facts::RankEnd& one = end.ranks.emplace_back();
            one.rank = rank;
            one.recorded = true;
            one.endKind = "vanished";
            one.lastNs = end.endNs;
            m_analysis.facts.ranks.push_back({.rank = rank, .recorded = true});
        }
    }

    EndedJob& group(int64_t id, const std::vector<int>& ranks) {
        for (const int rank : ranks) end().communicators[id].called[rank] = 0;
        m_analysis.facts.communicators[id] = {.id = id, .size = static_cast<int>(ranks.size()), .ranks = ranks};
        return *this;
    }

    /// `rank` called it and never saw it end.
    EndedJob& calls(int rank, int64_t group, int64_t seq, int64_t bytes = 1024, int64_t stream = 1) {
        add(rank, {.communicator = group, .seq = seq, .op = store::Op::allReduce, .bytes = bytes, .stream = stream});
        end().communicators[group].called[rank] = seq + 1;
        return *this;
    }

    EndedJob& sends(int rank, int64_t group, int peer) {
        add(rank, {.communicator = group, .op = store::Op::send, .bytes = 8, .peer = peer, .stream = 2});
        end().communicators[group].sent[{rank, peer}] = 1;
        return *this;
    }

    facts::JobEnd& end() { return *m_analysis.facts.end; }
    facts::RankEnd& rank(int rank) { return end().ranks[static_cast<size_t>(rank)]; }
    std::vector<job::Finding> findings() const { return detect(m_analysis); }
    job::Analysis& analysis() { return m_analysis; }

  private:
    void add(int rank, EndedCall call) {
        facts::RankEnd& one = end().ranks[static_cast<size_t>(rank)];
        call.startNs = end().lastProgressNs + static_cast<int64_t>(one.unfinished.size());
        one.unfinished.push_back(call);
        one.lastNccl = call;
    }

    job::Analysis m_analysis;
};

EndedJob jobWithoutRankTwo(int64_t silentS) {
    EndedJob job(4, silentS);
    job.group(1, {0, 1, 2, 3});
    for (const int rank : {0, 1, 3}) job.calls(rank, 1, 5);
    job.end().communicators[1].called[2] = 5;
    return job;
}

void expectOne(const std::vector<job::Finding>& findings, const char* id, const std::vector<int>& ranks) {
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].id, id);
    EXPECT_EQ(findings[0].ranks, ranks);
    EXPECT_EQ(findings[0].verdict, job::Verdict::found);
}

TEST(JobFailure, TheRankThatDidNotComeIsNamedAndThoseThatWaitAreItsVictims) {
    const auto findings = jobWithoutRankTwo(30).findings();
    expectOne(findings, "RS501", {2});
    EXPECT_EQ(findings[0].affectedRanks, (std::vector<int>{0, 1, 3}));
    EXPECT_EQ(findings[0].communicator, 1);
}

TEST(JobFailure, AJobThatSomebodyEndedIsJudgedOnlyWhenItStoodStill) {
    EndedJob ended = jobWithoutRankTwo(4);
    ended.end().stopSignal = 2;
    EXPECT_TRUE(ended.findings().empty());
    EndedJob hung = jobWithoutRankTwo(6);
    hung.end().stopSignal = 2;
    expectOne(hung.findings(), "RS501", {2});
    hung.end().longestGapNs = 3 * kSecondNs;  // it once stood still for half as long, and went on
    EXPECT_TRUE(hung.findings().empty());
}

TEST(JobFailure, WhatTheMissingRankStandsInIsToldAndWhereToReadMore) {
    EndedJob job = jobWithoutRankTwo(400);
    const auto first = [&] { return job.findings().at(0).evidence.facts.at(0); };
    EXPECT_EQ(first().find(" stood in "), std::string::npos);
    EXPECT_NE(job.findings()[0].fix.back().find("py-spy dump"), std::string::npos);
    auto& stack = job.rank(2).stack.emplace();
    stack.stalledNs = 300 * kSecondNs;
    EXPECT_EQ(first().find(" stood in "), std::string::npos) << "nothing could be read";
    EXPECT_NE(job.findings()[0].fix.back().find("py-spy dump"), std::string::npos) << job.findings()[0].fix.back();
    stack.threads = 7;
    stack.native = {"0x12 (libc.so.6)", "__GI___read+0x4d (libc.so.6)", "rankscope::Loader::fetch+0x1 (train)",
                    "main+0x5 (train)"};
    EXPECT_EQ(first(),
              "rank 2 stood in GI___read() <- rankscope::Loader::fetch() <- main() when it had recorded no progress "
              "for 300 s");
    EXPECT_NE(job.findings()[0].fix.back().find("7 threads of rank 2"), std::string::npos)
        << job.findings()[0].fix.back();
    stack.native[1] = "__read+0x4d (libc.so.6)";
    stack.python = {"__next__ (dataloader.py:633)", "train (train.py:41)"};
    EXPECT_EQ(first(),
              "rank 2 stood in read() <- __next__ (dataloader.py:633) <- train (train.py:41) when it had recorded no "
              "progress for 300 s");
    EXPECT_NE(job.findings()[0].fix.back().find("data loader"), std::string::npos) << job.findings()[0].fix.back();
}

TEST(JobFailure, HowTheRankEndedIsToldAndTheFixFitsIt) {
    EndedJob job = jobWithoutRankTwo(400);
    const auto says = [&](const char* words) { return job.findings().at(0).cause.find(words) != std::string::npos; };
    const auto advises = [&](const char* words) {
        const std::vector<std::string> fix = job.findings().at(0).fix;
        return std::ranges::any_of(fix, [&](const auto& line) { return line.find(words) != std::string::npos; });
    };
    EXPECT_TRUE(says("stood still, or was killed unnoticed"));
    EXPECT_TRUE(advises("dmesg"));
    job.rank(2).stack.emplace() = {.stalledNs = 300 * kSecondNs, .native = {"read+0x1 (libc.so.6)"}, .threads = 1};
    EXPECT_TRUE(says("stood still until it was killed, or crashed"));
    EXPECT_FALSE(advises("dmesg"));
    EXPECT_TRUE(advises("the newest file of pid"));
    job.rank(2).stack.reset();
    job.rank(2).endKind = "exit";
    job.rank(2).endCode = 0;
    EXPECT_TRUE(says("ended by itself with status 0"));
    EXPECT_TRUE(advises("look why rank 2"));
    EXPECT_FALSE(advises("py-spy")) << "it is no more";
}

TEST(JobFailure, AHealthyJobHasNothing) {
    EndedJob job = jobWithoutRankTwo(30);
    job.end().exitStatus = 0;
    for (facts::RankEnd& rank : job.end().ranks) {
        rank.endKind = "exit";
        rank.endCode = 0;
    }
    EXPECT_TRUE(job.findings().empty());
    job.analysis().facts.end.reset();
    EXPECT_TRUE(job.findings().empty());
}

TEST(JobFailure, RefusedMemoryTellsMoreThanTheStatusOfThoseThatNoticed) {
    EndedJob job(4, 0);
    job.group(1, {0, 1, 2, 3});
    for (int rank = 0; rank < 3; ++rank) {
        job.rank(rank).endKind = "exit";
        job.rank(rank).endCode = 1;
    }
    job.rank(1).failedAllocation = store::FailedAllocation{1, 1, 9 * kSecondNs, int64_t{70} << 30, "cudaMalloc"};
    const auto findings = job.findings();
    expectOne(findings, "RS501", {1});
    EXPECT_NE(findings[0].cause.find("ran out of memory (cudaMalloc of 70 GiB was refused)"), std::string::npos)
        << findings[0].cause;
}

TEST(JobFailure, WaitingIsFollowedOverGroupsAndMessagesToItsRoot) {
    EndedJob job(4, 30);
    job.group(1, {0, 1}).group(2, {1, 2}).group(3, {2, 3});
    job.calls(0, 1, 0);  // waits for rank 1,
    job.calls(1, 2, 0);  // which waits for rank 2,
    job.sends(2, 3, 3);  // which sends to rank 3, which receives nothing
    const auto findings = job.findings();
    expectOne(findings, "RS503", {3});
    EXPECT_EQ(findings[0].affectedRanks, (std::vector<int>{0, 1, 2}));
}

TEST(JobFailure, TwoGroupsInOppositeOrdersAreACircle) {
    EndedJob pair(2, 30);
    pair.group(1, {0, 1}).group(2, {0, 1});
    pair.calls(0, 1, 0).calls(0, 2, 0);
    pair.calls(1, 2, 0).calls(1, 1, 0);
    const auto findings = pair.findings();
    expectOne(findings, "RS503", {0, 1});
    EXPECT_NE(findings[0].cause.find("in a circle"), std::string::npos) << findings[0].cause;

    EndedJob apart(2, 30);  // on streams of their own the two do not hold each other up
    apart.group(1, {0, 1}).group(2, {0, 1});
    apart.calls(0, 1, 0, 8, 1).calls(0, 2, 0, 8, 2);
    apart.calls(1, 2, 0, 8, 2).calls(1, 1, 0, 8, 1);
    EXPECT_TRUE(apart.findings().empty());
}

TEST(JobFailure, OfACircleTheOneRankIsNamedThatAllOfItGoesThrough) {
    EndedJob job(4, 30);
    job.group(1, {0, 1, 2, 3}).group(2, {0, 1, 2, 3});
    for (int rank = 0; rank < 4; ++rank)
        for (const int64_t group : {rank == 2 ? 2 : 1, rank == 2 ? 1 : 2}) job.calls(rank, group, 0);
    expectOne(job.findings(), "RS503", {2});
}

TEST(JobFailure, WorkThatNobodyHeldUpIsNoWait) {
    // Everybody called 5 and 6 without a kernel to show for it; 7 is where rank 2 is missing.
    EndedJob job(4, 0);
    job.group(1, {0, 1, 2, 3});
    for (int rank = 0; rank < 4; ++rank) job.calls(rank, 1, 5).calls(rank, 1, 6);
    for (const int rank : {0, 1, 3}) job.calls(rank, 1, 7);
    expectOne(job.findings(), "RS501", {2});
}

facts::Contradiction contradiction(const std::vector<int64_t>& bytes) {
    facts::Contradiction result{.communicator = 1, .seq = 5};
    for (size_t rank = 0; rank < bytes.size(); ++rank)
        result.calls.emplace_back(
            static_cast<int>(rank),
            EndedCall{.communicator = 1, .seq = 5, .op = store::Op::allReduce, .bytes = bytes[rank]});
    return result;
}

TEST(JobFailure, WhereMostMembersAgreeTheOddOneIsNamedElseAll) {
    EndedJob job(4, 30);
    job.group(1, {0, 1, 2, 3});
    job.end().contradictions = {contradiction({64, 64, 32, 64})};
    const auto findings = job.findings();
    expectOne(findings, "RS502", {2});
    EXPECT_EQ(findings[0].affectedRanks, (std::vector<int>{0, 1, 3}));
    EXPECT_NE(findings[0].cause.find("they differ in size"), std::string::npos) << findings[0].cause;

    EndedJob pair(2, 30);
    pair.group(1, {0, 1});
    pair.end().contradictions = {contradiction({64, 32})};
    expectOne(pair.findings(), "RS502", {0, 1});
}

TEST(JobFailure, ARankThatWasReadStandingStoodStillWhateverTheClockSays) {
    EndedJob job(3, 0);  // the clock of virtual GPUs stands while a rank sleeps
    job.group(1, {0, 1, 2}).calls(0, 1, 4).calls(2, 1, 4);
    job.end().stopSignal = 15;
    EXPECT_TRUE(job.findings().empty()) << "ended by somebody, in the middle of a step";
    job.rank(1).stack.emplace().stalledNs = 15 * kSecondNs;
    const auto findings = job.findings();
    expectOne(findings, "RS501", {1});
    EXPECT_EQ(findings[0].cause.find("SIGKILL"), std::string::npos) << findings[0].cause;
    EXPECT_NE(findings[0].cause.find("stood still"), std::string::npos) << findings[0].cause;
}

TEST(JobFailure, AMessageWhoseEndsDifferInSizeIsBothRanks) {
    // Whoever died without a farewell, and whatever others wait for, follows from it.
    EndedJob job(3, 0);
    job.group(1, {0, 1, 2}).calls(2, 1, 9);
    facts::Contradiction& message = job.end().contradictions.emplace_back();
    message.communicator = 1;
    message.seq = 3;
    for (const auto& [rank, op, bytes] : {std::tuple(0, store::Op::send, 4000), std::tuple(1, store::Op::recv, 2000)})
        message.calls.emplace_back(rank,
                                   EndedCall{.communicator = 1, .seq = 3, .op = op, .bytes = bytes, .peer = 1 - rank});
    const auto findings = job.findings();
    expectOne(findings, "RS502", {0, 1});
    EXPECT_NE(findings[0].cause.find("they differ in size"), std::string::npos) << findings[0].cause;
    EXPECT_NE(findings[0].evidence.facts.at(0).find("number 4 from that rank"), std::string::npos);
}

TEST(JobFailure, NumbersOfARecordingThatLostCallsAreNotCompared) {
    EndedJob job(4, 30);
    job.group(1, {0, 1, 2, 3});
    job.end().contradictions = {contradiction({64, 64, 32, 64})};
    job.analysis().facts.losses.push_back({.kind = "ring_full"});
    EXPECT_TRUE(job.findings().empty());
}

}  // namespace
}  // namespace rankscope::diagnose
