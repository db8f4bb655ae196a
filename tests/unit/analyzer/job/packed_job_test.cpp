// SPDX-License-Identifier: Apache-2.0
// What processes that only play a job are sent of it: every change plays there as it does here.
#include "analyzer/job/packed_job.h"

#include <gtest/gtest.h>

#include <deque>
#include <sstream>

#include "analyzer/diagnose/plays.h"
#include "analyzer/edits/edit.h"
#include "collector/store/error.h"
#include "tests/unit/analyzer/small_job.h"

namespace rankscope::job {
namespace {

Analysis sent(const Analysis& analysis) {
    std::deque<std::string> messages;
    packForPlays(analysis, {}, [&](std::string_view message) { messages.emplace_back(message); });
    return unpackForPlays(
        analysis.facts,
        [&] {
            std::string message = std::move(messages.front());
            messages.pop_front();
            return message;
        },
        "process 0");
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
    int possible = 0;
    for (const std::string& text : changes()) {
        for (const edits::Outlook outlook : {edits::Outlook::expected, edits::kOutlooks[0]}) {
            const diagnose::Play what{{edits::parseChange(text)}, outlook};
            const diagnose::Played expected = diagnose::play(here, what), played = diagnose::play(there, what);
            EXPECT_EQ(played.impossible, expected.impossible) << text;
            EXPECT_EQ(played.stepsNs, expected.stepsNs) << text;
            EXPECT_EQ(played.open, expected.open) << text;
            EXPECT_EQ(played.hostMaySlow, expected.hostMaySlow) << text;
            EXPECT_EQ(played.chanceNs, expected.chanceNs) << text;
            possible += expected.impossible.empty() ? 1 : 0;
        }
    }
    EXPECT_EQ(diagnose::play(there, {.instant = true}).stepsNs, diagnose::play(here, {.instant = true}).stepsNs);
    return possible;
}

TEST(PackedJob, EveryChangePlaysAsInTheProcessThatSentIt) {
    Analysis small = test::SmallJob{.readBackNs = 50}.analysis();
    for (facts::RankSummary& rank : small.ranks) {
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
}

/// Of several megabytes.
TEST(PackedJob, ListsOfManyPartsArriveWhole) {
    constexpr uint32_t kTasks = 300'000;
    Analysis here = test::SmallJob().analysis();
    here.replay.graph.durationNs.clear();
    here.replay.graph.info.clear();
    for (uint32_t task = 0; task < kTasks; ++task) {
        here.replay.graph.durationNs.push_back(3 * task);
        here.replay.graph.info.emplace_back().row = 7 * task;
    }
    const replay::TaskGraph there = sent(here).replay.graph;
    EXPECT_EQ(there.durationNs, here.replay.graph.durationNs);
    ASSERT_EQ(there.info.size(), size_t{kTasks});
    for (uint32_t task = 0; task < kTasks; ++task) ASSERT_EQ(there.info[task].row, 7 * task);
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
                         here.facts, [&] { return less.at(number++); }, "process 0"),
                     store::Error)
            << cut;
    }
}

}  // namespace
}  // namespace rankscope::job
