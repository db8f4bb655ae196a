// SPDX-License-Identifier: Apache-2.0
// What tables of nccl-tests are good for: host-bound floors, contradictions, what is not used and why.
#include "analyzer/costs/table_evidence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "analyzer/costs/collective_cost.h"
#include "tests/unit/analyzer/units.h"

namespace rankscope::costs {
namespace {

using test::kKibi;
using test::kMebi;

using store::Algorithm;
using store::Op;
using store::Protocol;
using Kind = TableNote::Kind;

/// Doublings from 1 KiB to 64 MiB over eight ranks of a node: `floorUs` or what the link takes.
NcclTestsTable table(const char* file, double floorUs, double gbps = 100) {
    NcclTestsTable table;
    table.file = file;
    table.line = 7;
    table.op = Op::allReduce;
    table.ranks = 8;
    table.nodes = 1;
    for (int64_t bytes = kKibi; bytes <= 64 * kMebi; bytes *= 2) {
        const double us = std::max(floorUs, 10 + static_cast<double>(bytes) / gbps / 1000);
        table.rows.push_back({bytes, us, us});
    }
    return table;
}

/// A job of eight ranks that reduces messages of 4 MiB, 16 times.
facts::TraceFacts job(AlgorithmChoice choice = {Algorithm::ring, Protocol::simple}) {
    facts::TraceFacts facts;
    facts::Communicator& communicator = facts.communicators[1];
    communicator.id = 1;
    communicator.size = communicator.smallestNode = 8;
    for (int i = 0; i < 16; ++i) {
        store::Collective row;
        row.id = i + 1;
        row.communicatorId = 1;
        row.op = Op::allReduce;
        row.bytes = 4 * kMebi;
        row.transferNs = 60'000;
        row.complete = true;
        row.algorithm = choice.algorithm;
        row.protocol = choice.protocol;
        facts.collectives.push_back(row);
    }
    return facts;
}

NcclTestsTable with(Algorithm algorithm, Protocol protocol, const char* file, double gbps = 100) {
    NcclTestsTable one = table(file, 0, gbps);
    one.algorithm = algorithm;
    one.protocol = protocol;
    return one;
}

std::vector<TableNote> notesOf(const facts::TraceFacts& facts, const std::vector<NcclTestsTable>& tables) {
    return CollectiveCost(facts, {}, tables).tableNotes(facts);
}

std::string only(const std::vector<TableNote>& notes, Kind kind) {
    const auto of = [&](const TableNote& note) { return note.kind == kind; };
    EXPECT_EQ(std::ranges::count_if(notes, of), 1) << toText(kind);
    const auto at = std::ranges::find_if(notes, of);
    return at == notes.end() ? "" : at->file + ": " + at->text;
}

bool any(const std::vector<TableNote>& notes, Kind kind) {
    return std::ranges::any_of(notes, [&](const TableNote& note) { return note.kind == kind; });
}

TEST(TableEvidence, SmallSizesOfOneProcessShowTheHost) {
    NcclTestsTable one = table("one.txt", 40);
    one.gpusPerThread = 8;
    EXPECT_EQ(hostBoundBytes(one), 2 * kMebi);
    EXPECT_EQ(linkTimes(one).front().bytes, 4 * kMebi);
    one.rows[3].inPlaceUs = 55;  // one disturbed size does not end the floor
    EXPECT_EQ(hostBoundBytes(one), 2 * kMebi);
    // With a process for each it is the links' own latency.
    one.gpusPerThread = 1;
    EXPECT_EQ(hostBoundBytes(one), 0);
    EXPECT_EQ(linkTimes(one).size(), one.rows.size());
}

TEST(TableEvidence, AFloorThatIsTooLowForEightLaunchesIsNotTheHosts) {
    NcclTestsTable one = table("one.txt", 20);
    one.gpusPerThread = 8;
    EXPECT_EQ(hostBoundBytes(one), 0);
    one.gpusPerThread = 4;
    EXPECT_GT(hostBoundBytes(one), 0);
    // Nor is what grows from the start.
    NcclTestsTable growing = table("growing.txt", 0, 0.1);
    growing.gpusPerThread = 4;
    EXPECT_EQ(hostBoundBytes(growing), 0);
    // Nor the latency of a slow network, nor that of two GPUs.
    NcclTestsTable slow = table("slow.txt", 200), pair = table("pair.txt", 10);
    slow.gpusPerThread = 8;
    pair.gpusPerThread = 2;
    EXPECT_EQ(hostBoundBytes(slow), 0);
    EXPECT_EQ(hostBoundBytes(pair), 0);
}

TEST(TableEvidence, HostBoundSizesAreNotUsedAndThatIsSaid) {
    NcclTestsTable one = table("one.txt", 40);
    one.gpusPerThread = 8;
    const CollectiveCost cost(job(), {}, {one});
    const CostCurve* curve = cost.evidence().find(keyOf(one));
    ASSERT_NE(curve, nullptr);
    EXPECT_FALSE(curve->at(kMebi));
    EXPECT_TRUE(curve->at(8 * kMebi));
    const std::string note = only(cost.tableNotes(job()), Kind::hostBound);
    EXPECT_NE(note.find("one.txt: one thread starts the kernels of 8 GPUs"), std::string::npos) << note;
    EXPECT_NE(note.find("up to 2 MiB"), std::string::npos) << note;
}

TEST(TableEvidence, TablesThatContradictAreBothNamed) {
    const std::vector<TableNote> notes = contradictions({table("a.txt", 0), table("b.txt", 0, 80)});
    ASSERT_EQ(notes.size(), 2u);
    EXPECT_EQ(notes[0].file, "a.txt");
    EXPECT_NE(notes[0].text.find("b.txt line 7"), std::string::npos) << notes[0].text;
    EXPECT_EQ(notes[1].file, "b.txt");
    EXPECT_NE(notes[1].text.find("a.txt line 7"), std::string::npos) << notes[1].text;
    // What rests on them holds both.
    const CollectiveCost cost(job(), {}, {table("a.txt", 0), table("b.txt", 0, 80)});
    const auto ns = cost.evidence().find(keyOf(table("", 0)))->at(64 * kMebi);
    ASSERT_TRUE(ns);
    EXPECT_LE(ns->low, 1000 * (10 + 64 * kMebi / 100e3) * 1.001);
    EXPECT_GE(ns->high, 1000 * (10 + 64 * kMebi / 80e3));
}

TEST(TableEvidence, TablesThatCannotBeTrustedAreNoEvidenceAndSaidOnce) {
    const auto evidence = [](const std::vector<NcclTestsTable>& tables, TableNote::Kind kind) {
        const CollectiveCost cost(job(), parseLinkPeaks("intra:gbps=200"), tables);
        std::set<std::string> files;
        for (const TableNote& note : cost.tableNotes(job()))
            if (note.kind == kind) files.insert(note.file);
        EXPECT_EQ(cost.tableNotes(job()).size(), files.size());
        EXPECT_EQ(cost.evidence().find(keyOf(table("", 0))), nullptr);
        return files;
    };
    EXPECT_EQ(evidence({table("fast.txt", 0, 900)}, Kind::impossible), std::set<std::string>{"fast.txt"});
    EXPECT_EQ(evidence({table("a.txt", 0), table("b.txt", 0, 40)}, Kind::contradicted),
              (std::set<std::string>{"a.txt", "b.txt"}));
    const CollectiveCost good(job(), parseLinkPeaks("intra:gbps=200"), {table("good.txt", 0)});
    EXPECT_NE(good.evidence().find(keyOf(table("", 0))), nullptr);
    EXPECT_TRUE(good.tableNotes(job()).empty());
}

TEST(TableEvidence, ACutTableIsUsedAndSaid) {
    NcclTestsTable cut = table("cut.txt", 0);
    cut.cutLine = 30;
    const std::string note = only(notesOf(job(), {cut}), Kind::cut);
    EXPECT_NE(note.find("ends inside the table of line 7: what stands above is used, 17 sizes to 64 MiB"),
              std::string::npos)
        << note;
    EXPECT_FALSE(any(notesOf(job(), {table("whole.txt", 0)}), Kind::cut));
}

TEST(TableEvidence, TablesThatDifferAsMeasuringAgainDoesAreNone) {
    NcclTestsTable again = table("b.txt", 0);
    for (size_t i = 0; i < again.rows.size(); ++i) again.rows[i].inPlaceUs *= i % 2 == 0 ? 1.04 : 0.97;
    EXPECT_TRUE(contradictions({table("a.txt", 0), again}).empty());
    again.rows[8].inPlaceUs *= 1.2;  // one size of 17 is chance
    EXPECT_TRUE(contradictions({table("a.txt", 0), again}).empty());
    again.rows[8].inPlaceUs *= 1.5;  // but not that far
    EXPECT_EQ(contradictions({table("a.txt", 0), again}).size(), 2u);
    // Another setting, group or operation says something else.
    NcclTestsTable ring = table("b.txt", 0, 50), larger = ring, other = ring;
    ring.algorithm = Algorithm::ring;
    larger.ranks = 16;
    other.op = Op::broadcast;
    EXPECT_TRUE(contradictions({table("a.txt", 0), ring, larger, other}).empty());
}

TEST(TableEvidence, KinksNameTheSizeToAvoid) {
    NcclTestsTable one = table("a.txt", 0);
    for (NcclTestsRow& row : one.rows)
        if (row.bytes == kMebi || row.bytes == kMebi / 2) row.inPlaceUs *= row.bytes == kMebi ? 6 : 3;
    const std::string note = only(notesOf(job(), {one}), Kind::kink);
    EXPECT_NE(note.find("a.txt: avoid 512 KiB to 1 MiB in all_reduce over 8 ranks: 1 MiB takes 123 us"),
              std::string::npos)
        << note;
    EXPECT_NE(note.find("where 2 MiB takes 31"), std::string::npos) << note;
}

TEST(TableEvidence, OwnMessagesHaveKinksToo) {
    facts::TraceFacts facts = job();
    const int64_t id = static_cast<int64_t>(facts.collectives.size());
    for (int i = 0; i < 8; ++i) {
        store::Collective row = facts.collectives[0];
        row.id = id + i + 1;
        row.bytes = i % 2 == 0 ? kMebi : 16 * kMebi;
        row.transferNs = i % 2 == 0 ? 200'000 : 180'000;
        facts.collectives.push_back(row);
    }
    const std::string note = only(notesOf(facts, {}), Kind::kink);
    EXPECT_NE(
        note.find("this run's own messages: avoid 1 MiB in all_reduce over 8 ranks with ring/simple: it takes 200 us"),
        std::string::npos)
        << note;
}

TEST(TableEvidence, AnotherVersionOfNcclIsSaid) {
    facts::TraceFacts facts = job();
    facts.meta["nccl_version"] = "2.28.9";
    NcclTestsTable same = table("same.txt", 0), older = table("older.txt", 0);
    same.ncclVersion = "22803";
    older.ncclVersion = "2.21.5+cuda12.4";
    const std::string note = only(notesOf(facts, {same, older}), Kind::otherVersion);
    EXPECT_NE(note.find("older.txt: measured with NCCL 2.21.5, the job ran with 2.28.9"), std::string::npos) << note;
    EXPECT_NE(note.find("worth a trial, and not recommended"), std::string::npos) << note;
    // Once for all of them.
    NcclTestsTable oldest = table("oldest.txt", 0);
    oldest.ncclVersion = "2.18.3";
    EXPECT_NE(
        only(notesOf(facts, {same, older, oldest}), Kind::otherVersion).find("so were oldest.txt line 7 (2.18.3)"),
        std::string::npos);
}

TEST(TableEvidence, WhatRestsOnAnotherVersionIsWorthATrial) {
    facts::TraceFacts facts = job();
    Message message;
    message.shape = {1, 8};
    message.smallestNode = 8;
    message.op = Op::allReduce;
    message.bytes = 4 * kMebi;
    message.present = {Algorithm::ring, Protocol::simple};
    message.presentNs = 60'000;
    const auto basis = [&](const std::string& ofRing, const std::string& ofTree) {
        NcclTestsTable ring = with(Algorithm::ring, Protocol::simple, "ring.txt"),
                       tree = with(Algorithm::tree, Protocol::simple, "tree.txt", 150);
        ring.ncclVersion = ofRing;
        tree.ncclVersion = ofTree;
        const auto cost = CollectiveCost(facts, {}, {ring, tree}).of(message, {Algorithm::tree, Protocol::simple});
        return cost ? cost->basis : Basis::model;
    };
    facts.meta["nccl_version"] = "2.28.9";
    EXPECT_EQ(basis("2.28.3", "22809"), Basis::sweep);
    EXPECT_EQ(basis("", ""), Basis::sweep) << "most tables do not say";
    EXPECT_EQ(basis("2.28.3", "2.27.1"), Basis::otherVersion);
    EXPECT_EQ(basis("3.0.0", ""), Basis::otherVersion);
    // A plugin that was called tells 2.26 or newer.
    facts.meta.erase("nccl_version");
    facts.meta["source"] = "capture";
    EXPECT_EQ(basis("2.28.3", "2.26.2"), Basis::sweep);
    EXPECT_EQ(basis("2.28.3", "2.25.1"), Basis::otherVersion);
}

TEST(TableEvidence, ATableOfWhatNcclDoesNotHaveIsNotUsed) {
    NcclTestsTable none = table("a.txt", 0);
    none.noSuchChoice = "pat";
    const CollectiveCost cost(job(), {}, {none});
    EXPECT_TRUE(std::ranges::none_of(cost.evidence().curves(),
                                     [](const auto& one) { return one.first.from == EvidenceFrom::ncclTests; }));
    const std::string note = only(cost.tableNotes(job()), Kind::notUsed);
    EXPECT_NE(note.find("pat, which NCCL does not have for all_reduce on 1 node"), std::string::npos) << note;
}

TEST(TableEvidence, WhatIsNotUsedIsSaidWithItsReason) {
    const auto why = [](const facts::TraceFacts& facts, std::vector<NcclTestsTable> tables) {
        return only(notesOf(facts, tables), Kind::notUsed);
    };
    NcclTestsTable larger = table("a.txt", 0);
    larger.ranks = 16;
    EXPECT_EQ(why(job(), {larger}),
              "a.txt: no group of the job is of 16 ranks on 1 node; its groups are of 8 ranks on "
              "1 node");
    NcclTestsTable gather = table("a.txt", 0);
    gather.op = Op::allGather;
    EXPECT_EQ(why(job(), {gather}), "a.txt: the job runs no all_gather over 8 ranks on 1 node");
    NcclTestsTable small = table("a.txt", 0);
    small.rows.resize(5);
    EXPECT_EQ(why(job(), {small}), "a.txt: it has 1 KiB to 16 KiB, the job sends 4 MiB to 4 MiB");
    EXPECT_NE(
        why(job(), {with(Algorithm::tree, Protocol::unknown, "a.txt")}).find("what the job runs now (ring/simple)"),
        std::string::npos);
    EXPECT_NE(why(job(), {with(Algorithm::ring, Protocol::unknown, "a.txt")}).find("no other table says"),
              std::string::npos);
    EXPECT_NE(why(job({Algorithm::unknown, Protocol::unknown}), {with(Algorithm::tree, Protocol::unknown, "a.txt")})
                  .find("not recorded"),
              std::string::npos);
    NcclTestsTable several = table("a.txt", 0);
    several.severalChoices = "NCCL_ALGO=Ring,Tree";
    EXPECT_NE(why(job(), {several}).find("NCCL_ALGO=Ring,Tree names several"), std::string::npos);
    // Two sides of a comparison are used, and so is what tells other sizes of the job's own setting.
    EXPECT_FALSE(any(notesOf(job(), {with(Algorithm::ring, Protocol::unknown, "a.txt"),
                                     with(Algorithm::tree, Protocol::unknown, "b.txt")}),
                     Kind::notUsed));
    EXPECT_FALSE(any(notesOf(job(), {table("a.txt", 0)}), Kind::notUsed));
}

}  // namespace
}  // namespace rankscope::costs
