// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/stacks/python_frames.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "analyzer/cli/job/job_process.h"
#include "collector/store/bounded_json.h"

namespace rankscope::cli {
namespace {

constexpr auto kPySpyTime = std::chrono::seconds(20);
// As for native frames, half of what a helper may write: Python's names are shorter.
constexpr size_t kMostOutput = 16 << 20;

struct Output {
    std::string standard, error;
    bool inTime = true;
    ProcessEnd end;
};

// Reads what a program says until it ends, or is ended.
Output run(const std::string& path, std::vector<std::string> command) {
    int standard[2], error[2];
    if (pipe2(standard, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0) return {.end = {.status = 1}};
    const auto arguments = pointers(command);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(standard[1], STDOUT_FILENO);
        dup2(error[1], STDERR_FILENO);
        execv(path.c_str(), arguments.data());
        _exit(127);
    }
    close(standard[1]);
    close(error[1]);
    Output output;
    pollfd polled[] = {{standard[0], POLLIN, 0}, {error[0], POLLIN, 0}};
    std::string* texts[] = {&output.standard, &output.error};
    const auto end = std::chrono::steady_clock::now() + kPySpyTime;
    while (child > 0 && (polled[0].fd >= 0 || polled[1].fd >= 0)) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
        output.inTime = left.count() > 0;
        if (!output.inTime || poll(polled, 2, static_cast<int>(left.count())) < 0) break;
        for (size_t i = 0; i < 2; ++i) {
            if (polled[i].fd < 0 || polled[i].revents == 0) continue;
            char block[4096];
            const ssize_t got = read(polled[i].fd, block, sizeof block);
            if (got <= 0 || texts[i]->size() > kMostOutput) polled[i].fd = -1;
            if (got > 0) texts[i]->append(block, static_cast<size_t>(got));
        }
    }
    close(standard[0]);
    close(error[0]);
    if (child > 0) {
        if (!output.inTime) kill(child, SIGKILL);
        int status = 0;
        waitpid(child, &status, 0);
        output.end = decodeWaitStatus(status);
    }
    return output;
}

}  // namespace

bool runsPython(std::string_view maps) {
    // Statically linked interpreters carry the name, too: /usr/bin/python3.11.
    return maps.find("/libpython") != std::string_view::npos || maps.find("/python3") != std::string_view::npos ||
           maps.find("/python\n") != std::string_view::npos;
}

std::vector<capture::ThreadStack> parsePySpy(std::string_view json) {
    std::vector<capture::ThreadStack> threads;
    for (const auto& told : store::parseJson(json, "py-spy")) {
        capture::ThreadStack& thread = threads.emplace_back();
        thread.language = capture::ThreadStack::Language::python;
        if (const auto tid = told.find("os_thread_id"); tid != told.end() && tid->is_number_integer())
            thread.tid = tid->get<int64_t>();
        if (const auto name = told.find("thread_name"); name != told.end() && name->is_string())
            thread.name = name->get<std::string>();
        for (const auto& frame : told.at("frames")) {
            const auto shortName = frame.find("short_filename");
            const std::string file = shortName != frame.end() && shortName->is_string()
                                         ? shortName->get<std::string>()
                                         : frame.at("filename").get<std::string>();
            thread.frames.push_back(
                fmt::format("{} ({}:{})", frame.at("name").get<std::string>(), file, frame.at("line").get<int64_t>()));
        }
    }
    return threads;
}

PythonStacks pythonStacks(pid_t pid) {
    PythonStacks stacks;
    const std::string path = findCommand("py-spy", currentEnvironment());
    if (path.empty()) {
        stacks.refused = "py-spy is not on PATH (pip install py-spy)";
        return stacks;
    }
    const Output output = run(path, {"py-spy", "dump", "--nonblocking", "--json", "--pid", std::to_string(pid)});
    if (!output.inTime) {
        stacks.refused = fmt::format("py-spy was not done in {} s", kPySpyTime.count());
    } else if (output.end.failed()) {
        const size_t line = std::min(output.error.find('\n'), output.error.size());
        stacks.refused = fmt::format("py-spy: {}", line > 0 ? output.error.substr(0, line) : "it failed");
    } else {
        try {
            stacks.threads = parsePySpy(output.standard);
        } catch (const std::exception& error) {
            stacks.refused = fmt::format("what py-spy printed is not understood: {}", error.what());
        }
    }
    return stacks;
}

}  // namespace rankscope::cli
