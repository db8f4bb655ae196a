// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/program_output.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/system_call.h"

namespace rankscope::cli {
namespace {

struct Pipe {
    int ends[2] = {-1, -1};
    Pipe() { checked(pipe2(ends, O_CLOEXEC), "pipe2"); }
    ~Pipe() {
        closeWriting();
        close(ends[0]);
    }
    void closeWriting() {
        if (ends[1] >= 0) close(ends[1]);
        ends[1] = -1;
    }
};

// Reads both streams as they come, so that neither can fill up and block the program.
void drain(Pipe& output, std::string& outputText, Pipe& error, std::string& errorText) {
    std::array<pollfd, 2> polled{{{output.ends[0], POLLIN, 0}, {error.ends[0], POLLIN, 0}}};
    std::array<std::string*, 2> texts{&outputText, &errorText};
    int open = 2;
    while (open > 0) {
        if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
        for (size_t i = 0; i < polled.size(); ++i) {
            if (polled[i].fd < 0 || polled[i].revents == 0) continue;
            char block[4096];
            const ssize_t got = read(polled[i].fd, block, sizeof block);
            if (got > 0) {
                texts[i]->append(block, static_cast<size_t>(got));
            } else if (got == 0 || errno != EINTR) {
                polled[i].fd = -1;
                --open;
            }
        }
    }
}

}  // namespace

ProgramOutput readProgramOutput(const ProcessToStart& program) {
    Pipe output, error;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, error.ends[1], STDERR_FILENO);
    const auto arguments = pointers(program.command);
    const auto environment = pointers(program.environment);
    pid_t child = 0;
    const int cause =
        posix_spawn(&child, program.command.front().c_str(), &actions, nullptr, arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (cause != 0)
        throw VerbError(kExitInput, "cannot execute " + program.command.front() + ": " + std::strerror(cause));
    output.closeWriting();
    error.closeWriting();
    ProgramOutput result;
    drain(output, result.standardOutput, error, result.standardError);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    result.end = decodeWaitStatus(status);
    return result;
}

}  // namespace rankscope::cli
