// SPDX-License-Identifier: Apache-2.0
// Savings of findings by replay, on a job small enough to be played by hand.
#include "analyzer/diagnose/price.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/edits/what_if.h"
#include "tests/unit/analyzer/small_job.h"

namespace rankscope::diagnose {
namespace {

job::Finding found(const std::string& id, std::vector<int> ranks, double costNs) {
    job::Finding finding;
    finding.id = id;
    finding.ranks = std::move(ranks);
    finding.severity = 0.1;
    finding.costNs = costNs;
    return finding;
}

job::Analysis jobWithTwoCauses() {
    job::Analysis analysis = test::SmallJob{.readBackNs = 50}.analysis();
    for (const auto held = analysis.ranks.change(); facts::RankSummary & rank : *held) {
        facts::HostStall stall;
        stall.stallNs = 50;
        stall.cause = facts::IdleCause::blockingCall;
        stall.callNameId = test::SmallJob::kWaitName;
        rank.hostStalls.push_back(stall);
    }
    return analysis;
}

TEST(Price, AFindingSavesWhatItsChangesSave) {
    const job::Analysis analysis = test::SmallJob().analysis();
    std::vector<job::Finding> findings{found("RS301", {1}, 33)};
    const std::optional<Ceiling> ceiling = priceFindings(analysis, findings);
    EXPECT_EQ(findings[0].changes, std::vector{edits::parseChange("balance:ranks=1")});
    EXPECT_TRUE(findings[0].savingNs);
    EXPECT_EQ(findings[0].savingNs->expected, 50);
    EXPECT_EQ(findings[0].savingNs->low, 50);
    ASSERT_TRUE(ceiling);
    EXPECT_EQ(ceiling->savingNs.expected, 50);
    EXPECT_NEAR(ceiling->share, 50 / 201.0, 1e-9);
}

TEST(Price, AFindingsSavingIsThatOfItsOwnWhatIf) {
    const job::Analysis analysis = test::SmallJob{.extraNs = 30}.analysis();  // mean and middle step differ
    std::vector<job::Finding> findings{found("RS301", {1}, 33)};
    ASSERT_TRUE(priceFindings(analysis, findings));
    std::vector<std::unique_ptr<edits::Edit>> edits;
    for (const job::Change& change : findings[0].changes) edits.push_back(edits::makeEdit(change));
    const edits::WhatIf asked = edits::whatIf(analysis, edits);
    EXPECT_EQ(asked.savingNs.expected, findings[0].savingNs->expected);
    EXPECT_EQ(asked.savingNs.low, findings[0].savingNs->low);
    EXPECT_EQ(asked.savingNs.high, findings[0].savingNs->high);
}

TEST(Price, TheDeeperCauseKeepsTheTimeAndAllTogetherIsTheCeiling) {
    const job::Analysis analysis = jobWithTwoCauses();  // 257 ns
    std::vector<job::Finding> findings{found("RS301", {1}, 1), found("RS402", {0, 1}, 2)};
    const std::optional<Ceiling> ceiling = priceFindings(analysis, findings);
    ASSERT_TRUE(ceiling);
    EXPECT_EQ(ceiling->findings, 2u);
    EXPECT_EQ(ceiling->savingNs.expected, 106);
    EXPECT_EQ(findings[0].id, "RS402");  // by saving
    EXPECT_EQ(findings[0].savingNs->expected, 56);
    EXPECT_EQ(findings[1].savingNs->expected, 50);
}

TEST(Price, OfHundredsOfCausesTheFirstAreMendedAndTheOthersKeepWhatTheyCost) {
    const job::Analysis analysis = test::SmallJob().analysis();
    std::vector<job::Finding> findings(PriceThresholds::kMostPlayed + 3, found("RS301", {1}, 33));
    const std::optional<Ceiling> ceiling = priceFindings(analysis, findings);
    ASSERT_TRUE(ceiling);
    EXPECT_EQ(ceiling->savingNs.expected, 50);
    const auto isLeft = [](const job::Finding& finding) { return !finding.savingNs; };
    EXPECT_EQ(std::ranges::count_if(findings, isLeft), 3);
    for (const job::Finding& finding : findings) {
        EXPECT_EQ(finding.costNs, 33);
        if (!isLeft(finding)) continue;
        EXPECT_EQ(finding.whyNotPlayed, "the repairs of 32 other causes were played before it: mend these first");
        EXPECT_EQ(finding.verdict, job::Verdict::found);
    }
}

TEST(Price, WhatCannotBeReplayedSavesNobodyKnowsWhat) {
    const job::Analysis analysis = test::SmallJob().analysis();
    std::vector<job::Finding> findings{found("RS203", {0, 1}, 12), found("RS402", {0}, 7), found("RS303", {1}, 5)};
    findings[2].verdict = job::Verdict::inconclusive;
    EXPECT_FALSE(priceFindings(analysis, findings));
    for (const job::Finding& finding : findings) EXPECT_FALSE(finding.savingNs);
    EXPECT_EQ(findings[0].costNs, 12);
    EXPECT_EQ(findings[1].costNs, 7);
    EXPECT_TRUE(findings[2].changes.empty());
}

TEST(Price, WhatGainsLessThanTheFloorIsANoteWhateverItCostsAtMost) {
    const job::Analysis analysis = test::SmallJob().analysis();
    std::vector<job::Finding> findings{found("RS301", {0}, 60)};  // the quicker rank: nobody waits for it
    EXPECT_FALSE(priceFindings(analysis, findings));
    EXPECT_EQ(findings[0].verdict, job::Verdict::note);
    EXPECT_EQ(findings[0].savingNs->expected, 0);
    EXPECT_EQ(findings[0].severity, 0);
}

TEST(Price, ANoteThatGainsMoreThanTheFloorIsAFinding) {
    const job::Analysis analysis = test::SmallJob().analysis();
    std::vector<job::Finding> findings{found("RS301", {1}, 4)};
    findings[0].verdict = job::Verdict::note;
    findings[0].severity = 0.02;
    ASSERT_TRUE(priceFindings(analysis, findings));
    EXPECT_EQ(findings[0].verdict, job::Verdict::found);
    EXPECT_EQ(findings[0].savingNs->expected, 50);
    EXPECT_NEAR(findings[0].severity, 50 / 201.0, 1e-9);
    // A note for another reason than its cost stays one.
    findings[0].verdict = job::Verdict::note;
    findings[0].whyNote = "a single slow step";
    priceFindings(analysis, findings);
    EXPECT_EQ(findings[0].verdict, job::Verdict::note);
}

TEST(Price, SaturationSavesWhatHidesWithFewerBytes) {
    job::Analysis analysis = test::SmallJob().analysis();
    analysis.layout.roles[test::SmallJob::kCommunicator] = facts::CommRole::gradients;
    std::vector<job::Finding> findings{found("RS203", {0, 1}, 18), found("RS203", {0, 1}, 3)};
    findings[0].communicator = findings[1].communicator = test::SmallJob::kCommunicator;
    priceFindings(analysis, findings);
    EXPECT_EQ(findings[0].changes,
              std::vector{edits::parseChange("bytes:factor=0.4,communicator=7")});  // 18 of 30 ns are too much
    EXPECT_EQ(findings[1].changes, std::vector{edits::parseChange("bytes:factor=0.5,communicator=7")});
}

TEST(Price, GroupsThatAreToSendAsFewBytesAreOneChange) {
    job::Analysis analysis = test::SmallJob{.reductions = 4}.analysis();
    for (const int64_t id : {5, 6, 7, 8}) {
        analysis.layout.roles[id] = facts::CommRole::gradients;
        analysis.facts.communicators[id] = analysis.facts.communicators.at(test::SmallJob::kCommunicator);
    }
    replay::TaskGraph& graph = analysis.replay.graph;
    for (size_t i = 0; i < graph.exchanges.size(); ++i) {
        replay::Exchange& exchange = graph.exchanges.own(i);
        exchange.communicatorId = static_cast<uint32_t>(5 + i % 4);
        constexpr int64_t kNs[] = {3000, 3008, 1000, 30'000};  // 24 of 30 too much, nearly so, more than all, a half
        for (const replay::ExchangeMember& member : graph.membersOf(exchange))
            graph.durationNs[member.transfer] = kNs[i % 4];
    }
    job::Finding finding = found("RS203", {0, 1}, 2400);
    finding.communicator = test::SmallJob::kCommunicator;
    EXPECT_EQ(findDiagnosis("RS203")->repair(analysis, finding),
              (std::vector{edits::parseChange("bytes:factor=0.01,communicator=7"),
                           edits::parseChange("bytes:factor=0.2,communicator=5-6"),
                           edits::parseChange("bytes:factor=0.5,communicator=8")}));
}

TEST(Price, ABadReplayPricesNothing) {
    job::Analysis analysis = test::SmallJob().analysis();
    analysis.replay.measuredStepNs = 201 * 1.05;
    std::vector<job::Finding> findings{found("RS301", {1}, 33)};
    EXPECT_FALSE(priceFindings(analysis, findings));
    EXPECT_EQ(findings[0].costNs, 33);
    EXPECT_FALSE(findings[0].savingNs);
    Plays plays(analysis);
    EXPECT_FALSE(transferEfficiency(analysis, plays));
    analysis.replay.unavailable = "calls of the host are not recorded";
    EXPECT_FALSE(priceFindings(analysis, findings));
}

TEST(Price, ATypicalStepCountsWhereMostGainAndTheMeanWhereFewDo) {
    const std::vector<double> before{100, 150, 150, 152, 150, 150}, after{100, 100, 100, 100, 100, 100};
    EXPECT_DOUBLE_EQ(edits::typicalSaving(before, after).expected, 50);  // the first step had no fault
    EXPECT_LE(edits::typicalSaving(before, after).low, 50);
    EXPECT_GE(edits::typicalSaving(before, after).high, 50);
    const std::vector<double> rare{100, 100, 160, 100, 100, 100};
    EXPECT_DOUBLE_EQ(edits::typicalSaving(rare, after).expected, 10);
}

/// Four hands, of whom the one that began last ends first.
class LastFirst : public Players {
  public:
    LastFirst(const job::Analysis& analysis, std::vector<Play>& made) : m_player(analysis), m_made(made) {}
    size_t hands() const override { return 4; }
    size_t free() const override { return hands() - m_begun.size(); }
    void begin(size_t number, const Play& what) override {
        EXPECT_GT(free(), 0u);
        EXPECT_EQ(std::ranges::find(m_made, what), m_made.end());
        m_made.push_back(what);
        m_begun.emplace_back(number, what);
    }
    std::pair<size_t, Played> ended() override {
        const auto [number, what] = m_begun.back();
        m_begun.pop_back();
        return {number, m_player.play(what)};
    }

  private:
    const Player m_player;
    std::vector<Play>& m_made;
    std::vector<std::pair<size_t, Play>> m_begun;
};

TEST(Price, ExpectedPlaysBeginLongestFirstAndShortOnesWaitForThem) {
    const job::Analysis analysis = jobWithTwoCauses();
    const Play anew{{edits::parseChange("micro-batches:count=8")}}, balance{{edits::parseChange("balance")}},
        network{{edits::parseChange("network")}};
    std::vector<Play> made;
    Plays plays(std::make_unique<LastFirst>(analysis, made));
    plays.expect({balance, anew});
    plays.of(network);
    EXPECT_EQ(made, (std::vector<Play>{anew, network}));
    plays.of(anew);
    EXPECT_EQ(made, (std::vector<Play>{anew, network, balance}));
    plays.finish();
}

TEST(Price, APlayOfSeveralChangesTakesAsLongAsTheyDoTogether) {
    const job::Change balance = edits::parseChange("balance"), anew = edits::parseChange("micro-batches:count=8");
    EXPECT_DOUBLE_EQ(edits::effortOf({balance, anew, balance}),
                     2 * edits::effortOf({balance}) + edits::effortOf({anew}));
    EXPECT_DOUBLE_EQ(edits::effortOf({}), edits::effortOf({balance}));
}

void expectSamePrices(const std::vector<job::Finding>& these, const std::vector<job::Finding>& those) {
    ASSERT_EQ(these.size(), those.size());
    for (size_t i = 0; i < these.size(); ++i) {
        EXPECT_EQ(these[i].id, those[i].id);
        EXPECT_EQ(these[i].severity, those[i].severity);
        EXPECT_EQ(these[i].evidence.facts, those[i].evidence.facts);
        ASSERT_TRUE(these[i].savingNs && those[i].savingNs);
        EXPECT_EQ(these[i].savingNs->low, those[i].savingNs->low);
        EXPECT_EQ(these[i].savingNs->expected, those[i].savingNs->expected);
        EXPECT_EQ(these[i].savingNs->high, those[i].savingNs->high);
    }
}

TEST(Price, PlaysThatAreMadeAheadChangeNoPriceAndNoneIsMadeTwice) {
    const job::Analysis analysis = jobWithTwoCauses();
    std::vector<job::Finding> alone{found("RS301", {1}, 1), found("RS402", {0, 1}, 2)}, together = alone;
    ASSERT_TRUE(priceFindings(analysis, alone));
    std::vector<Play> made;
    Plays plays(std::make_unique<LastFirst>(analysis, made));
    ASSERT_TRUE(priceFindings(analysis, together, plays));
    EXPECT_TRUE(transferEfficiency(analysis, plays));
    plays.finish();
    EXPECT_EQ(made.size(), 4u);  // one repair, both, the ideal network, the other one alone
    expectSamePrices(together, alone);
}

TEST(Price, ThreadsGiveTheSamePrices) {
    const job::Analysis analysis = jobWithTwoCauses();
    std::vector<job::Finding> alone{found("RS301", {1}, 1), found("RS402", {0, 1}, 2)}, together = alone;
    ASSERT_TRUE(priceFindings(analysis, alone));
    Plays plays(analysis, 16);
    EXPECT_FALSE(plays.oneByOne());
    ASSERT_TRUE(priceFindings(analysis, together, plays));
    expectSamePrices(together, alone);
}

TEST(Price, ThreadsMayBeLeftWithPlaysThatNobodyTakes) {
    const job::Analysis analysis = jobWithTwoCauses();
    for (const bool askedAgain : {false, true}) {
        Plays plays(analysis, 2);
        plays.expect({{{edits::parseChange("balance")}}, {{edits::parseChange("network")}}, {.instant = true}});
        // The hand that this one leaves free has begun one of them.
        EXPECT_FALSE(plays.of({{edits::parseChange("balance:ranks=77")}}).impossible.empty());
        if (askedAgain) {
            EXPECT_EQ(plays.of({}).stepsNs, analysis.replay.unchangedStepsNs);
        }
    }
}

TEST(Price, APlayTellsWhyAChangeCannotBeMade) {
    const job::Analysis analysis = test::SmallJob().analysis();
    const Played played = Player(analysis).play({.changes = {edits::parseChange("balance:ranks=77")}});
    EXPECT_FALSE(played.impossible.empty());
    EXPECT_TRUE(played.stepsNs.empty());
}

TEST(Price, TransferEfficiencyIsTheIdealNetworksStep) {
    const job::Analysis analysis = test::SmallJob().analysis();
    Plays plays(analysis);
    const std::optional<double> transfer = transferEfficiency(analysis, plays);
    ASSERT_TRUE(transfer);
    EXPECT_NEAR(*transfer, 171 / 201.0, 1e-9);
}

}  // namespace
}  // namespace rankscope::diagnose
