// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analyzer/diagnose/critical_step.h"

namespace rankscope::diagnose {
namespace {

facts::CommTask message(int step, int64_t collective, int64_t startNs, int64_t exposedNs) {
    facts::CommTask task;
    task.step = step;
    task.collectiveId = collective;
    task.startNs = startNs;
    task.endNs = startNs + 10;
    task.exposedTransferNs = exposedNs;
    return task;
}

TEST(ExposedRows, AreTheMostExposedMessagesOfTheStepThatTheFindingNames) {
    job::Analysis analysis;
    facts::RankFacts facts;
    facts.rank = 4;
    facts.steps = {{1, 0, 100, false}, {2, 100, 100, false}};
    analysis.facts.ranks = {facts};
    facts::RankSummary summary;
    summary.rank = 4;
    std::vector<CriticalStep> steps(2);
    steps[0].tasks = {message(1, 11, 10, 5)};
    steps[1].tasks = {message(2, 21, 110, 0), message(2, 22, 120, 3), message(2, 0, 130, 9), message(2, 24, 140, 1),
                      message(2, 25, 150, 8)};
    for (CriticalStep& step : steps) {
        step.rank = &summary;
        for (size_t i = 0; i < step.tasks.size(); ++i) step.own.push_back(i);
    }
    job::Finding finding;
    EXPECT_EQ(&shownStep(analysis, steps, finding), &steps[0]);
    finding.windowStartNs = 105;  // of another rank: its step begins a little later
    finding.windowEndNs = 205;
    const CriticalStep& shown = shownStep(analysis, steps, finding);
    ASSERT_EQ(&shown, &steps[1]);
    addExposedRows(shown, shown.own, 2, "a message", finding);
    ASSERT_EQ(finding.evidence.rows.size(), 2u);
    EXPECT_EQ(finding.evidence.rows[0].id, 22);
    EXPECT_EQ(finding.evidence.rows[1].id, 25);
    EXPECT_EQ(finding.evidence.rows[1].rank, 4);
    EXPECT_EQ(finding.evidence.rows[1].note, "a message, exposed for 8 ns");
}

}  // namespace
}  // namespace rankscope::diagnose
