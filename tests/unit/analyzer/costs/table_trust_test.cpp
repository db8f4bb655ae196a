// SPDX-License-Identifier: Apache-2.0
// Tables that cannot be so are set aside by name; those that can are kept.
#include "analyzer/costs/table_trust.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/analyzer/units.h"

namespace rankscope::costs {
namespace {

using store::Algorithm;
using store::Op;
using test::kKibi;
using test::kMebi;
using Kind = TableNote::Kind;

/// Doublings from 4 KiB to 256 MiB, 20 us and what `gbps` of bus bandwidth takes.
NcclTestsTable sweep(double gbps, int ranks = 8, int nodes = 1, Op op = Op::allReduce) {
    NcclTestsTable table;
    table.file = "a.txt";
    table.line = 7;
    table.op = op;
    table.ranks = ranks;
    table.nodes = nodes;
    const double factor = (op == Op::allReduce ? 2.0 : 1.0) * (ranks - 1) / ranks;
    int line = 9;
    for (int64_t bytes = 4 * kKibi; bytes <= 256 * kMebi; bytes *= 2) {
        const double us = 20 + static_cast<double>(bytes) * factor / gbps / 1e3;
        table.rows.push_back({bytes, us, us, line++});
    }
    return table;
}

NcclTestsTable named(NcclTestsTable table, const char* file) {
    table.file = file;
    return table;
}

/// Returns what is said of the only one that is set aside; empty where none is.
std::string only(const TrustedTables& trusted, Kind kind) {
    if (trusted.setAside.empty()) return {};
    EXPECT_EQ(trusted.setAside.size(), 1u);
    EXPECT_EQ(trusted.setAside[0].kind, kind) << toText(trusted.setAside[0].kind);
    EXPECT_EQ(trusted.setAside[0].file, "a.txt");
    EXPECT_EQ(trusted.setAside[0].line, 7);
    return trusted.setAside[0].text;
}

void expectParts(const std::string& text, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(TableTrust, ABandwidthBeyondTheLinksIsImpossible) {
    const LinkPeaks peaks = parseLinkPeaks("intra:gbps=200;inter:gbps=14.5");
    // One node: rings reach the rate, and switches that reduce 1.4 times as much.
    EXPECT_EQ(only(trustedTables({sweep(190)}, peaks), Kind::impossible), "");
    EXPECT_EQ(only(trustedTables({sweep(280)}, peaks), Kind::impossible), "");
    expectParts(only(trustedTables({sweep(400)}, peaks), Kind::impossible),
                {"256 MiB in 1.19 ms (line 25)", "393.3 GB/s", "308 GB/s", "200 GB/s a rank's port (told: --links)"});
    // No switch reduces an all-gather.
    EXPECT_EQ(only(trustedTables({sweep(210, 8, 1, Op::allGather)}, peaks), Kind::impossible), "");
    EXPECT_NE(only(trustedTables({sweep(260, 8, 1, Op::allGather)}, peaks), Kind::impossible), "");
    // Two nodes with four cards each: a ring 58 GB/s, trees and switches of the network twice as much.
    EXPECT_EQ(only(trustedTables({sweep(110, 8, 2)}, peaks), Kind::impossible), "");
    expectParts(only(trustedTables({sweep(8'750, 8, 2)}, peaks), Kind::impossible), {"14.5 GB/s a card between nodes"});
    NcclTestsTable ring = sweep(110, 8, 2);
    ring.algorithm = Algorithm::ring;
    EXPECT_NE(only(trustedTables({ring}, peaks), Kind::impossible), "") << "a ring crosses the network as often";
    ring = sweep(60, 8, 2);
    ring.algorithm = Algorithm::ring;
    EXPECT_EQ(only(trustedTables({ring}, peaks), Kind::impossible), "");
}

TEST(TableTrust, OnlyWhatIsKnownOfTheLinksIsALimit) {
    LinkPeaks peaks;
    for (const PeakKind kind : {PeakKind::atLeast, PeakKind::measured}) {
        peaks.intra = LinkClass{50, 0, kind, "what was reached"};
        EXPECT_TRUE(trustedTables({sweep(400)}, peaks).setAside.empty()) << toText(kind);
    }
    // What stands behind it is.
    peaks.intraOthers = {LinkClass{200, 0, PeakKind::machine, "NVML"}};
    EXPECT_EQ(trustedTables({sweep(400)}, peaks).setAside.size(), 1u);
    EXPECT_TRUE(trustedTables({sweep(190)}, peaks).setAside.empty());
    for (const PeakKind kind : {PeakKind::told, PeakKind::machine, PeakKind::deviceTable}) {
        peaks.intra = LinkClass{100, 0, kind, "a source"};
        EXPECT_EQ(trustedTables({sweep(190)}, peaks).setAside.size(), 1u) << toText(kind);
    }
}

TEST(TableTrust, NoTableIsFasterThanAnyLink) {
    EXPECT_TRUE(trustedTables({sweep(900), sweep(700, 16, 2)}).setAside.empty());  // B200
    expectParts(only(trustedTables({sweep(8'750)}), Kind::impossible), {"NVLink 6, 1800 GB/s"});
    NcclTestsTable instant = sweep(200);
    instant.rows[0].inPlaceUs = 2;
    EXPECT_TRUE(trustedTables({instant}).setAside.empty());
    instant.rows[0].inPlaceUs = 0.01;
    expectParts(only(trustedTables({instant}), Kind::impossible), {"4 KiB in 0.01 us (line 9)", "0.3 us"});
}

/// Eight ranks of a node, reductions of two sizes at 100 GB/s of bus bandwidth by ring/simple.
facts::TraceFacts reductions() {
    facts::TraceFacts facts;
    facts::Communicator& communicator = facts.communicators[1];
    communicator.id = 1;
    communicator.size = communicator.smallestNode = 8;
    for (const double mebibytes : {16, 64})
        for (int i = 0; i < 4; ++i) {
            store::Collective row;
            row.id = static_cast<int64_t>(facts.collectives.size()) + 1;
            row.communicatorId = 1;
            row.op = Op::allReduce;
            row.bytes = static_cast<int64_t>(mebibytes * kMebi);
            row.transferNs = static_cast<int64_t>(20'000 + static_cast<double>(*row.bytes) * 1.75 / 100);
            row.complete = true;
            row.algorithm = Algorithm::ring;
            row.protocol = store::Protocol::simple;
            facts.collectives.push_back(row);
        }
    return facts;
}

TEST(TableTrust, WhatTheJobItselfBeatsIsOfAnotherMachine) {
    const auto of = [](double gbps, Algorithm algorithm = Algorithm::unknown) {
        NcclTestsTable table = sweep(gbps);
        table.algorithm = algorithm;
        return table;
    };
    expectParts(only(trustedTables({of(30)}, {}, reductions()), Kind::impossible),
                {"64 MiB takes 3.93 ms by it, and 1.19 ms in this job", "2 of 2 sizes"});
    EXPECT_NE(only(trustedTables({of(30, Algorithm::ring)}, {}, reductions()), Kind::impossible), "");
    // A little slower is noise, faster is what tests are, and another setting may be slow.
    EXPECT_EQ(only(trustedTables({of(75)}, {}, reductions()), Kind::impossible), "");
    EXPECT_EQ(only(trustedTables({of(190)}, {}, reductions()), Kind::impossible), "");
    EXPECT_EQ(only(trustedTables({of(30, Algorithm::tree)}, {}, reductions()), Kind::impossible), "");
    // So may NCCL's own choice, where the job's is forced.
    facts::TraceFacts forced = reductions();
    forced.meta["env.NCCL_ALGO"] = "Ring";
    EXPECT_EQ(only(trustedTables({of(30)}, {}, forced), Kind::impossible), "");
    EXPECT_NE(only(trustedTables({of(30, Algorithm::ring)}, {}, forced), Kind::impossible), "");
}

TEST(TableTrust, TimesThatFallWithTheSizeAreInconsistent) {
    NcclTestsTable falling = sweep(200);
    for (size_t i = 0; i < falling.rows.size(); ++i) falling.rows[i].inPlaceUs = 50000.0 / static_cast<double>(i + 1);
    expectParts(only(trustedTables({falling}), Kind::inconsistent),
                {"its times fall with the size: 4 KiB 50 ms (line 9) takes longer than 256 MiB 2.94 ms (line 25)"});
    for (size_t i = 0; i < falling.rows.size(); ++i) falling.rows[i].inPlaceUs = 10'000 - 300 * static_cast<double>(i);
    EXPECT_NE(only(trustedTables({falling}), Kind::inconsistent), "");
    // Kinks, a noisy floor and a slow start do not.
    NcclTestsTable kinked = sweep(200);
    for (size_t i : {4, 8, 9}) kinked.rows[i].inPlaceUs *= 6;
    EXPECT_EQ(only(trustedTables({kinked}), Kind::inconsistent), "");
    NcclTestsTable floor = sweep(200);
    for (size_t i = 0; i < 10; ++i) floor.rows[i].inPlaceUs = i % 2 == 0 ? 40 : 36;
    EXPECT_EQ(only(trustedTables({floor}), Kind::inconsistent), "");
    NcclTestsTable one = sweep(200);
    one.rows.resize(1);
    EXPECT_EQ(only(trustedTables({one}), Kind::inconsistent), "");
}

TEST(TableTrust, TwoTimesOfOneSizeAreInconsistent) {
    NcclTestsTable twice = sweep(200);
    twice.rows.push_back(twice.rows.back());
    twice.rows.back().line = 26;
    EXPECT_EQ(only(trustedTables({twice}), Kind::inconsistent), "");
    twice.rows.back().inPlaceUs *= 1.3;
    EXPECT_EQ(only(trustedTables({twice}), Kind::inconsistent), "");
    twice.rows.back().inPlaceUs *= 3;
    expectParts(only(trustedTables({twice}), Kind::inconsistent),
                {"it says two things of one size: 256 MiB 2.37 ms (line 25) and 256 MiB 9.24 ms (line 26)"});
}

TEST(TableTrust, TablesThatContradictEachOtherAreBothSetAside) {
    const TrustedTables both = trustedTables({named(sweep(200), "a.txt"), named(sweep(60), "b.txt")});
    EXPECT_TRUE(both.tables.empty());
    ASSERT_EQ(both.setAside.size(), 2u);
    EXPECT_EQ(both.setAside[0].file, "a.txt");
    expectParts(both.setAside[0].text, {"b.txt line 7 says something else of the same", "256 MiB takes 2.37 ms here"});
    EXPECT_EQ(both.setAside[1].file, "b.txt");
    expectParts(both.setAside[1].text, {"a.txt line 7"});
    EXPECT_EQ(both.setAside[1].kind, Kind::contradicted);
    // What differs as measuring again does stays, and what is of another setting, group or operation.
    NcclTestsTable kinked = sweep(200);
    kinked.rows[9].inPlaceUs *= 4;
    NcclTestsTable ring = sweep(60);
    ring.algorithm = Algorithm::ring;
    EXPECT_TRUE(trustedTables({sweep(200), sweep(180), kinked, ring, sweep(60, 8, 2), sweep(60, 8, 1, Op::allGather)})
                    .setAside.empty());
    // Where most agree the one that does not is set aside.
    const TrustedTables most = trustedTables({sweep(200), named(sweep(60), "b.txt"), sweep(190)});
    EXPECT_EQ(most.tables.size(), 2u);
    ASSERT_EQ(most.setAside.size(), 1u);
    EXPECT_EQ(most.setAside[0].file, "b.txt");
}

TEST(TableTrust, OfTwoTablesTheOneOfTheJobsNcclStays) {
    facts::TraceFacts facts;
    facts.meta["nccl_version"] = "2.28.9";
    NcclTestsTable own = sweep(200), older = named(sweep(60), "older.txt");
    own.ncclVersion = "22809";
    older.ncclVersion = "2.18.3";
    for (const auto& tables : {std::vector{own, older}, std::vector{older, own}}) {
        const TrustedTables trusted = trustedTables(tables, {}, facts);
        ASSERT_EQ(trusted.tables.size(), 1u);
        EXPECT_EQ(trusted.tables[0].file, "a.txt");
        ASSERT_EQ(trusted.setAside.size(), 1u);
        EXPECT_EQ(trusted.setAside[0].file, "older.txt");
    }
    EXPECT_TRUE(trustedTables({own, older}).tables.empty()) << "without the job's version neither counts more";
}

}  // namespace
}  // namespace rankscope::costs
