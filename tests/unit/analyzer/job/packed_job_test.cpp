// SPDX-License-Identifier: Apache-2.0
// What processes that only play a job are sent of it: every change plays there as it does here.
#include "analyzer/job/packed_job.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "analyzer/diagnose/plays.h"
#include "analyzer/edits/edit.h"
#include "collector/store/error.h"
#include "tests/unit/analyzer/small_job.h"

namespace rankscope::job {
namespace {

Analysis sent(const Analysis& analysis) {
    std::vector<std::string> messages;
    packForPlays(analysis, {}, [&](std::string_view message) { messages.emplace_back(message); });
    size_t number = 0;
    return unpackForPlays(
        analysis.facts, [&]() -> std::string_view { return messages.at(number++); }, "process 0");
}

/// Each family as it is tried on a run, and the forms that read most of a rank's summary.
std::vector<std::string> changes() {
    std::vector<std::string> all{"no-stalls:cause=sync",  "no-stalls:cause=pageable", "no-stalls:cause=pauses",
                                 "no-stalls:cause=input", "balance:what=work",        "network:ideal=latency"};
    for (const edits::EditFamily& family : edits::editFamilies()) {
        std::istringstream trials{std::string(family.trials)};
        for (std::string trial; trials >> trial;) {
            if (const size_t at = trial.find("{step}"); at != std::string::npos) trial.replace(at, 6, "1");
            all.push_back(trial);
        }
    }
    return all;
}

/// Returns how many changes this job takes.
int expectSamePlays(const Analysis& here) {
    const Analysis there = sent(here);
    EXPECT_EQ(there.replay.unchangedStepsNs, here.replay.unchangedStepsNs);
    EXPECT_TRUE(there.replay.unchanged.endNs.empty());
    EXPECT_EQ(there.replay.graph.before.values(), here.replay.graph.before.values());
    EXPECT_EQ(there.replay.graph.firstEdge.values(), here.replay.graph.firstEdge.values());
    const diagnose::Player ours(here), theirs(there);
    int possible = 0;
    for (const std::string& text : changes()) {
        for (const edits::Outlook outlook : {edits::Outlook::expected, edits::kOutlooks[0]}) {
            const diagnose::Play what{{edits::parseChange(text)}, outlook};
            const diagnose::Played expected = ours.play(what), played = theirs.play(what);
            EXPECT_EQ(played.impossible, expected.impossible) << text;
            EXPECT_EQ(played.stepsNs, expected.stepsNs) << text;
            EXPECT_EQ(played.open, expected.open) << text;
            EXPECT_EQ(played.hostMaySlow, expected.hostMaySlow) << text;
            EXPECT_EQ(played.chanceNs, expected.chanceNs) << text;
            possible += expected.impossible.empty() ? 1 : 0;
        }
    }
    EXPECT_EQ(theirs.play({.instant = true}).stepsNs, ours.play({.instant = true}).stepsNs);
    return possible;
}

TEST(PackedJob, EveryChangePlaysAsInTheProcessThatSentIt) {
    Analysis small = test::SmallJob{.readBackNs = 50}.analysis();
    for (const auto held = small.ranks.change(); facts::RankSummary & rank : *held) {
        facts::HostStall stall;
        stall.stallNs = 50;
        stall.cause = facts::IdleCause::blockingCall;
        stall.callNameId = test::SmallJob::kWaitName;
        rank.hostStalls.push_back(stall);
        rank.hostIsKnown = true;
        rank.contention.lostShare = 0.2;
        rank.contention.samples = 5;
    }
    EXPECT_GT(expectSamePlays(small), 10);
    EXPECT_GT(expectSamePlays(test::SmallJob{.reductions = 3, .extraNs = 30, .differentGrids = true}.analysis()), 10);
    EXPECT_GT(expectSamePlays(test::withRankLeftOut(test::SmallJob{.differentGrids = true}.analysis(), 50)), 10);
}

/// Lanes without tasks, of several megabytes; they do not divide a part.
TEST(PackedJob, AListOfManyPartsArrivesWhole) {
    constexpr int kLanes = 300'000;
    Analysis here = test::SmallJob().analysis();
    std::vector<replay::Lane>& lanes = here.replay.graph.lanes;
    const size_t first = lanes.size();
    for (int lane = 0; lane < kLanes; ++lane) lanes.push_back({.rank = lane, .id = 7 * lane});
    const std::vector<replay::Lane> there = sent(here).replay.graph.lanes;
    ASSERT_EQ(there.size(), lanes.size());
    for (size_t i = first; i < lanes.size(); ++i) {
        ASSERT_EQ(there[i].rank, lanes[i].rank);
        ASSERT_EQ(there[i].id, lanes[i].id);
    }
}

TEST(PackedJob, WhatIsCutOffIsRefusedByItsSender) {
    const Analysis here = test::SmallJob().analysis();
    std::vector<std::string> messages;
    packForPlays(here, {}, [&](std::string_view message) { messages.emplace_back(message); });
    for (size_t cut = 0; cut < messages.size(); ++cut) {
        std::vector<std::string> less = messages;
        less[cut].resize(less[cut].size() / 2);
        size_t number = 0;
        EXPECT_THROW(unpackForPlays(
                         here.facts, [&]() -> std::string_view { return less.at(number++); }, "process 0"),
                     store::Error)
            << cut;
    }
}

}  // namespace
}  // namespace rankscope::job
