// SPDX-License-Identifier: Apache-2.0
#include "gui/session/run_difference.h"

#include <gtest/gtest.h>

#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

using test::SmallRun;

constexpr int64_t kUs = SmallRun::kUs;

// What `analyze` leaves behind: 1 ms of step each, of which rank 1 computes `computeUs`.
std::string analysed(int computeUs, const std::string& findings = {}) {
    std::string sql;
    for (const auto& [rank, us] : {std::pair{0, 300}, std::pair{1, computeUs}})
        sql += "INSERT INTO attribution VALUES (" + std::to_string(rank) + ", 0, 1000000, " + std::to_string(us) +
               "000, 200000, 50000, 150000, 10000, 30000, " + std::to_string(770 - us) + "000);";
    return sql + "INSERT INTO idle_gap VALUES (1, 0, 0, 0, 100000, 'late_launch');" + findings;
}

std::string finding(int id, const char* diagnosis, const char* verdict, double severity, const char* ranks) {
    return "INSERT INTO finding VALUES (" + std::to_string(id) + ", '" + diagnosis + "', 'title', '" + verdict + "', " +
           std::to_string(severity) + ", NULL, NULL, NULL, '{\"ranks\": " + ranks + "}');";
}

RunDifference compare(const SmallRun& a, const SmallRun& b) {
    const auto aRun = a.info(), bRun = b.info();
    auto aReader = a.reader(), bReader = b.reader();
    return compareRuns(readRunSummary(aReader, *aRun), *aRun, readRunSummary(bReader, *bRun), *bRun);
}

const RoleChange& role(const RunDifference& difference, const std::string& name) {
    for (const RoleChange& found : difference.roles)
        if (found.role == name) return found;
    throw std::runtime_error("no role " + name);
}

TEST(RunDifference, PartsOfEveryRoleAddUpToItsChangeOfTheStep) {
    const RunDifference difference =
        compare(SmallRun(analysed(400)),
                SmallRun(analysed(500) +
                         "UPDATE attribution SET step_ns = 1100000, idle_ns = idle_ns + 100000 WHERE rank = 1;"));
    ASSERT_EQ(difference.roles.size(), 3u);
    for (const RoleChange& found : difference.roles) {
        int64_t sum = 0;
        for (const TimeChange& part : found.parts) sum += part.changeNs();
        EXPECT_EQ(sum, found.step.changeNs()) << found.role;
    }
    EXPECT_EQ(role(difference, "all ranks").step.changeNs(), 50 * kUs);
    EXPECT_EQ(role(difference, "all ranks").parts[0].changeNs(), 50 * kUs);
    EXPECT_EQ(role(difference, "rank 1").parts[0].changeNs(), 100 * kUs);
    EXPECT_EQ(role(difference, "rank 0").step.changeNs(), 0);
    EXPECT_EQ(role(difference, "rank 0").idleCauses.at(0).aNs, 100 * kUs);
    EXPECT_EQ(difference.step.aNs, 1000 * kUs);
}

TEST(RunDifference, FindingsComeGoAndMove) {
    const SmallRun a(analysed(400, finding(1, "RS301", "found", 0.2, "[1]") +
                                       finding(2, "RS201", "found", 0.3, "[0,1]") +
                                       finding(3, "RS403", "note", 0.01, "[0]")));
    const SmallRun b(analysed(400, finding(1, "RS202", "found", 0.4, "[0,1]") +
                                       finding(2, "RS201", "found", 0.1, "[0,1]") +
                                       finding(3, "RS301", "note", 0.02, "[1]")));
    const RunDifference difference = compare(a, b);
    ASSERT_EQ(difference.findings.size(), 3u);
    EXPECT_EQ(difference.findings[0].diagnosis, "RS202");
    EXPECT_EQ(difference.findings[0].state, FindingState::appeared);
    EXPECT_EQ(difference.findings[1].diagnosis, "RS301");  // a note is none
    EXPECT_EQ(difference.findings[1].state, FindingState::gone);
    EXPECT_EQ(difference.findings[2].diagnosis, "RS201");
    EXPECT_EQ(difference.findings[2].state, FindingState::better);
    EXPECT_EQ(difference.findings[2].inA, 1u);
    EXPECT_EQ(difference.findings[2].inB, 1u);
}

TEST(RunDifference, TheSameDiagnosisIsMatchedByItsRanks) {
    const SmallRun a(
        analysed(400, finding(1, "RS301", "found", 0.2, "[0]") + finding(2, "RS301", "found", 0.1, "[1]")));
    const SmallRun b(analysed(400, finding(1, "RS301", "found", 0.1, "[1]")));
    const RunDifference difference = compare(a, b);
    ASSERT_EQ(difference.findings.size(), 2u);
    EXPECT_EQ(difference.findings[0].state, FindingState::gone);
    EXPECT_EQ(difference.findings[0].inA, 0u);
    EXPECT_EQ(difference.findings[1].state, FindingState::same);
    EXPECT_EQ(difference.findings[1].inA, 1u);
}

TEST(RunDifference, KernelsAreMatchedByNameTheLargestChangeFirst) {
    const RunDifference difference =
        compare(SmallRun(analysed(400)),
                SmallRun(analysed(400) + "UPDATE kernel SET dur_ns = dur_ns * 2 WHERE nccl = 0;", "another_gemm"));
    ASSERT_EQ(difference.kernels.size(), 3u);
    EXPECT_EQ(difference.kernels[0].time.what, "another_gemm");
    EXPECT_EQ(difference.kernels[0].time.aNs, 0);
    EXPECT_EQ(difference.kernels[0].time.bNs, 450 * kUs);  // 900 us of two ranks
    EXPECT_EQ(difference.kernels[0].aLongest.table, EventTable::none);
    EXPECT_EQ(difference.kernels[0].bLongest, (EventLink{EventTable::kernel, 5, 1}));
    EXPECT_EQ(difference.kernels[1].time.changeNs(), -225 * kUs);
    EXPECT_EQ(difference.kernels[1].aCount, 2.0);
    EXPECT_EQ(difference.kernels[2].time.changeNs(), 0);
    EXPECT_TRUE(difference.kernels[2].communication);
}

TEST(RunDifference, ARunWithoutAnalysisOrStepsIsSaid) {
    const RunDifference difference = compare(SmallRun(), SmallRun("DELETE FROM step;"));
    EXPECT_TRUE(difference.roles.empty());
    EXPECT_EQ(difference.bSteps, 0u);
    ASSERT_EQ(difference.remarks.size(), 3u);
    EXPECT_NE(difference.remarks[1].find("B has no steps"), std::string::npos);
    EXPECT_NE(differenceText(difference).find("A is not analysed"), std::string::npos);
}

TEST(RunDifference, HostileRowsDoNoHarm) {
    const SmallRun hostile(analysed(400) +
                           "UPDATE attribution SET step_ns = 9223372036854775807, compute_ns = -9223372036854775807; "
                           "UPDATE kernel SET dur_ns = 9223372036854775807;UPDATE step SET dur_ns = "
                           "9223372036854775807; UPDATE idle_gap SET dur_ns = 9223372036854775807;");
    EXPECT_FALSE(differenceText(compare(SmallRun(analysed(400)), hostile)).empty());
}

}  // namespace
}  // namespace rankscope::gui
