// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/collective_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analyzer/costs/nccl_formulas.h"
#include "tests/unit/analyzer/units.h"

namespace rankscope::costs {
namespace {

using test::kMebi;

constexpr double kAlphaNs = 5'000, kRate = 100;
constexpr AlgorithmChoice kLl{store::Algorithm::ring, store::Protocol::ll};
constexpr AlgorithmChoice kSimple{store::Algorithm::ring, store::Protocol::simple};

/// Four ranks of one node: NCCL's base and 6 hops, of which LL takes 0.35 of Simple's time, and 1.5 bytes on the bus
/// for each byte. LL reaches 0.35 of the rate, which is inside of what NCCL's table allows.
double llNs(double bytes) {
    return 3 * kAlphaNs + 1.5 * bytes / (kRate * 0.35);
}

double simpleNs(double bytes) {
    return 8.5 * kAlphaNs + 1.5 * bytes / kRate;
}

facts::TraceFacts reductionsWithLl() {
    facts::TraceFacts facts;
    facts::Communicator& communicator = facts.communicators[1];
    communicator.id = 1;
    communicator.size = communicator.smallestNode = 4;
    for (const double mebibytes : {1, 4, 16, 64})
        for (int i = 0; i < 3; ++i) {
            store::Collective row;
            row.id = static_cast<int64_t>(facts.collectives.size()) + 1;
            row.communicatorId = 1;
            row.op = store::Op::allReduce;
            row.bytes = static_cast<int64_t>(mebibytes * kMebi);
            row.transferNs = static_cast<int64_t>(llNs(mebibytes * kMebi));
            row.complete = true;
            row.algorithm = kLl.algorithm;
            row.protocol = kLl.protocol;
            facts.collectives.push_back(row);
        }
    return facts;
}

Message reduction(double bytes) {
    Message message;
    message.shape = {1, 4};
    message.smallestNode = 4;
    message.op = store::Op::allReduce;
    message.bytes = bytes;
    message.present = kLl;
    message.presentNs = llNs(bytes);
    return message;
}

TEST(CollectiveCost, WithoutPeaksTheLinkIsTheLeastThatExplainsTheTimes) {
    const CollectiveCost cost(reductionsWithLl(), {});
    const auto link = cost.linkOf(reduction(64 * kMebi));
    ASSERT_TRUE(link);
    EXPECT_NEAR(link->bytesPerNs, 35 / 0.4, 0.5);  // LL reaches 0.4 of an NVLink at most
    EXPECT_NEAR(link->alphaNs, 15'000 / 3.6, 20);  // and starts 3.6 hops late at most
    const auto simple = cost.of(reduction(64 * kMebi), kSimple);
    ASSERT_TRUE(simple);
    EXPECT_GE(simple->scale.high * llNs(64 * kMebi), simpleNs(64 * kMebi)) << "no more is claimed than is gained";
    EXPECT_LT(simple->scale.high, 1);
}

TEST(CollectiveCost, APeakWithoutAStartUpGetsTheUsualOne) {
    const CollectiveCost cost(reductionsWithLl(), parseLinkPeaks("intra:gbps=100"));
    const auto link = cost.linkOf(reduction(kMebi));
    ASSERT_TRUE(link);
    EXPECT_EQ(link->bytesPerNs, 100);
    EXPECT_EQ(link->alphaNs, unknownAlphaNs(false));
}

TEST(CollectiveCost, WithoutPeaksAndSizesNothingIsKnownOfTheLink) {
    facts::TraceFacts facts = reductionsWithLl();
    facts.collectives.change()->resize(3);
    EXPECT_FALSE(CollectiveCost(facts, {}).linkOf(reduction(kMebi)));
    EXPECT_FALSE(CollectiveCost().linkOf(reduction(kMebi)));
}

TEST(CollectiveCost, BetweenSizesThatRanATimeIsKnownAndFarBeyondThemNot) {
    const CollectiveCost cost(reductionsWithLl(), {});
    const CostCurve* curve = cost.evidence().find({EvidenceFrom::trace, {1, 4}, store::Op::allReduce, kLl});
    ASSERT_NE(curve, nullptr);
    EXPECT_EQ(curve->samples(), 12u);
    EXPECT_NEAR(curve->at(4 * kMebi)->expected, llNs(4 * kMebi), 1);
    for (const double mebibytes : {0.6, 3.0, 40.0, 120.0}) {
        const auto ns = curve->at(mebibytes * kMebi);
        ASSERT_TRUE(ns) << mebibytes;
        EXPECT_LE(ns->low, llNs(mebibytes * kMebi)) << mebibytes;
        EXPECT_GE(ns->high, llNs(mebibytes * kMebi)) << mebibytes;
        EXPECT_NEAR(ns->expected, llNs(mebibytes * kMebi), 0.01 * ns->expected) << mebibytes;
    }
    EXPECT_FALSE(curve->at(300 * kMebi));
}

/// Of four ranks of a node, from 1 to 256 MiB.
NcclTestsTable table(AlgorithmChoice setting, double nsPerByte) {
    NcclTestsTable table;
    table.file = "sweep.txt";
    table.op = store::Op::allReduce;
    table.ranks = 4;
    table.nodes = 1;
    table.algorithm = setting.algorithm;
    table.protocol = setting.protocol;
    for (int64_t bytes = 1 << 20; bytes <= 1 << 28; bytes *= 2) {
        const double us = 30 + nsPerByte * static_cast<double>(bytes) / 1000;
        table.rows.push_back({bytes, us, us});
    }
    return table;
}

using store::Algorithm;
using store::Protocol;
constexpr AlgorithmChoice kOwn{Algorithm::unknown, Protocol::unknown}, kAnyRing{Algorithm::ring, Protocol::unknown},
    kAnyTree{Algorithm::tree, Protocol::unknown}, kAnySimple{Algorithm::unknown, Protocol::simple},
    kTreeSimple{Algorithm::tree, Protocol::simple};

Message ringSimple(double bytes = 64 * kMebi) {
    Message message = reduction(bytes);
    message.present = kSimple;
    message.presentNs = simpleNs(bytes);
    return message;
}

facts::TraceFacts forced(const char* variable, const char* value) {
    facts::TraceFacts facts;
    facts.meta[std::string("env.") + variable] = value;
    return facts;
}

TEST(CollectiveCost, ATableThatNamesOnlyTheAlgorithmTellsWhatTheSettingMakes) {
    const CollectiveCost cost({}, {}, {table(kAnyRing, 0.02), table(kAnyTree, 0.01)});
    const auto chosen = cost.under(ringSimple(), {{Algorithm::tree}, {}});
    ASSERT_TRUE(chosen);
    EXPECT_EQ(chosen->choice, kAnyTree);
    EXPECT_EQ(chosen->cost.basis, Basis::sweep);
    EXPECT_NEAR(chosen->cost.scale.expected, 0.5, 0.02);
    EXPECT_LT(chosen->cost.scale.low, chosen->cost.scale.expected);
    // Of what it does not name nothing is known, nor beyond its sizes.
    EXPECT_FALSE(cost.under(ringSimple(), {{}, {Protocol::ll}}));
    EXPECT_FALSE(cost.under(ringSimple(), {{Algorithm::tree, Algorithm::ring}, {}}));
    EXPECT_FALSE(cost.under(ringSimple(4096 * kMebi), {{Algorithm::tree}, {}}));
    EXPECT_EQ(cost.under(ringSimple(), {{Algorithm::ring}, {}})->choice, kSimple) << "that is what it runs with";
}

/// At 4 MiB the present choice takes five times what it should. A message of 6 MiB may lie in that kink or beside it;
/// what it took tells.
TEST(CollectiveCost, WhatAMessageTookTellsThatItLiesInNoKink) {
    NcclTestsTable kinked = table(kSimple, 0.02);
    kinked.rows[2].outOfPlaceUs = kinked.rows[2].inPlaceUs *= 5;
    const CollectiveCost cost({}, {}, {kinked, table(kLl, 0.01)});
    Message message = ringSimple(6 * kMebi);
    const auto factor = [&](double presentUs) {
        message.presentNs = presentUs * 1000;
        return cost.of(message, kLl).value().scale;
    };
    const double smoothUs = 30 + 0.02 * 6 * kMebi / 1000, thenUs = 30 + 0.01 * 6 * kMebi / 1000;
    const facts::Estimate beside = factor(smoothUs), in = factor(4 * smoothUs);
    EXPECT_NEAR(beside.expected, thenUs / smoothUs, 0.1 * beside.expected);
    EXPECT_LT(beside.high, 1);  // it surely gains
    EXPECT_NEAR(in.expected, thenUs / (4 * smoothUs), 0.1 * in.expected);
}

TEST(CollectiveCost, ATableThatNamesOnlyTheProtocolIsUsedAlike) {
    const CollectiveCost cost({}, {}, {table(kAnySimple, 0.01), table({Algorithm::unknown, Protocol::ll}, 0.03)});
    const auto chosen = cost.under(ringSimple(), {{}, {Protocol::ll}});
    ASSERT_TRUE(chosen);
    EXPECT_NEAR(chosen->cost.scale.expected, 3, 0.1);
}

TEST(CollectiveCost, NcclsOwnChoiceStandsForAJobThatForcesNothing) {
    const std::vector<NcclTestsTable> tables{table(kOwn, 0.02), table(kAnyTree, 0.01)};
    const CollectiveCost free({}, {}, tables);
    ASSERT_TRUE(free.presentTable(ringSimple()));
    EXPECT_EQ(free.presentTable(ringSimple())->key.choice, kOwn);
    EXPECT_NEAR(free.under(ringSimple(), {{Algorithm::tree}, {}})->cost.scale.expected, 0.5, 0.02);
    // Of a job that forces a ring it says what giving that back makes, once a table has the ring.
    EXPECT_EQ(CollectiveCost(forced("NCCL_ALGO", "Ring"), {}, tables).presentTable(ringSimple()), nullptr);
    const CollectiveCost ring(forced("NCCL_ALGO", "Ring"), {}, {table(kOwn, 0.01), table(kAnyRing, 0.02)});
    const auto given = ring.under(ringSimple(), {});
    ASSERT_TRUE(given);
    EXPECT_EQ(given->choice, kOwn);
    EXPECT_NEAR(given->cost.scale.expected, 0.5, 0.02);
}

TEST(CollectiveCost, WhatStandsForAMessageIsWhatNcclWouldComeToAsWell) {
    // With LL forced, NCCL_ALGO=Ring may have run Simple.
    EXPECT_EQ(CollectiveCost(forced("NCCL_PROTO", "LL"), {}, {table(kAnyRing, 0.02)}).presentTable(reduction(kMebi)),
              nullptr);
    // What names both comes first.
    const CollectiveCost both({}, {}, {table(kOwn, 0.02), table(kAnyRing, 0.02), table(kSimple, 0.02)});
    EXPECT_EQ(both.presentTable(ringSimple())->key.choice, kSimple);
}

TEST(CollectiveCost, AnotherChoiceIsOffByWhatPublishedTimesAreFromTheMiddleOfTheFormulas) {
    const LinkPeaks peaks = parseLinkPeaks("inter:gbps=25,alpha_us=12");
    facts::Communicator group;
    group.size = group.nodes = 8;
    const auto link = linkModel(peaks, group, store::Op::allReduce);
    ASSERT_TRUE(link);
    Message message = ringSimple(32 * kMebi);
    message.shape = {8, 8};
    message.present = {Algorithm::ring, Protocol::ll};
    message.presentNs = collectiveNs(*link, message.op, 8, message.bytes, message.present).middle();
    const auto simple = CollectiveCost({}, peaks).of(message, kSimple);
    ASSERT_TRUE(simple);
    const double error = 1 + modelError(*link, message.bytes);
    EXPECT_LT(simple->scale.expected, 0.7);
    EXPECT_NEAR(simple->scale.high, simple->scale.expected * error, 1e-9);
    EXPECT_NEAR(simple->scale.low, simple->scale.expected / error, 1e-9);
    EXPECT_GT(simple->scale.high, 1) << "LL that is as fast as told says nothing of what Simple is off by";
    // A hop of LL128 is known within a range, which is no wider for the error of the whole.
    message.bytes = 0.5 * kMebi;
    message.presentNs = collectiveNs(*link, message.op, 8, message.bytes, message.present).middle();
    const Range range = collectiveNs(*link, message.op, 8, message.bytes, {Algorithm::ring, Protocol::ll128});
    const auto ll128 = CollectiveCost({}, peaks).of(message, {Algorithm::ring, Protocol::ll128});
    ASSERT_TRUE(ll128);
    EXPECT_LT(ll128->scale.high, 0.95 * range.high * (1 + modelError(*link, message.bytes)) / message.presentNs);
}

TEST(CollectiveCost, BetweenTwoChoicesNcclTakesTheOneOrTheOther) {
    const NcclTestsTable tree = table(kTreeSimple, 0.012), ring = table(kSimple, 0.02);
    NcclTestsTable own = table(kOwn, 0.012);
    for (size_t i = 0; i < own.rows.size(); ++i)
        if (own.rows[i].bytes > 32 * kMebi) own.rows[i] = ring.rows[i];
    const CollectiveCost cost(forced("NCCL_PROTO", "LL"), parseLinkPeaks("intra:gbps=200,alpha_us=5"),
                              {own, tree, ring, table(kLl, 0.03)});
    const auto scaleAt = [&](double mebibytes) { return cost.under(reduction(mebibytes * kMebi), {})->cost.scale; };
    const facts::Estimate between = scaleAt(48);
    EXPECT_LE(between.low, 0.42);
    EXPECT_GE(between.high, 0.65);
    EXPECT_LT(std::min(std::abs(between.expected - 0.412), std::abs(between.expected - 0.67)), 0.02) << "no middle";
    // Where the sizes around it ran the same, or it is one of them, nothing is open.
    for (const double mebibytes : {6.0, 32.0}) EXPECT_LT(scaleAt(mebibytes).high, 0.55) << mebibytes;
    EXPECT_GT(scaleAt(64).low, 0.6);
}

TEST(CollectiveCost, TheModelIsHeldToWhatTablesSayOfASetting) {
    const LinkPeaks peaks = parseLinkPeaks("intra:gbps=100,alpha_us=200");
    const Message small = ringSimple(kMebi);
    const auto model = CollectiveCost({}, peaks).of(small, kTreeSimple);
    ASSERT_TRUE(model);
    ASSERT_LT(model->scale.low, 1) << "a tree may gain";
    // Measured, NCCL_ALGO=Tree takes longer.
    const CollectiveCost cost({}, peaks, {table(kAnyRing, 0.02), table(kAnyTree, 0.06)});
    const auto held = cost.of(small, kTreeSimple);
    ASSERT_TRUE(held);
    EXPECT_GT(held->scale.low, 1);
    EXPECT_LE(held->scale.low, held->scale.expected);
    EXPECT_LE(held->scale.expected, held->scale.high);
}

TEST(CollectiveCost, TheJobsOwnTimesComeBeforeTables) {
    facts::TraceFacts facts = reductionsWithLl();
    const size_t count = facts.collectives.size();
    for (size_t i = 0; i < count; ++i) {
        store::Collective row = facts.collectives[i];
        row.id += 100;
        row.protocol = Protocol::simple;
        row.transferNs = static_cast<int64_t>(simpleNs(static_cast<double>(*row.bytes)));
        facts.collectives.push_back(row);
    }
    const CollectiveCost cost(facts, {}, {table(kLl, 0.01), table(kSimple, 0.09)});
    const auto simple = cost.of(reduction(16 * kMebi), kSimple);
    ASSERT_TRUE(simple);
    EXPECT_EQ(simple->basis, Basis::measuredHere);
    EXPECT_NEAR(simple->scale.expected, simpleNs(16 * kMebi) / llNs(16 * kMebi), 0.01);
}

TEST(CollectiveCost, SizesThatNeverRanAreReadOffTheTableOfTheJobsSetting) {
    // The table's times hold launches: 20 us more than the job's own 4 MiB. At 64 MiB it knows a knee that no model
    // has.
    NcclTestsTable knee = table(kOwn, 0.02);
    for (NcclTestsRow& row : knee.rows)
        if (row.bytes >= 32 << 20) row.inPlaceUs *= 1.8;
    facts::Communicator group;
    group.id = 1;
    group.size = group.smallestNode = 4;
    const CollectivePrice::Sizes sizes{{4 * kMebi, {0.9 * 1000 * (30 + 0.02 * 4 * kMebi / 1000), 0, kSimple}}};
    const auto priced = [&](const std::vector<NcclTestsTable>& tables) {
        return CollectiveCost({}, parseLinkPeaks("intra:gbps=100,alpha_us=5"), tables)
            .price(group, store::Op::allReduce, sizes)
            .ns(64 * kMebi);
    };
    const double truth = 0.9 * 1.8 * 1000 * (30 + 0.02 * 64 * kMebi / 1000);
    ASSERT_TRUE(priced({knee}));
    EXPECT_NEAR(priced({knee})->expected, truth, 0.01 * truth);
    EXPECT_LT(priced({knee})->low, truth);
    EXPECT_GT(priced({knee})->high, truth);
    EXPECT_LT(priced({})->expected, 0.8 * truth);
    EXPECT_NEAR(priced({table(kAnyTree, 1)})->expected, priced({})->expected, 1) << "another setting's says nothing";
}

}  // namespace
}  // namespace rankscope::costs
