// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/child_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <fstream>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/job/held_signals.h"

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

using Clock = std::chrono::steady_clock;
constexpr int kPauseMs = 200;   // between looks at a process that may have ended, or be over its time
constexpr double kGraceS = 10;  // between SIGTERM and SIGKILL: launchers need a moment to end their ranks

double secondsSince(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Tells which signals end a process that does not catch them: they end the measurement, job first; the others mean
// nothing here, nor does what nohup has us ignore.
bool endsMeasuring(int signal) {
    struct sigaction present {};
    if (sigaction(signal, nullptr, &present) == 0 && present.sa_handler != SIG_DFL) return false;
    return signal != SIGCHLD && signal != SIGCONT && signal != SIGURG && signal != SIGWINCH && !isStopSignal(signal);
}

pid_t start(const ProcessToStart& process, const std::filesystem::path& output, const HeldSignals& signals) {
    const std::string path = requireCommand(process.command.front(), process.environment);
    const int log = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (log < 0) throw VerbError(kExitInput, fmt::format("cannot write {}", output.string()));
    const auto arguments = pointers(process.command);
    const auto environment = pointers(process.environment);
    const pid_t child = checked(fork(), "fork");
    if (child == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        signals.restore();
        const int nothing = open("/dev/null", O_RDONLY);
        dup2(nothing, STDIN_FILENO);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        execve(path.c_str(), arguments.data(), environment.data());
        _exit(kExitCommandNotExecutable);
    }
    close(log);
    setpgid(child, child);
    return child;
}

// Processes that the job left behind become our children (PR_SET_CHILD_SUBREAPER): none of them outlives it.
void endOrphans() {
    for (int round = 0; round < 1000; ++round) {
        std::ifstream list(fmt::format("/proc/self/task/{}/children", getpid()));
        pid_t child = 0;
        bool any = false;
        while (list >> child) {
            any = true;
            kill(child, SIGKILL);
            waitpid(child, nullptr, 0);
        }
        if (!any) return;
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
    while (result.standardError.ends_with('\n')) result.standardError.pop_back();
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    result.end = decodeWaitStatus(status);
    return result;
}

TimedEnd runTimed(const ProcessToStart& process, const std::filesystem::path& output, double limitS) {
    const HeldSignals signals;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const auto begin = Clock::now();
    const pid_t child = start(process, output, signals);
    TimedEnd result;
    Clock::time_point toldAt{};
    bool told = false, killed = false;
    const auto tell = [&] {
        kill(-child, SIGTERM);
        told = true;
        toldAt = Clock::now();
    };
    for (int status = 0;;) {
        if (waitpid(child, &status, WNOHANG) == child) {
            result.end = decodeWaitStatus(status);
            break;
        }
        if (!told && limitS > 0 && secondsSince(begin) > limitS) {
            result.overTime = true;
            tell();
        }
        if (told && !killed && secondsSince(toldAt) > kGraceS) {
            kill(-child, SIGKILL);
            killed = true;
        }
        siginfo_t info{};
        const int signal = signals.wait(info, kPauseMs);
        if (isStopSignal(signal)) stopBy(signal);
        if (signal == 0 || !endsMeasuring(signal) || told) continue;
        result.interruptedBy = signal;
        tell();
    }
    result.wallS = secondsSince(begin);
    if (told || result.end.failed()) endOrphans();
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    return result;
}

}  // namespace rankscope::cli
