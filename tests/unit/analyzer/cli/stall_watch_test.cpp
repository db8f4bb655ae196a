// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/stacks/stall_watch.h"

#include <gtest/gtest.h>

namespace rankscope::cli {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

/// A job that is looked at every second, with a time-out of ten.
class StalledJob : public testing::Test {
  protected:
    /// The pids of those that are told to stand still.
    std::vector<pid_t> after(int64_t seconds) {
        std::vector<pid_t> told;
        for (int64_t i = 0; i < seconds; ++i) {
            m_nowNs += kSecondNs;
            for (const StalledProcess& one : m_watch.look(m_processes, m_nowNs)) {
                told.push_back(one.process.pid);
                m_stalledNs = one.stalledNs;
            }
        }
        return told;
    }

    StallWatch m_watch{10 * kSecondNs, kSecondNs};
    std::vector<WatchedProcess> m_processes{{.pid = 1, .progress = 5}, {.pid = 2, .progress = 7}};
    int64_t m_nowNs = 1000 * kSecondNs;
    int64_t m_stalledNs = 0;
};

TEST_F(StalledJob, WhoGetsOnIsNeverTold) {
    for (int i = 0; i < 100; ++i) {
        m_processes[0].progress++;
        m_processes[1].progress += i % 9 == 0;
        EXPECT_TRUE(after(1).empty()) << i;
    }
}

TEST_F(StalledJob, WhoStandsStillIsToldOnceAndAgainWhileItLasts) {
    EXPECT_TRUE(after(10).empty());
    EXPECT_EQ(after(1), (std::vector<pid_t>{1, 2}));
    EXPECT_EQ(m_stalledNs, 10 * kSecondNs);
    EXPECT_TRUE(after(StallWatch::kAgainNs / kSecondNs - 1).empty());
    EXPECT_EQ(after(1), (std::vector<pid_t>{1, 2}));
}

TEST_F(StalledJob, ASecondHangIsToldAsTheFirst) {
    EXPECT_EQ(after(11), (std::vector<pid_t>{1, 2}));
    m_processes[0].progress++;
    EXPECT_TRUE(after(10).empty());
    EXPECT_EQ(after(1), std::vector<pid_t>{1});
}

TEST_F(StalledJob, WhoNeverGotOnIsToldOnlyWhereNobodyDoes) {
    m_processes.push_back({.pid = 3, .rank = 2, .progress = 0});
    for (int i = 0; i < 30; ++i) {
        m_processes[0].progress++;
        m_processes[1].progress++;
        EXPECT_TRUE(after(1).empty());
    }
    EXPECT_EQ(after(10), (std::vector<pid_t>{1, 2, 3}));
}

TEST_F(StalledJob, ALauncherBesideItsRanksIsNone) {
    m_processes = {{.pid = 9, .progress = 0}, {.pid = 10, .rank = 0, .progress = 0}};
    EXPECT_EQ(after(12), std::vector<pid_t>{10});
}

TEST_F(StalledJob, AloneAProcessOfNoRankMayHaveHungBeforeItsFirstCall) {
    m_processes = {{.pid = 9, .progress = 0}};
    EXPECT_EQ(after(12), std::vector<pid_t>{9});
}

TEST_F(StalledJob, TimeInWhichNobodyLookedIsNone) {
    EXPECT_TRUE(after(5).empty());
    m_nowNs += 3600 * kSecondNs;  // the wrapper was stopped, and the job with it
    EXPECT_TRUE(after(5).empty());
    EXPECT_EQ(after(2), (std::vector<pid_t>{1, 2}));
}

TEST_F(StalledJob, TimeInWhichOthersAreReadCounts) {
    EXPECT_TRUE(after(10).empty());
    m_processes[1].progress++;
    EXPECT_EQ(after(1), std::vector<pid_t>{1});
    for (int i = 0; i < 8; ++i) m_watch.stillThere(m_nowNs += kSecondNs);
    EXPECT_TRUE(after(1).empty());
    EXPECT_EQ(after(1), std::vector<pid_t>{2});
}

TEST_F(StalledJob, WhoMayWorkUnseenIsToldOnlyOnceItGotOn) {
    m_watch = StallWatch(10 * kSecondNs, kSecondNs, true);
    m_processes = {{.pid = 1, .progress = 0}, {.pid = 2, .progress = 0}};
    EXPECT_TRUE(after(50).empty());
    m_processes[1].progress++;
    EXPECT_EQ(after(12), std::vector<pid_t>{2});
}

TEST_F(StalledJob, ALaterProcessOfTheSameNumberIsAnother) {
    EXPECT_TRUE(after(9).empty());
    for (WatchedProcess& process : m_processes) process.startTicks = 77;
    EXPECT_TRUE(after(9).empty());
}

}  // namespace
}  // namespace rankscope::cli
