// SPDX-License-Identifier: Apache-2.0
// Peaks of links from tables of nccl-tests: their plateaus, and what is said of tables that tell none.
#include "analyzer/costs/measured_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "analyzer/costs/table_trust.h"
#include "tests/unit/analyzer/units.h"

namespace rankscope::costs {
namespace {

using test::kMebi;

/// Doublings from 1 MiB over eight ranks.
NcclTestsTable doublings(const char* file, double gbps, int64_t largest = 1024 * kMebi) {
    NcclTestsTable table;
    table.file = file;
    table.line = 12;
    table.op = store::Op::allReduce;
    table.ranks = 8;
    table.nodes = 1;
    for (int64_t bytes = kMebi; bytes <= largest; bytes *= 2) {
        const double us = 30 + static_cast<double>(bytes) * 1.75 / gbps / 1e3;
        table.rows.push_back({bytes, us, us, 14});
    }
    return table;
}

LinkSources measured(const std::vector<NcclTestsTable>& tables, const facts::TraceFacts& facts = {}) {
    LinkSources sources;
    addMeasuredLinks(tables, facts, sources);
    return sources;
}

/// Returns the only one there is, bytes per ns; 0 where there is none or several.
double rateOf(const LinkSources& sources, bool betweenNodes = false) {
    const bool one = sources.measured.size() == 1 && sources.measured[0].betweenNodes == betweenNodes;
    return one ? sources.measured[0].link.bytesPerNs : 0;
}

bool complainsOf(const LinkSources& sources, const std::string& words) {
    return std::ranges::any_of(sources.complaints,
                               [&](const std::string& one) { return one.find(words) != std::string::npos; });
}

TEST(MeasuredLinks, ATableGivesItsPlateau) {
    NcclTestsTable table = doublings("reduce.log", 230);
    table.rows[9].inPlaceUs /= 3;  // one row that went wrong
    const LinkSources sources = measured({table});
    EXPECT_NEAR(rateOf(sources), 230, 3);
    EXPECT_EQ(sources.measured[0].link.kind, PeakKind::measured);
    EXPECT_NE(sources.measured[0].link.source.find("to 1 GiB, reduce.log line 12"), std::string::npos);
    EXPECT_TRUE(sources.complaints.empty());
    table.nodes = 2;
    EXPECT_NEAR(rateOf(measured({table}), true), 230 / 4.0, 1);  // four cards of a node carry the ring
}

TEST(MeasuredLinks, ATableWithoutAPlateauIsSaid) {
    const LinkSources sources = measured({doublings("small.txt", 230, 32 * kMebi)});
    EXPECT_TRUE(sources.measured.empty());
    EXPECT_TRUE(complainsOf(sources, "small.txt line 12 tells no peak of the links: it ends at 32 MiB"));
    const LinkSources enough = measured({doublings("enough.txt", 230, 64 * kMebi)});
    EXPECT_EQ(enough.measured.size(), 1u);
    EXPECT_TRUE(enough.complaints.empty());
    // The warning reaches whoever resolves peaks.
    ASSERT_EQ(resolveLinkPeaks({}, sources).warnings.size(), 1u);
}

TEST(MeasuredLinks, WhatCannotBeIsNoPeak) {
    const LinkSources sources = measured({doublings("fast.txt", 8'750), doublings("good.txt", 230)});
    EXPECT_NEAR(rateOf(sources), 230, 3);
    EXPECT_TRUE(complainsOf(sources, "fast.txt line 12 tells no peak of the links: 1 GiB"));
    EXPECT_TRUE(complainsOf(sources, "1800 GB/s"));
}

TEST(MeasuredLinks, TablesThatContradictEachOtherAreBothNamedAndNeitherCounts) {
    const LinkSources sources = measured({doublings("a.txt", 230), doublings("b.txt", 60)});
    EXPECT_TRUE(sources.measured.empty());
    EXPECT_TRUE(complainsOf(sources, "a.txt line 12 tells no peak of the links: b.txt line 12"));
    EXPECT_TRUE(complainsOf(sources, "b.txt line 12 tells no peak of the links: a.txt line 12"));
    EXPECT_EQ(measured({doublings("a.txt", 230), doublings("b.txt", 200)}).measured.size(), 2u);
}

TEST(MeasuredLinks, OfTwoThatContradictEachOtherThatOfTheJobsNcclCounts) {
    std::vector<NcclTestsTable> tables{doublings("old.txt", 230), doublings("own.txt", 60)};
    tables[0].ncclVersion = "2.19.3";
    tables[1].ncclVersion = "2.28.9";
    facts::TraceFacts job;
    job.meta["nccl_version"] = "2.28.9";
    // Costs and links ask the same question of the same tables.
    const TrustedTables trusted = trustedTables(tables, {}, job);
    ASSERT_EQ(trusted.tables.size(), 1u);
    EXPECT_EQ(trusted.tables[0].file, "own.txt");
    EXPECT_NEAR(rateOf(measured(tables, job)), 60, 3);
    LinkSources given;
    given.tables = tables;
    const LinkPeaks peaks = resolveLinkPeaks(job, given);
    ASSERT_TRUE(peaks.intra);
    EXPECT_NEAR(peaks.intra->bytesPerNs, 60, 3);
    EXPECT_FALSE(resolveLinkPeaks({}, given).intra) << "of a job whose NCCL is unknown neither counts";
}

TEST(MeasuredLinks, ACutTableTellsItsPeakAndIsSaid) {
    NcclTestsTable table = doublings("cut.txt", 230);
    table.cutLine = 27;
    const LinkSources sources = measured({table});
    EXPECT_NEAR(rateOf(sources), 230, 3);
    EXPECT_TRUE(complainsOf(sources, "cut.txt line 27: the file ends inside the table of line 12"));
}

TEST(MeasuredLinks, RealTablesGiveThePublishedPeaks) {
    std::filesystem::path data;
    for (std::filesystem::path up = std::filesystem::current_path(); up.has_relative_path() && data.empty();
         up = up.parent_path())
        if (std::filesystem::exists(up.parent_path() / "shared/data/nccl_tests"))
            data = up.parent_path() / "shared/data/nccl_tests";
    if (data.empty()) GTEST_SKIP() << "the recorded data are not here";
    EXPECT_NEAR(rateOf(measured(readNcclTestsTables(data / "superbench_a100x8/nccl_allreduce.log"))), 235, 5);
    const auto efa =
        readNcclTestsTables(data / "p4d_a100x16_efa/nccl-tests_slurm-104.out", {store::Op::allGather, {}, {}});
    EXPECT_NEAR(rateOf(measured(efa), true) * 8, 81, 3);
}

}  // namespace
}  // namespace rankscope::costs
