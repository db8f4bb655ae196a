// SPDX-License-Identifier: Apache-2.0
// Jobs of a few ranks as dumps of a flight recorder tell them: who called how much, and what ended.
#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/job_failure.h"

namespace rankscope::diagnose {
namespace {

using facts::EndedCall;

class DumpedJob {
  public:
    explicit DumpedJob(int ranks) {
        end().isRecorder = true;
        for (int rank = 0; rank < ranks; ++rank) {
            end().ranks.push_back({.rank = rank, .recorded = true, .fromStart = true, .endKind = "unknown"});
            m_analysis.facts.ranks.push_back({.rank = rank});
        }
    }

    /// All of `ranks` have ended its first `ended` collectives.
    DumpedJob& group(int64_t id, const std::vector<int>& ranks, int64_t ended = 5) {
        for (const int rank : ranks) {
            end().communicators[id].called[rank] = ended + 1;
            end().communicators[id].finished[rank] = ended + 1;
        }
        end().communicators[id].done = ended + 1;
        m_analysis.facts.communicators[id] = {.id = id, .size = static_cast<int>(ranks.size()), .ranks = ranks};
        return *this;
    }

    /// The rank called its next collective of the group, which has not ended for it.
    DumpedJob& calls(int rank, int64_t group, store::Op op = store::Op::allReduce) {
        int64_t& called = end().communicators[group].called[rank];
        add(rank, {.communicator = group, .seq = called++, .op = op, .bytes = 1024});
        return *this;
    }

    /// The rank called and ended it.
    DumpedJob& ends(int rank, int64_t group) {
        facts::MemberCounts& counts = end().communicators[group];
        counts.finished[rank] = ++counts.called[rank];
        counts.done = std::max(counts.done, counts.called[rank]);
        return *this;
    }

    DumpedJob& sends(int rank, int64_t group, int peer, int64_t batch = -1) {
        int64_t& sent = end().communicators[group].sent[{rank, peer}];
        add(rank, {.communicator = group, .seq = sent++, .op = store::Op::send, .peer = peer, .group = batch});
        return *this;
    }
    DumpedJob& receives(int rank, int64_t group, int peer, int64_t batch = -1) {
        int64_t& received = end().communicators[group].received[{peer, rank}];
        add(rank, {.communicator = group, .seq = received++, .op = store::Op::recv, .peer = peer, .group = batch});
        return *this;
    }

    facts::JobEnd& end() { return m_analysis.facts.end ? *m_analysis.facts.end : m_analysis.facts.end.emplace(); }
    std::vector<job::Finding> findings() const { return detect(m_analysis); }

  private:
    void add(int rank, EndedCall call) {
        facts::RankEnd& one = end().ranks[static_cast<size_t>(rank)];
        call.startNs = ++m_ns;
        one.unfinished.push_back(call);
        one.lastNccl = call;
    }

    job::Analysis m_analysis;
    int64_t m_ns = 0;
};

void expectOne(const std::vector<job::Finding>& findings, const char* id, const std::vector<int>& ranks,
               const std::vector<int>& waiting, job::Verdict verdict = job::Verdict::found) {
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].id, id);
    EXPECT_EQ(findings[0].ranks, ranks) << findings[0].cause;
    EXPECT_EQ(findings[0].affectedRanks, waiting) << findings[0].cause;
    EXPECT_EQ(findings[0].verdict, verdict);
}

TEST(RecordedFailure, RanksThatDidNotCallWhatOthersWaitInAreNamedTogether) {
    DumpedJob job(6);
    job.group(1, {0, 1, 2}).group(2, {3, 4, 5}).group(3, {0, 3});
    job.calls(0, 1).calls(2, 1).calls(3, 2).calls(4, 2);
    const auto findings = job.findings();
    expectOne(findings, "RS501", {1, 5}, {0, 2, 3, 4});
    EXPECT_NE(findings[0].cause.find("ranks 1, 5 did not call all_reduce 6 of"), std::string::npos)
        << findings[0].cause;
}

