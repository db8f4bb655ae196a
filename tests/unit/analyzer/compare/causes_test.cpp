// SPDX-License-Identifier: Apache-2.0
// What made the difference between two sides, and how it is said.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analyzer/compare/changes.h"
#include "analyzer/compare/side_means.h"
#include "tests/unit/analyzer/compare/compared_sides.h"

namespace rankscope::compare {
namespace {

/// Two ranks: 80 ms of one kernel, then transfers of two kinds that nothing hides.
SideMeans makeMeans(double gradientsMs, double weightsMs) {
    SideMeans side;
    side.runs = 3;
    for (int rank = 0; rank < 2; ++rank) {
        RoleSummary role;
        role.role = "dp " + std::to_string(rank);
        role.rank = rank;
        role.host = "a";
        role.computeNs = 80 * kMs;
        role.work = {{"gemm", {80 * kMs, 1e5}}};
        role.exposedTransferNs = (gradientsMs + weightsMs) * kMs;
        side.roles[role.role] = role;
    }
    const auto add = [&](const char* use, const char* op, double ms) {
        TrafficSummary sum;
        sum.use = use;
        sum.op = op;
        sum.ranks = 2;
        sum.sizeClass = 12;
        sum.count = 4;
        sum.bytes = 100 << 20;
        sum.transferNs = sum.exposedTransferNs = ms * kMs;
        side.traffic[{use, op, 2, 12}] = sum;
        side.pathTransferNs[trafficName(use, op)] = ms * kMs;
    };
    add("gradients", "all_reduce", gradientsMs);
    add("weights", "all_gather", weightsMs);
    side.pathNs = {{"compute", 80 * kMs}, {"transfer", (gradientsMs + weightsMs) * kMs}};
    side.hasPath = true;
    return side;
}

bool holds(const std::vector<std::string>& lines, const std::string& part) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

TEST(Causes, WithoutCriticalPathsTheTrafficThatGrewMostIsJudged) {
    SideMeans base = makeMeans(10, 10), now = makeMeans(12, 30);
    base.hasPath = now.hasPath = false;
    const std::vector<ChangeCause> causes = whyChanged(base, now, {}, 22 * kMs);
    ASSERT_EQ(causes.size(), 1u);
    EXPECT_EQ(causes[0].kind, "slower_link");
    EXPECT_EQ(causes[0].where, "all_gather of weights");
}

TEST(Causes, AFactorReadsBetterThanManyPercent) {
    EXPECT_NE(whyChanged(makeMeans(10, 10), makeMeans(65, 10), {}, 55 * kMs).at(0).text.find("takes 6.5 times as long"),
              std::string::npos);
    EXPECT_NE(whyChanged(makeMeans(10, 10), makeMeans(14, 10), {}, 4 * kMs).at(0).text.find("takes 40.0 % longer"),
              std::string::npos);
}

TEST(Causes, EvidenceOfAnImprovementIsInTheOrderBaseNew) {
    const std::vector<ChangeCause> links = whyChanged(makeMeans(100, 10), makeMeans(10, 10), {}, -90 * kMs);
    ASSERT_FALSE(links.empty());
    EXPECT_EQ(links[0].text, "the link is faster: all_reduce of gradients of the same size takes 90.0 % less time");
    EXPECT_TRUE(holds(links[0].evidence, "transfer 100 ms -> 10 ms")) << links[0].evidence.at(1);

    SideMeans slow = makeMeans(10, 10);
    for (auto& [name, role] : slow.roles) role.computeNs = 100 * kMs;
    slow.pathNs["compute"] = 100 * kMs;
    const std::vector<ChangeCause> compute = whyChanged(slow, makeMeans(10, 10), {}, -20 * kMs);
    ASSERT_FALSE(compute.empty());
    EXPECT_EQ(compute[0].kind, "slower_compute");
    EXPECT_TRUE(holds(compute[0].evidence, "100 ms -> 80 ms a step (-20.0 %)")) << compute[0].evidence.at(0);
}

TEST(Causes, PartsOfOneKindAreOneCause) {
    SideMeans base = makeMeans(10, 10), now = makeMeans(13, 13.1);
    for (auto& [key, traffic] : now.traffic) traffic.transferNs = 10 * kMs;  // as long as before: less of it is hidden
    base.pathNs["host"] = 0;
    now.pathNs["host"] = 12 * kMs;
    const std::vector<ChangeCause> causes = whyChanged(base, now, {}, 18.1 * kMs);
    ASSERT_EQ(causes.size(), 2u);
    EXPECT_EQ(causes[1].kind, "lost_overlap") << "a sixth of the change each, a third together";
    EXPECT_NEAR(causes[1].ns, 6.1 * kMs, 1e3);
    for (const char* place : {"all_reduce of gradients", "all_gather of weights"}) {
        EXPECT_NE(causes[1].where.find(place), std::string::npos) << causes[1].where;
        EXPECT_NE(causes[1].text.find(std::string(place) + " hides less"), std::string::npos) << causes[1].text;
        EXPECT_TRUE(holds(causes[1].evidence, std::string(place) + ": transfer")) << causes[1].evidence.at(0);
    }
}

TEST(Causes, OneFindingThatSaysWhyOfTwoPartsIsOneCause) {
    SideMeans base = makeMeans(10, 10), now = makeMeans(10, 10);
    now.pathNs["compute"] += 20 * kMs;  // through kernels that take no longer
    base.pathNs["host"] = 0;
    now.pathNs["host"] = 20 * kMs;
    FindingChange finding;
    finding.id = "RS202";
    finding.status = FindingStatus::isNew;
    finding.now = {1, 1, true, 35 * kMs, std::nullopt};
    now.findings[{"RS202", {}}].side = finding.now;
    const std::vector<ChangeCause> causes = whyChanged(base, now, {finding}, 40 * kMs);
    ASSERT_EQ(causes.size(), 1u);
    EXPECT_EQ(causes[0].kind, "smaller_buckets");
    EXPECT_NEAR(causes[0].ns, 35 * kMs, 1e3) << "what it costs";
}

TEST(Causes, AFindingThatOnlyOneSideCouldPlayIsNoCauseForThat) {
    SideMeans base = makeMeans(10, 10), now = makeMeans(10, 10);
    now.pathNs["compute"] += 40 * kMs;
    FindingChange finding;
    finding.id = "RS202";
    finding.base = {1, 1, true, 50 * kMs, 10 * kMs};
    finding.now = {1, 1, true, 50 * kMs, std::nullopt};
    base.findings[{"RS202", {}}].side = finding.base;
    now.findings[{"RS202", {}}].side = finding.now;
    for (const ChangeCause& cause : whyChanged(base, now, {finding}, 40 * kMs)) EXPECT_EQ(cause.diagnosis, "");
}

/// `ms` more of the path are compute; the first cause.
ChangeCause whyLonger(SideMeans base, SideMeans now, double ms) {
    now.pathNs = base.pathNs;
    now.pathNs["compute"] += ms * kMs;
    now.hasPath = true;
    return whyChanged(base, now, {}, ms * kMs).at(0);
}

TEST(ComputeCause, OtherRolesAreComparedByTheirMean) {
    SideMeans now;
    for (const auto& [name, role] : makeMeans(10, 10).roles) {
        RoleSummary other = role;
        other.computeNs = 100 * kMs;
        other.work = {{"gemm", {100 * kMs, 1.25e5}}};
        now.roles["fsdp " + name] = other;
    }
    const ChangeCause cause = whyLonger(makeMeans(10, 10), now, 20);
    EXPECT_EQ(cause.kind, "more_work");
    EXPECT_TRUE(holds(cause.evidence, "80 ms -> 100 ms a step (+25.0 %)")) << cause.evidence.at(0);
    EXPECT_EQ(cause.text, "more work on all ranks: +25.0 %");
    EXPECT_EQ(cause.covers, "compute of all ranks");
}

TEST(ComputeCause, KernelsThatTakeNoLongerAreNotCalledSlower) {
    EXPECT_EQ(whyLonger(makeMeans(10, 10), makeMeans(10, 10), 20).kind, "unknown");
    EXPECT_EQ(whyLonger(makeMeans(10, 10), SideMeans{}, 20).kind, "unknown");
}

/// A side that runs `kernels`, of which its ranks list the longest 16; more than 40 are cut as a summary cuts them.
SideMeans makeManyKernels(std::vector<KernelSummary> kernels) {
    SideMeans side = makeMeans(10, 10);
    std::stable_sort(kernels.begin(), kernels.end(),
                     [](const KernelSummary& a, const KernelSummary& b) { return a.ns > b.ns; });
    for (auto& [name, role] : side.roles) {
        role.computeNs = 0;
        role.work.clear();
        for (size_t i = 0; i < kernels.size(); ++i) {
            role.computeNs += kernels[i].ns;
            role.kernels += kernels[i].count;
            if (i < RunSummary::kMostKernelsOfARank) role.work[kernels[i].name] = {kernels[i].ns, 1e3};
        }
    }
    for (size_t i = 0; i < kernels.size(); ++i) {
        const std::string name = kernels.size() > RunSummary::kMostKernels && i + 1 >= RunSummary::kMostKernels
                                     ? "all others"
                                     : kernels[i].name;
        side.kernels[name].count += kernels[i].count;
        side.kernels[name].ns += kernels[i].ns;
    }
    side.pathNs["compute"] = side.roles.begin()->second.computeNs;
    return side;
}

/// Twenty (or `count`) kernels of 5 ms and less, and one more when it takes any time.
SideMeans makeWithKernel(size_t count, const char* name, double calls, double ns) {
    std::vector<KernelSummary> kernels;
    for (size_t i = 0; i < count; ++i)
        kernels.push_back({"kernel " + std::to_string(i), 10, (5 - 0.1 * static_cast<double>(i)) * kMs});
    if (calls > 0) kernels.push_back({name, calls, ns});
    return makeManyKernels(kernels);
}

std::string kindOfGrowth(const SideMeans& base, const SideMeans& now) {
    return whyLonger(base, now, 40).kind;
}

TEST(ComputeCause, AKernelThatGotSlowEnoughToBeListedIsNoMoreWork) {
    const SideMeans base = makeWithKernel(20, "softmax", 10, 0.03 * kMs);
    EXPECT_EQ(kindOfGrowth(base, makeWithKernel(20, "softmax", 10, 40 * kMs)), "slower_compute");
    EXPECT_EQ(kindOfGrowth(base, makeWithKernel(20, "softmax", 13000, 40 * kMs)), "more_work")
        << "called so much more often";
    const SideMeans without = makeWithKernel(20, "", 0, 0);
    EXPECT_EQ(kindOfGrowth(without, makeWithKernel(20, "softmax", 10, 40 * kMs)), "more_work") << "the base has none";
}

TEST(ComputeCause, TheLongestNewKernelOfAllRanksIsNamed) {
    const SideMeans base = makeMeans(10, 10);
    SideMeans now = base;
    now.roles["dp 0"].work["attention"] = {30 * kMs, 10};
    now.roles["dp 1"].work["norm"] = {10 * kMs, 10};
    EXPECT_EQ(growthOf(base, now, {}).added, "attention");
}

TEST(ComputeCause, OfKernelsThatNoListHasTheirNumberTellsWhetherOneIsNew) {
    const SideMeans base = makeWithKernel(45, "softmax", 10, 0.03 * kMs);  // among all others
    EXPECT_EQ(kindOfGrowth(base, makeWithKernel(45, "softmax", 10, 40 * kMs)), "slower_compute");
    EXPECT_EQ(kindOfGrowth(makeWithKernel(45, "", 0, 0), makeWithKernel(45, "softmax", 10, 40 * kMs)), "more_work");
    EXPECT_EQ(kindOfGrowth(makeWithKernel(45, "gemm_bf16", 10, 30 * kMs), makeWithKernel(45, "gemm_f32", 10, 70 * kMs)),
              "other_kernels");
}

TEST(Attribution, RoundingIsNoRow) {
    SideMeans base = makeMeans(0.1, 0.2), now = makeMeans(0.3, 0.7);
    base.pathNs["host"] = 0.1;
    now.pathNs["host"] = 1e5 / 3;
    double sum = 0;
    for (const AttributionRow& row : attributeChange(base, now, 1e6)) sum += row.part == StepPart::rest ? 0 : row.ns;
    for (const double residue : {sum * (1 + 4e-16), std::nextafter(sum, 0)})
        for (const AttributionRow& row : attributeChange(base, now, residue))
            EXPECT_NE(row.part, StepPart::rest) << row.ns;
    EXPECT_EQ(attributeChange(base, now, sum + 1000).back().part, StepPart::rest);
}

TEST(Attribution, KernelsThatTakeNoLongerAreNoDetailOfComputeThatLeftThePath) {
    const auto detailOf = [](const SideMeans& base, const SideMeans& now) {
        for (const AttributionRow& row : attributeChange(base, now, 20 * kMs))
            if (row.part == StepPart::compute) return row.details.at(0);
        return std::string();
    };
    const SideMeans base = makeMeans(10, 10);
    SideMeans now = makeMeans(60, 10);
    now.pathNs["compute"] = 50 * kMs;  // the rest of it is beside the transfers
    EXPECT_EQ(detailOf(base, now),
              "compute takes 80 ms -> 80 ms a step, mean of all ranks; less of it is on the critical path");
    EXPECT_EQ(detailOf(now, base),
              "compute takes 80 ms -> 80 ms a step, mean of all ranks; more of it is on the critical path");
}

TEST(Attribution, SaysWhatItsRowsAreDifferencesOf) {
    SideMeans base = makeMeans(10, 10), now = makeMeans(30, 10);
    EXPECT_EQ(attributionScope(attributeChange(base, now, 20 * kMs)), "on the critical path");
    now.hasPath = false;
    EXPECT_EQ(attributionScope(attributeChange(base, now, 20 * kMs)), "of the rank that waits least");
}

}  // namespace
}  // namespace rankscope::compare
