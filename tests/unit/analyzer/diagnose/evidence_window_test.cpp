// SPDX-License-Identifier: Apache-2.0
// "Best seen in step 3" and the rows of trace.db that show it are of one step.
#include <gtest/gtest.h>

#include <set>

#include "analyzer/diagnose/critical_step.h"
#include "collector/store/sqlite.h"
#include "tests/unit/analyzer/player.h"

namespace rankscope::diagnose {
namespace {

using store::Op;

// No step takes as long as another, and the first that is analysed is no typical one.
constexpr double kOfStep[] = {1, 1.6, 0.7, 1.05, 0.9, 1};

// Gradients of a 16-bit model are reduced behind each backward pass.
test::TraceFixture reducedBehind(int passes, store::DataType type) {
    test::Player player(4, 2, "intra:gbps=100,alpha_us=5;inter:gbps=100,alpha_us=5");
    player.trace.dataType(type);
    const int world = player.communicator({0, 1, 2, 3});
    for (const double factor : kOfStep) {
        for (int pass = 0; pass < passes; ++pass) {
            for (int layer = 0; layer < 8; ++layer) player.compute(1e6 * factor, "gemm<__nv_bfloat16>");
            for (int layer = 0; layer < 8; ++layer) player.compute(2e6 * factor, "gemm<__nv_bfloat16>", 96);
            for (int layer = 0; layer < 8; ++layer)
                player.beside(world, Op::allReduce, 200e6, (70e3 + 200e6 * 1.5 / 100) * factor);
            player.meet();
        }
        player.endStep();
    }
    return player.trace;
}

// Gradients are reduced beside the backward pass, over eight ranks of a node at `share` of its links' 100 GB/s.
test::TraceFixture reducedBeside(double bytes, double share, double startUpNs) {
    test::Player player(8, 8, "intra:gbps=100,alpha_us=5;inter:gbps=25,alpha_us=20");
    player.trace.choice(store::Algorithm::ring, share < 1 ? store::Protocol::ll : store::Protocol::simple);
    if (share < 1) player.trace.environment("NCCL_PROTO", "LL");
    const int world = player.communicator({0, 1, 2, 3, 4, 5, 6, 7});
    for (const double factor : kOfStep) {
        for (int layer = 0; layer < 8; ++layer) player.compute(2e6 * factor, "forward");
        for (int layer = 0; layer < 8; ++layer) {
            player.compute(4e6 * factor, "backward");
            player.beside(world, Op::allReduce, bytes * factor, startUpNs + bytes * factor * 1.75 / (100 * share));
        }
        player.meet();
        player.endStep();
    }
    return player.trace;
}

// Two nodes of four: groups inside of them and pairs between them, the pairs of ranks so many times as slow as told.
test::TraceFixture withSlowLinks(double insideFactor, const std::vector<double>& acrossFactors, const char* links) {
    test::Player player(8, 4, links);
    if (acrossFactors.front() > 1) player.trace.environment("NCCL_IB_DISABLE", "1");
    const std::vector<int> inside{player.communicator({0, 1, 2, 3}), player.communicator({4, 5, 6, 7})};
    const std::vector<int> across{player.communicator({0, 4}), player.communicator({1, 5}), player.communicator({2, 6}),
                                  player.communicator({3, 7})};
    for (const double factor : kOfStep) {
        for (int layer = 0; layer < 16; ++layer) {
            player.compute((layer < 6 ? 0.6e6 : 1.2e6) * factor, layer < 6 ? "forward" : "backward");
            const double ns = 42e3 + 50e6 * 1.5 / 100;
            player.blocking(inside, Op::allReduce, 50e6, {insideFactor * ns, ns});
        }
        for (int bucket = 0; bucket < 4; ++bucket) {
            std::vector<double> ns;
            for (const double slower : acrossFactors)
                ns.push_back((20e3 + 50e6 / 25) * slower * (slower > 1 ? factor : 1));
            player.blocking(across, Op::allReduce, 50e6, ns);
        }
        player.endStep();
    }
    return player.trace;
}

constexpr const char* kLinksTold = "intra:gbps=100,alpha_us=5;inter:gbps=25,alpha_us=10";

// The diagnoses of which rows were seen; those that lie elsewhere fail.
std::set<std::string> shownInTheirStep(const test::TraceFixture& job) {
    const test::TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "trace.db";
    job.write(file);
    store::Database trace(file.string(), store::OpenMode::readOnly);
    const auto startOf = [&](const job::EvidenceRow& row) {
        store::Statement start(trace, row.table == "collective"
                                          ? "SELECT last_arrival_ns FROM collective WHERE id = ?1"
                                          : "SELECT start_ns FROM " + row.table + " WHERE id = ?1");
        start.bind(1, row.id);
        return start.step() ? start.integer(0) : -1;
    };
    std::set<std::string> shown;
    for (const job::Finding& finding : job.analyze().findings) {
        for (const job::EvidenceRow& row : finding.evidence.rows) {
            EXPECT_GE(startOf(row), finding.windowStartNs) << finding.id << " " << row.table << " " << row.id;
            EXPECT_LT(startOf(row), finding.windowEndNs) << finding.id << " " << row.table << " " << row.id;
            shown.insert(finding.id);
        }
    }
    return shown;
}

TEST(EvidenceRows, LieInTheStepInWhichTheFindingIsBestSeen) {
    EXPECT_TRUE(shownInTheirStep(reducedBehind(1, store::DataType::bf16)).contains("RS201"));
    const std::set<std::string> twice = shownInTheirStep(reducedBehind(2, store::DataType::f32));
    EXPECT_TRUE(twice.contains("RS206"));
    EXPECT_TRUE(twice.contains("RS210"));
    EXPECT_TRUE(shownInTheirStep(withSlowLinks(3, {1, 1, 3, 1}, kLinksTold)).contains("RS208")) << "rank 2's";
    EXPECT_TRUE(shownInTheirStep(reducedBeside(600e6, 1, 82e3)).contains("RS203"));
    EXPECT_TRUE(shownInTheirStep(withSlowLinks(1, {3, 3, 3, 3}, kLinksTold)).contains("RS204"));
    EXPECT_TRUE(shownInTheirStep(withSlowLinks(1, {3, 3, 3, 3}, "")).contains("RS204")) << "a setting says so";
    EXPECT_TRUE(shownInTheirStep(reducedBeside(200e6, 0.4, 28e3)).contains("RS205"));
}

TEST(EvidenceRows, OfAProbeTheFirstFewOfEachStepAreKeptAndThoseOfTheFindingsStepAreShown) {
    job::Analysis analysis;
    facts::RankFacts facts;
    facts.rank = 4;
    facts.steps = {{1, 0, 100, false}, {2, 100, 100, false}, {3, 200, 100, false}};
    analysis.facts.ranks = {facts};
    job::LinkProbe probe;
    for (const int64_t startNs : {10, 20, 30, 110, 120, 130, 210})
        probe.keep(analysis, {"collective", startNs, 4, {}, startNs}, [] { return "slow"; });
    const auto idsShown = [&](int64_t from, int64_t to) {
        job::Finding finding;
        finding.windowStartNs = from;
        finding.windowEndNs = to;
        addRowsOfWindow(probe, finding);
        std::vector<int64_t> ids;
        for (const job::EvidenceRow& row : finding.evidence.rows) ids.push_back(row.id);
        return ids;
    };
    EXPECT_EQ(probe.rows.size(), 5u);
    EXPECT_EQ(idsShown(100, 200), (std::vector<int64_t>{110, 120}));
    EXPECT_EQ(idsShown(200, 300), (std::vector<int64_t>{210}));
    EXPECT_EQ(idsShown(300, 400), (std::vector<int64_t>{10, 20})) << "of none there the first";
}

}  // namespace
}  // namespace rankscope::diagnose