TEST(RecordedFailure, AJobOnItsWayIsNone) {
    DumpedJob job(3);
    job.group(1, {0, 1, 2}).group(2, {0, 1, 2});
    EXPECT_TRUE(job.findings().empty());
    for (int rank = 0; rank < 3; ++rank) job.calls(rank, 1).calls(rank, 2);
    EXPECT_TRUE(job.findings().empty());
}

TEST(RecordedFailure, ADeviceThatEndsNothingMoreIsTheRootThoughItsHostCalledOn) {
    DumpedJob job(3);
    job.group(1, {0, 1, 2});
    job.calls(1, 1);            // collective 6, which the others end
    job.ends(0, 1).ends(2, 1);  // and go on to 7
    for (int rank = 0; rank < 3; ++rank) job.calls(rank, 1);
    const auto findings = job.findings();
    expectOne(findings, "RS501", {1}, {0, 2});
    EXPECT_NE(findings[0].cause.find("the device of rank 1 stands still"), std::string::npos) << findings[0].cause;
}

TEST(RecordedFailure, ABroadcastThatItsRootLeftIsNoProofThatOthersCame) {
    DumpedJob job(3);
    job.group(1, {0, 1, 2});
    job.ends(0, 1);
    job.calls(1, 1, store::Op::broadcast);
    expectOne(job.findings(), "RS501", {2}, {1});
}

TEST(RecordedFailure, TheRankWithoutADumpIsSuspectedWhereAllOthersCameAndNotWhereMostAreSuch) {
    DumpedJob job(4);
    job.group(1, {0, 1, 2, 3});
    job.end().ranks[3].recorded = false;
    job.end().communicators[1].called.erase(3);
    job.end().communicators[1].untold = {3};
    for (const int rank : {0, 1, 2}) job.calls(rank, 1);
    expectOne(job.findings(), "RS501", {3}, {0, 1, 2}, job::Verdict::inconclusive);

    DumpedJob alone(4);
    alone.group(1, {0, 1, 2, 3});
    for (const int rank : {1, 2, 3}) {
        alone.end().ranks[static_cast<size_t>(rank)].recorded = false;
        alone.end().communicators[1].called.erase(rank);
    }
    alone.end().communicators[1].untold = {1, 2, 3};
    alone.calls(0, 1);
    EXPECT_TRUE(alone.findings().empty());
}

TEST(RecordedFailure, MessagesLeadToWhoSendsNothing) {
    DumpedJob job(3);
    job.group(1, {0, 1, 2});
    job.receives(2, 1, 1).receives(1, 1, 0);
    const auto findings = job.findings();
    expectOne(findings, "RS503", {0}, {1, 2});
    EXPECT_NE(findings[0].cause.find("rank 0 did not send to rank 1"), std::string::npos) << findings[0].cause;
}

TEST(RecordedFailure, WhereRingsHaveDroppedMessagesASendMayHaveBeenMadeAndACollectiveTellsMore) {
    for (const bool collective : {false, true}) {
        DumpedJob job(4);
        job.group(1, {0, 1, 2, 3}).receives(2, 1, 1).receives(3, 1, 2);
        if (collective) job.group(2, {0, 1}).calls(0, 2);
        const auto found = collective ? std::vector{0, 2, 3} : std::vector{2, 3};
        expectOne(job.findings(), collective ? "RS501" : "RS503", {1}, found);
        job.end().ranks[1].fromStart = false;
        expectOne(job.findings(), collective ? "RS501" : "RS503", {1}, found,
                  collective ? job::Verdict::found : job::Verdict::inconclusive);
    }
    // A receiver that did not call has not received, whatever the numbers.
    DumpedJob job(3);
    job.group(1, {0, 1, 2}).sends(0, 1, 1);
    job.end().ranks[1].fromStart = false;
    expectOne(job.findings(), "RS503", {1}, {0});
}

