// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/reference/workloads/workload_job.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace rankscope::reference {

namespace {

struct ScratchFolder {
    std::string path;
    ScratchFolder() {
        char name[] = "/tmp/rankscope-workload-test-XXXXXX";
        if (!mkdtemp(name)) throw std::runtime_error("mkdtemp failed");
        path = name;
    }
    ~ScratchFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
};

std::string readFile(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

[[noreturn]] void becomeRank(const std::string& scenario, const std::string& outputPath,
                             const std::map<std::string, std::string>& environment) {
    const int output = open(outputPath.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(output, 1);
    dup2(output, 2);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    execl(RANKSCOPE_WORKLOAD_PATH, "rankscope-workload", scenario.c_str(), static_cast<char*>(nullptr));
    _exit(127);
}

/// As launchers do: some time after a rank died by a signal the others, which wait for it, are ended too. Those that
/// are about to end by themselves do so meanwhile, with their own status.
std::vector<int> waitForAll(const std::vector<pid_t>& children) {
    constexpr std::chrono::milliseconds kLook{10};
    constexpr std::chrono::seconds kUntilLauncherActs{2};
    std::vector<int> statuses(children.size(), -1);
    std::optional<std::chrono::steady_clock::time_point> firstDeath;
    for (size_t ended = 0; ended < children.size();) {
        int status = 0;
        const pid_t child = waitpid(-1, &status, firstDeath ? WNOHANG : 0);
        if (child == 0) {
            if (std::chrono::steady_clock::now() - *firstDeath > kUntilLauncherActs)
                for (size_t i = 0; i < children.size(); ++i)
                    if (statuses[i] < 0) kill(children[i], SIGTERM);
            std::this_thread::sleep_for(kLook);
        }
        const auto place = std::find(children.begin(), children.end(), child);
        if (place == children.end()) continue;
        ++ended;
        statuses[static_cast<size_t>(place - children.begin())] =
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (WIFSIGNALED(status) && !firstDeath) firstDeath = std::chrono::steady_clock::now();
    }
    return statuses;
}

}  // namespace

std::string scratchFolder() {
    static const ScratchFolder folder;
    return folder.path;
}

JobResult runJob(const std::string& scenarioText, int ranks, const std::map<std::string, std::string>& environment) {
    static int jobs = 0;
    const std::string prefix = scratchFolder() + "/job" + std::to_string(jobs++);
    const std::string scenario = prefix + ".json";
    std::ofstream(scenario) << scenarioText;
    std::vector<pid_t> children;
    for (int rank = 0; rank < ranks; ++rank) {
        std::map<std::string, std::string> variables = {{"LD_LIBRARY_PATH", RANKSCOPE_VGPU_FOLDER},
                                                        {"LD_PRELOAD", RANKSCOPE_CALL_LIST_PATH},
                                                        {"NCCL_CALL_LIST", prefix + ".calls"},
                                                        {"RANKSCOPE_VGPU_JOB", prefix},
                                                        {"RANKSCOPE_SCENARIO", scenario},
                                                        {"RANK", std::to_string(rank)},
                                                        {"WORLD_SIZE", std::to_string(ranks)},
                                                        {"LOCAL_RANK", std::to_string(rank)},
                                                        {"TMPDIR", scratchFolder()}};
        for (const auto& [name, value] : environment) variables[name] = value;
        const pid_t child = fork();
        if (child == 0) becomeRank(scenario, prefix + ".out." + std::to_string(rank), variables);
        children.push_back(child);
    }
    JobResult result;
    result.status = waitForAll(children);
    for (int rank = 0; rank < ranks; ++rank) {
        result.output.push_back(readFile(prefix + ".out." + std::to_string(rank)));
        result.calls.emplace_back();
        std::ifstream calls(prefix + ".calls." + std::to_string(rank));
        std::string op;
        size_t bytes = 0;
        while (calls >> op >> bytes) result.calls.back()[op].push_back(bytes);
    }
    return result;
}

int runShell(const std::string& command, std::string& output) {
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    if (!pipe) throw std::runtime_error("popen failed");
    char buffer[4096];
    while (const size_t length = fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, length);
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace rankscope::reference
