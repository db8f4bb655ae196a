// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/detect.h"

#include <gtest/gtest.h>

#include <array>

#include "analyzer/diagnose/diagnosis.h"

namespace rankscope::diagnose {
namespace {

void findHang(const job::Analysis&, Claims&, std::vector<job::Finding>& findings) {
    job::Finding finding;
    finding.id = "hang";
    finding.verdict = job::Verdict::found;
    findings.push_back(finding);
}

constexpr Diagnosis kOfSteps{.id = "hang", .title = "of steps", .detect = findHang};
constexpr Diagnosis kOfEvents{.id = "hang", .title = "of events", .needs = Needs::events, .detect = findHang};
constexpr Diagnosis kNotDetected{.id = "later", .needs = Needs::events};

std::vector<job::Finding> findingsOf(const Diagnosis& diagnosis, const job::Analysis& analysis) {
    Claims claims;
    return detectThose(std::array{&kNotDetected, &diagnosis}, analysis, claims);
}

TEST(Detect, AJobWithoutStepsIsAskedForWhatEventsTell) {
    const job::Analysis analysis;
    EXPECT_TRUE(findingsOf(kOfSteps, analysis).empty());
    const auto findings = findingsOf(kOfEvents, analysis);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings.front().title, "of events");
    EXPECT_EQ(findings.front().verdict, job::Verdict::found);  // however few steps there are
}

TEST(Detect, TooFewStepsTellNothingOfWhatStepsLose) {
    job::Analysis analysis;
    analysis.steps = {1, 2};
    analysis.stepNs = 1000;
    const auto findings = findingsOf(kOfSteps, analysis);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings.front().verdict, job::Verdict::inconclusive);
    EXPECT_EQ(findingsOf(kOfEvents, analysis).front().verdict, job::Verdict::found);
}

}  // namespace
}  // namespace rankscope::diagnose