TEST(RecordedFailure, ABatchRunsAtOnceWhateverTheOrderInIt) {
    DumpedJob ring(3);
    ring.group(1, {0, 1, 2});
    for (int rank = 0; rank < 3; ++rank) ring.sends(rank, 1, (rank + 1) % 3, 0).receives(rank, 1, (rank + 2) % 3, 0);
    EXPECT_TRUE(ring.findings().empty());
    DumpedJob broken(3);
    broken.group(1, {0, 1, 2});
    for (int rank = 0; rank < 2; ++rank) broken.sends(rank, 1, (rank + 1) % 3, 0).receives(rank, 1, (rank + 2) % 3, 0);
    expectOne(broken.findings(), "RS503", {2}, {0, 1});
}

TEST(RecordedFailure, WhoseCallWasMadeByAllButStandsBehindAnotherWaitsToo) {
    // Group 2 is whole, but rank 1 called it behind group 1, where rank 2 is missing.
    DumpedJob job(4);
    job.group(1, {0, 1, 2}).group(2, {1, 3});
    job.calls(0, 1).calls(1, 1).calls(1, 2).calls(3, 2);
    expectOne(job.findings(), "RS501", {2}, {0, 1, 3});
}

TEST(RecordedFailure, ACallThatAllMadeAndNobodyEndedIsARootWhereOthersStandBehindIt) {
    DumpedJob job(3);
    job.group(1, {0, 1}).group(2, {1, 2});
    job.calls(0, 1).calls(1, 1);
    EXPECT_TRUE(job.findings().empty());  // on its way, for all that is known
    job.calls(2, 2);
    const auto findings = job.findings();
    expectOne(findings, "RS503", {0, 1}, {2}, job::Verdict::inconclusive);
    EXPECT_NE(findings[0].cause.find("none of them ended it"), std::string::npos) << findings[0].cause;
}

TEST(RecordedFailure, WhereStartsAreSeenTheDeviceThatHasNotBegunIsTheRoot) {
    const auto withoutStartOfOne = [](int64_t standsNs) {
        DumpedJob job(3);
        job.group(1, {0, 1, 2});
        for (int rank = 0; rank < 3; ++rank) {
            job.calls(rank, 1);
            job.end().ranks[static_cast<size_t>(rank)].seesBegins = true;
            if (rank != 1) job.end().ranks[static_cast<size_t>(rank)].unfinished[0].begunNs = 10;
        }
        job.end().lastProgressNs = 10 + standsNs;
        return job;
    };
    const auto least = static_cast<int64_t>(FailureThresholds::kLeastStallNs);
    expectOne(withoutStartOfOne(least).findings(), "RS501", {1}, {0, 2});
    expectOne(withoutStartOfOne(least - 1).findings(), "RS501", {1}, {0, 2}, job::Verdict::inconclusive);
}

TEST(RecordedFailure, TwoGroupsInOppositeOrdersAreACircleOnlyAsFarAsStreamsAreKnown) {
    DumpedJob job(2);
    job.group(1, {0, 1}).group(2, {0, 1});
    job.calls(0, 1).calls(0, 2).calls(1, 2).calls(1, 1);
    expectOne(job.findings(), "RS503", {0, 1}, {}, job::Verdict::inconclusive);
    DumpedJob blocked(2);  // where the host waits for each call
    blocked.group(1, {0, 1}).group(2, {0, 1});
    blocked.calls(0, 1).calls(1, 2);
    expectOne(blocked.findings(), "RS503", {0, 1}, {});
}

TEST(RecordedFailure, AnOldOrCutDumpShowsNoDeviceThatStands) {
    DumpedJob job(3);
    job.group(1, {0, 1, 2});
    job.calls(1, 1);
    job.ends(0, 1).ends(2, 1);
    job.end().communicators[1].called.erase(1);
    job.end().ranks[1].isOld = true;
    for (const int rank : {0, 2}) job.calls(rank, 1);
    EXPECT_TRUE(job.findings().empty());
}

}  // namespace
}  // namespace rankscope::diagnose
