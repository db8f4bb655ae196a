// SPDX-License-Identifier: Apache-2.0
// Causes that look alike in the step's change and differ in what carries it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "analyzer/compare/changes.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/compare/side_means.h"
#include "tests/unit/analyzer/compare/compared_sides.h"

namespace rankscope::compare {
namespace {

using Edit = std::function<void(RunSummary&)>;

std::vector<RunSummary> editedSide(int first, const Edit& edit) {
    auto runs = makeSide(first);
    for (RunSummary& run : runs) edit(run);
    return runs;
}

Comparison compareEdited(const Edit& base, const Edit& now) {
    return compareRuns(editedSide(0, base), editedSide(10, now), {});
}
Comparison compareEdited(const Edit& now) {
    return compareEdited([](RunSummary&) {}, now);
}

/// All ranks compute `ns` longer, and the path leads through it.
void computeLonger(RunSummary& run, double ns) {
    longerSteps(run, ns);
    for (RoleSummary& role : run.roles) {
        role.computeNs += ns;
        role.work["gemm"].ns += ns;
    }
    run.roles[0].pathNs["compute"] += ns;
}

/// The step's only transfer takes `ns` more of the path.
void transferLonger(RunSummary& run, double ns, double transferNs) {
    longerSteps(run, ns);
    run.traffic[0].transferNs = run.traffic[0].exposedTransferNs = transferNs;
    run.roles[0].pathNs["transfer"] += ns;
    run.pathTransferNs["all_reduce of gradients"] += ns;
}

void setWay(TrafficSummary& traffic, const char* algorithm, const char* protocol) {
    traffic.algorithm = algorithm;
    traffic.protocol = protocol;
}

TEST(ComputeCauses, AWiderModelIsMoreWorkThoughEachBlockTakesLonger) {
    // One and a half times the width: matrices have 1.5 times the blocks, each over an inner dimension 1.5 times as
    // long.
    const auto wider = [](RunSummary& run) {
        computeLonger(run, 1.25 * 80 * kMs);
        for (RoleSummary& role : run.roles) role.work["gemm"].blocks *= 1.5;
    };
    EXPECT_EQ(compareEdited(wider).causes.at(0).kind, "more_work");
    const auto slower = [](RunSummary& run) {
        computeLonger(run, 1.25 * 80 * kMs);
        for (RoleSummary& role : run.roles) role.work["gemm"].blocks *= 1.05;
    };
    EXPECT_EQ(compareEdited(slower).causes.at(0).kind, "slower_compute");
}

TEST(ComputeCauses, KernelsThatGaveWayToOthersAreNoMoreWork) {
    const auto renamed = [](RoleSummary& role) {
        role.work["gemm_f32"] = role.work["gemm"];
        role.work.erase("gemm");
        role.work["norm_f32"] = {1 * kMs, 10};
    };
    const Comparison c = compareEdited([&](RunSummary& run) {
        computeLonger(run, 20 * kMs);
        for (RoleSummary& role : run.roles) renamed(role);
    });
    EXPECT_EQ(c.causes.at(0).kind, "other_kernels");
    EXPECT_NE(c.causes.at(0).text.find("gemm_f32 in place of gemm"), std::string::npos) << c.causes.at(0).text;
    const Comparison more = compareEdited([](RunSummary& run) {  // on top of what was there
        computeLonger(run, 20 * kMs);
        for (RoleSummary& role : run.roles) {
            role.work["gemm"].ns -= 20 * kMs;
            role.work["extra"] = {20 * kMs, 1e4};
        }
    });
    EXPECT_EQ(more.causes.at(0).kind, "more_work");
}

TEST(ComputeCauses, APathThroughMoreStagesIsTheScheduleNotSlowKernels) {
    const auto schedule = [](RunSummary& run, const char* text) { run.environment["schedule"] = text; };
    const auto bubble = [](RunSummary& run) {  // the ranks compute as long as ever, and wait for each other longer
        longerSteps(run, 20 * kMs);
        for (RoleSummary& role : run.roles) {
            role.computeNs *= 1.003;
            role.exposedWaitNs += 18 * kMs;
            role.receiveWaitNs += 18 * kMs;
        }
        run.roles[0].pathNs["compute"] += 20 * kMs;
    };
    const Comparison c =
        compareEdited([&](RunSummary& run) { schedule(run, "1f1b, 16 micro-batches, 1 virtual stages"); },
                      [&](RunSummary& run) {
                          schedule(run, "1f1b, 8 micro-batches, 1 virtual stages");
                          bubble(run);
                      });
    EXPECT_EQ(c.causes.at(0).kind, "pipeline_schedule");
    EXPECT_EQ(c.causes.at(0).diagnosis, "RS101");
    EXPECT_EQ(
        c.causes.at(0).text.find("the pipeline runs 1f1b, 8 micro-batches instead of 1f1b, 16 micro-batches, which"),
        0u)
        << c.causes.at(0).text;
    EXPECT_EQ(c.attribution.at(0).what, "compute of all ranks: as long as before, more of it on the critical path");
    EXPECT_EQ(compareEdited(bubble).causes.at(0).kind, "unknown") << "nothing says why";
}

TEST(ComputeCauses, AHeavyRankMayBeAnotherOneInEachRun) {
    const auto pair = [](const char* id, bool hasPath) {
        auto base = makeSide(0), now = makeSide(10);
        for (auto* side : {&base, &now})
            for (RunSummary& run : *side) run.hasPath = hasPath;
        for (size_t i = 0; i < now.size(); ++i) {
            longerSteps(now[i], 20 * kMs);
            for (RoleSummary& role : now[i].roles)
                (role.rank == static_cast<int>(i) + 1 ? role.computeNs : role.exposedWaitNs) += 20 * kMs;
            now[i].roles[i + 1].pathNs["compute"] = now[i].roles[0].pathNs["compute"] + 20 * kMs;
            now[i].roles[0].pathNs["compute"] = 0;
            now[i].findings.push_back(finding(id, 18 * kMs));
            now[i].findings.back().ranks = {static_cast<int>(i) + 1};
            now[i].findings.back().roles = {now[i].roles[i + 1].role};
        }
        return compareRuns(base, now, {}).causes.at(0);
    };
    for (const bool hasPath : {true, false}) {
        EXPECT_EQ(pair("RS304", hasPath).kind, "uneven_work");
        EXPECT_EQ(pair("RS301", hasPath).kind, "straggler");
        EXPECT_TRUE(pair("RS304", hasPath).ranks.empty()) << "none of them in most runs";
        EXPECT_EQ(pair("RS304", hasPath).where, "another place in each run");
    }
}

TEST(ComputeCauses, WhatAllRanksHaveIsToldFromTheRankThatAFindingNames) {
    const Comparison c = compareEdited([](RunSummary& run) {
        computeLonger(run, 8 * kMs);
        slowRank(run);
        run.roles[2].work["gemm"].ns += 20 * kMs;
        run.findings.push_back(finding("RS301", 20 * kMs));
    });
    ASSERT_EQ(c.causes.size(), 2u);
    EXPECT_EQ(c.causes[0].kind, "straggler");
    EXPECT_EQ(c.causes[0].ranks, std::vector<int>{2});
    EXPECT_EQ(c.causes[1].kind, "slower_compute");
    EXPECT_NEAR(c.causes[1].ns, 8 * kMs, 0.5 * kMs);
}

TEST(MessageCauses, AnotherWayIsTheReasonWhereAFindingSaysThatItCosts) {
    const auto pair = [](const char* algorithm, const char* id) {
        return compareEdited([](RunSummary& run) { setWay(run.traffic[0], "ring", "simple"); },
                             [=](RunSummary& run) {
                                 transferLonger(run, 10 * kMs, 20 * kMs);
                                 setWay(run.traffic[0], algorithm, "ll");
                                 run.findings.push_back(finding(id, 9 * kMs));
                             })
            .causes.at(0);
    };
    EXPECT_EQ(pair("ring", "RS205").kind, "algorithm");
    EXPECT_EQ(pair("tree", "RS205").kind, "algorithm");
    const ChangeCause link = pair("tree", "RS208");
    EXPECT_EQ(link.kind, "slower_link") << "NCCL chose the way because of the link";
    EXPECT_TRUE(std::ranges::find(link.evidence, "all_reduce of gradients: sent by ring/simple -> tree/ll") !=
                link.evidence.end());
}

TEST(MessageCauses, TheRestOfALargeBucketIsNoSlowLink) {
    // 19 messages became one large one and a small rest, which takes longer per byte, as small messages do.
    const Comparison c = compareEdited([](RunSummary& run) {
        transferLonger(run, 4 * kMs, 5 * kMs);
        run.traffic[0].sizeClass = 14;
        run.traffic[0].count = 1;
        TrafficSummary rest = run.traffic[0];
        rest.sizeClass = 12;
        rest.bytes = 3 << 20;
        rest.transferNs = 0.6 * kMs;
        rest.exposedTransferNs = 0;
        run.traffic.push_back(rest);
    });
    EXPECT_EQ(c.causes.at(0).kind, "lost_overlap");
    EXPECT_TRUE(std::ranges::any_of(c.causes.at(0).evidence, [](const std::string& fact) {
        return fact.find("4 -> 2 messages") != std::string::npos;
    }));
}

TEST(MessageCauses, MoreMessagesExplainNoMoreThanTheirNumber) {
    const auto smaller = [](double ms) {
        return [ms](RunSummary& run) {
            transferLonger(run, (ms - 10) * kMs, ms * kMs);
            run.traffic[0].count = 5;  // of four
        };
    };
    EXPECT_NE(compareEdited(smaller(12)).causes.at(0).kind, "slower_link");
    EXPECT_EQ(compareEdited(smaller(50)).causes.at(0).kind, "slower_link");
    const Comparison bytes = compareEdited([](RunSummary& run) {
        transferLonger(run, 40 * kMs, 50 * kMs);
        run.traffic[0].bytes *= 1.1;
    });
    EXPECT_EQ(bytes.causes.at(0).kind, "slower_link");
}

TEST(MessageCauses, OneSlowPairHoldsUpAPathOfManyRanks) {
    const auto messages = [](RunSummary& run) {
        run.traffic[0].op = "send";
        run.traffic[0].use = "experts";
        run.pathTransferNs = {{"send of experts", 10 * kMs}};
    };
    const Comparison c =
        compareEdited(messages, [&](RunSummary& run) {  // in the mean of the ranks 10 -> 14 ms, on the path 10 -> 30
            messages(run);
            longerSteps(run, 20 * kMs);
            run.traffic[0].transferNs = run.traffic[0].exposedTransferNs = 14 * kMs;
            run.roles[0].pathNs["transfer"] += 20 * kMs;
            run.pathTransferNs["send of experts"] += 20 * kMs;
        });
    EXPECT_EQ(c.causes.at(0).kind, "slower_link");
}

TEST(MessageCauses, AllLinksSlowHaveTheDiagnosisOfAllLinks) {
    const Comparison c = compareEdited([](RunSummary& run) {
        slowLink(run);
        run.findings.push_back(finding("RS204", 8 * kMs));
        run.findings.back().ranks = {0, 1, 2, 3};
        run.findings.back().roles.clear();
    });
    EXPECT_EQ(c.causes.at(0).kind, "slower_link");
    EXPECT_EQ(c.causes.at(0).diagnosis, "RS204");
    EXPECT_EQ(c.causes.at(0).covers, "transfer: all_reduce of gradients");
}

TEST(MessageCauses, ASlowLinkBetweenStagesIsWhereItsFindingSaysItIs) {
    const auto messages = [](RunSummary& run) {
        run.traffic[0].op = "send";
        run.traffic[0].use = "pipeline";
        run.pathTransferNs = {{"send of pipeline", run.pathTransferNs["all_reduce of gradients"]}};
    };
    const Comparison c = compareEdited(messages, [&](RunSummary& run) {
        slowLink(run);
        messages(run);
        run.findings.push_back(finding("RS208", 8 * kMs));
    });
    EXPECT_EQ(c.causes.at(0).kind, "slower_p2p");
    EXPECT_EQ(c.causes.at(0).diagnosis, "RS208");
    EXPECT_EQ(c.causes.at(0).ranks, std::vector<int>{2});
}

TEST(MessageCauses, APathThatLeftTransfersForComputeIsToldByTheFinding) {
    // The sums in twice the precision hold the step up for 8 ms more; the path, which led along them, now leads along
    // the compute in front of them.
    const Comparison c = compareEdited([](RunSummary& run) {
        longerSteps(run, 8 * kMs);
        run.traffic[0].bytes *= 2;
        run.traffic[0].dataType = "f32";
        run.traffic[0].transferNs *= 2;
        run.traffic[0].exposedTransferNs += 7 * kMs;
        run.roles[0].pathNs["compute"] += 12 * kMs;
        run.roles[0].pathNs["transfer"] -= 4 * kMs;
        run.pathTransferNs["all_reduce of gradients"] -= 4 * kMs;
        run.findings.push_back(finding("RS210", 7 * kMs));
    });
    EXPECT_EQ(c.causes.at(0).kind, "full_precision");
}

TEST(HostCauses, MessagesThatAHostCannotLaunchInTimeAreTheReasonWhereAFindingSaysSo) {
    const auto late = [](RunSummary& run) {
        longerSteps(run, 10 * kMs);
        for (RoleSummary& role : run.roles) role.stallByCauseNs["late_launch"] = 8 * kMs;
        run.roles[0].pathNs["host"] = 10 * kMs;
    };
    const ChangeCause unknown = compareEdited(late).causes.at(0);
    EXPECT_EQ(unknown.kind, "unknown");
    EXPECT_EQ(unknown.covers, "host work and calls");
    EXPECT_NE(unknown.evidence.at(0).find("device idle for the host (late_launch): 8 ms more"), std::string::npos)
        << unknown.evidence.at(0);
    for (const auto& [id, kind] : {std::pair{"RS202", "smaller_buckets"}, {"RS401", "launch_bound"}}) {
        const ChangeCause cause = compareEdited([&, id = id](RunSummary& run) {
                                      late(run);
                                      run.findings.push_back(finding(id, 9 * kMs));
                                  }).causes.at(0);
        EXPECT_EQ(cause.kind, kind);
        EXPECT_EQ(cause.diagnosis, id);
    }
}

TEST(HostCauses, TwoKindsOfStallsAndCopiesAreThreeCauses) {
    const Comparison c = compareEdited([](RunSummary& run) {
        longerSteps(run, 30 * kMs);
        run.roles[0].pathNs["host"] = 20 * kMs;
        run.roles[0].pathNs["memory"] = 10 * kMs;
        for (const auto& [id, ms] : {std::pair{"RS403", 11}, {"RS405", 9}, {"RS402", 8}, {"RS401", 1}})
            run.findings.push_back(finding(id, ms * kMs));
    });
    ASSERT_EQ(c.causes.size(), 3u);
    EXPECT_EQ(c.causes[0].kind, "slow_input");
    EXPECT_EQ(c.causes[1].kind, "pageable_copies");
    EXPECT_EQ(c.causes[1].covers, "copies and sets");
    EXPECT_EQ(c.causes[2].kind, "synchronisation");
    EXPECT_NEAR(c.causes[0].ns, 11 * kMs, 1e3) << "what it costs";
}

TEST(HostCauses, StallsThatHitOneRankMoreOftenByChanceAreStillStalls) {
    const auto pair = [](const char* id) {
        auto now = makeSide(10);
        for (size_t i = 0; i < now.size(); ++i) {
            longerSteps(now[i], 12 * kMs);
            for (RoleSummary& role : now[i].roles)
                role.stallByCauseNs["late_launch"] = (role.rank == 1 ? 5.0 : 2.3) * kMs;
            now[i].roles[0].pathNs["host"] = 12 * kMs;
            now[i].findings.push_back(finding(id, 10 * kMs));
            now[i].findings.back().roles = {"dp " + std::to_string(i)};  // another rank in each run
        }
        return compareRuns(makeSide(0), now, {}).causes.at(0).kind;
    };
    EXPECT_EQ(pair("RS303"), "stalls");
    EXPECT_EQ(pair("RS401"), "launch_bound");
}

TEST(Attribution, StepsThatAreNotTypicalHaveARowOfTheirOwn) {
    const Comparison c = compareEdited([](RunSummary& run) {
        slowRank(run);
        run.stepsNs[3] -= 20 * kMs;  // as before
        run.roles[2].pathNs["compute"] -= 20 * kMs / 12;
    });
    double sum = 0, unexplained = 0;
    for (const AttributionRow& row : c.attribution) {
        sum += row.ns;
        if (row.what == "not explained") unexplained += row.ns;
    }
    EXPECT_NEAR(sum, c.step.changeNs(), 1e-6 * c.step.changeNs());
    EXPECT_LT(std::abs(unexplained), 0.01 * c.step.changeNs());
}

TEST(CausesHeading, ClaimsNothingThatTheVerdictDoesNot) {
    EXPECT_EQ(causesHeading(compareWith(slowRank)), "Why");
    EXPECT_EQ(causesHeading(compareRuns({makeRun(0)}, {makeRun(1)}, {})), "Why, if it is more than noise");
}

}  // namespace
}  // namespace rankscope::compare
