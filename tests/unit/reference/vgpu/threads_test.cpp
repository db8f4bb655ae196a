// SPDX-License-Identifier: Apache-2.0
// Programs whose threads and processes work together: their times are the same every time, however the system runs
// them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr int kRanks = 2, kRepetitions = 20, kLoads = 3;

/// Processes that keep the machine busy while it lives.
class Load {
  public:
    Load() {
        for (int i = 0; i < kLoads; i++) {
            const pid_t child = fork();
            if (child == 0)
                for (volatile unsigned spin = 0;;) static_cast<void>(spin);
            m_children.push_back(child);
        }
    }
    ~Load() {
        for (const pid_t child : m_children) {
            kill(child, SIGKILL);
            waitpid(child, nullptr, 0);
        }
    }

  private:
    std::vector<pid_t> m_children;
};

std::string textOf(const fs::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

class VgpuThreads : public testing::TestWithParam<const char*> {
  protected:
    VgpuThreads() : m_folder(fs::path(testing::TempDir()) / ("vgpu_threads." + std::to_string(getpid()))) {
        fs::create_directories(m_folder);
    }
    ~VgpuThreads() override { fs::remove_all(m_folder); }

    int run(const std::string& arguments, const std::string& environment = "") {
        const std::string command = environment + " VGPU_DUMP=" + (m_folder / "dump").string() +
                                    " RANKSCOPE_VGPU_JOB=threads." + std::to_string(getpid()) +
                                    " CUDA_INJECTION64_PATH=" VGPU_CLIENT " timeout 60 " VGPU_THREADS " " + arguments +
                                    " 2> " + (m_folder / "stderr").string();
        const int status = std::system(command.c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    /// What the devices did, and when. Correlation ids and streams are numbered in the order of the calls in real time.
    std::vector<std::string> deviceTimes(int rank) {
        std::ifstream file(m_folder / ("dump." + std::to_string(rank)));
        std::vector<std::string> times;
        for (std::string line; std::getline(file, line);) {
            std::istringstream words(line);
            std::string kind, start, duration;
            words >> kind >> start >> duration;
            if (kind != "kernel" && kind != "memset" && kind != "memcpy") continue;
            times.push_back(kind + " " + start + " " + duration + " " + line.substr(line.rfind(' ')));
        }
        std::sort(times.begin(), times.end());
        return times;
    }

    std::vector<std::vector<std::string>> timesOfRun(const std::string& environment = "") {
        EXPECT_EQ(run(std::string(GetParam()) + " " + std::to_string(kRanks), environment), 0);
        EXPECT_EQ(textOf(m_folder / "stderr"), "");  // no thread was given up
        std::vector<std::vector<std::string>> times;
        for (int rank = 0; rank < kRanks; rank++) times.push_back(deviceTimes(rank));
        return times;
    }

    fs::path m_folder;
};

TEST_P(VgpuThreads, timesAreTheSameHoweverTheSystemRunsTheThreads) {
    const auto expected = timesOfRun();
    for (const auto& times : expected) ASSERT_GE(times.size(), 12u);
    const Load load;
    for (int i = 0; i < kRepetitions; i++) {
        SCOPED_TRACE(i);
        ASSERT_EQ(timesOfRun("VGPU_DISTURB=1"), expected);
    }
}

INSTANTIATE_TEST_SUITE_P(Modes, VgpuThreads,
                         testing::Values("autograd", "watchdog", "pool", "mutex", "join", "comms", "semaphore",
                                         "process", "started", "loaders", "ends", "connections", "eventfd", "looking",
                                         "timeout", "polling"),
                         [](const auto& mode) { return std::string(mode.param); });

/// Of a rank's memsets, in the order in which they began: start and duration, in ns.
struct Work {
    long long startNs, durationNs;
};
std::vector<Work> memsetsOf(const std::vector<std::string>& times) {
    std::vector<Work> found;
    for (const std::string& line : times) {
        Work work{};
        if (std::sscanf(line.c_str(), "memset %lld %lld", &work.startNs, &work.durationNs) == 2) found.push_back(work);
    }
    std::sort(found.begin(), found.end(), [](const Work& a, const Work& b) { return a.startNs < b.startNs; });
    return found;
}

class VgpuThreadClocks : public VgpuThreads {};

class VgpuLoaders : public VgpuThreads {};

TEST_P(VgpuLoaders, whatALoaderTakesTheRankWaits) {
    ASSERT_EQ(run(GetParam() + std::string(" 1")), 0);
    const std::vector<Work> work = memsetsOf(deviceTimes(0));
    ASSERT_EQ(work.size(), 6u);
    for (size_t i = 1; i < work.size(); i++) {
        EXPECT_GE(work[i].startNs - work[i - 1].startNs, 1'000'000);  // each batch takes a millisecond to load
        EXPECT_LT(work[i].startNs - work[i - 1].startNs, 1'200'000);
    }
}

INSTANTIATE_TEST_SUITE_P(Ways, VgpuLoaders, testing::Values("process", "started"),
                         [](const auto& way) { return std::string(way.param); });

TEST_F(VgpuThreadClocks, whoWaitsForTheEndOfAProcessGoesOnWhenItHasEnded) {
    for (const char* environment : {"", "VGPU_DISTURB=1"}) {  // also where it has long ended in real time
        ASSERT_EQ(run("ends 1", environment), 0);
        const std::vector<Work> work = memsetsOf(deviceTimes(0));
        ASSERT_EQ(work.size(), 6u);
        for (size_t i = 1; i < work.size(); i++) {
            EXPECT_GE(work[i].startNs - work[i - 1].startNs, 2'000'000);  // the longer of two
            EXPECT_LT(work[i].startNs - work[i - 1].startNs, 2'200'000);
        }
    }
}

TEST_F(VgpuThreadClocks, realWorkOfAnotherProcessEndsNoTimedWait) {
    ASSERT_EQ(run("late 1"), 0) << textOf(m_folder / "stderr");
    const std::vector<Work> work = memsetsOf(deviceTimes(0));
    ASSERT_EQ(work.size(), 3u);
    for (size_t i = 1; i < work.size(); i++) EXPECT_LT(work[i].startNs - work[i - 1].startNs, 10'000'000);
}

TEST_F(VgpuThreadClocks, sleepsAndTimedWaitsTakeTheirLength) {
    ASSERT_EQ(run("timeout 1"), 0);
    const std::vector<Work> work = memsetsOf(deviceTimes(0));
    ASSERT_EQ(work.size(), 18u);
    for (size_t step = 0; step < 6; step++) {
        const long long first = work[3 * step].startNs;
        EXPECT_NEAR(static_cast<double>(work[3 * step + 1].startNs - first), 1'700'000, 30'000);
        EXPECT_NEAR(static_cast<double>(work[3 * step + 2].startNs - first), 2'000'000, 30'000);
    }
}

TEST_F(VgpuThreadClocks, aJobThatStandsStillIsToldWithWhatEachThreadWaitsFor) {
    EXPECT_EQ(run("deadlock 2", "RANKSCOPE_VGPU_TELL_MS=500"), 70);
    const std::string told = textOf(m_folder / "stderr");
    EXPECT_NE(told.find("the job has stood still"), std::string::npos) << told;
    EXPECT_NE(told.find("rank 0"), std::string::npos) << told;
    EXPECT_NE(told.find("waits for stream"), std::string::npos) << told;
    EXPECT_NE(told.find("an all-reduce of communicator 0 (2 ranks), to which rank 1 has not come"), std::string::npos)
        << told;
    EXPECT_NE(told.find("rank 1"), std::string::npos) << told;
    EXPECT_NE(told.find("is blocked in pthread_cond_wait"), std::string::npos) << told;
    EXPECT_NE(told.find("this is a deadlock"), std::string::npos) << told;
}

TEST_F(VgpuThreadClocks, aJobThatWaitsForAnAnswerFromOutsideIsToldOfAndGoesOn) {
    EXPECT_EQ(run("answer 2", "RANKSCOPE_VGPU_TELL_MS=300"), 0);
    const std::string told = textOf(m_folder / "stderr");
    EXPECT_NE(told.find("the job has stood still"), std::string::npos) << told;
    EXPECT_EQ(told.find("deadlock"), std::string::npos) << told;
}

}  // namespace
