// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/timed_job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/system_call.h"
#include "analyzer/cli/job/held_signals.h"

namespace rankscope::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kGraceS = 10;  // between SIGTERM and SIGKILL: launchers need a moment to end their ranks

double secondsSince(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

timespec timeOf(double seconds) {
    const auto whole = static_cast<time_t>(seconds);
    return {whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
}

// What ends a process that does not catch it ends the measurement, job first; the others mean nothing here, nor does
// what nohup has us ignore.
bool endsMeasuring(int signal) {
    struct sigaction present {};
    if (sigaction(signal, nullptr, &present) == 0 && present.sa_handler != SIG_DFL) return false;
    return signal != SIGCHLD && signal != SIGCONT && signal != SIGURG && signal != SIGWINCH && !isStopSignal(signal);
}

pid_t start(const ProcessToStart& process, const std::filesystem::path& output, const HeldSignals& signals) {
    const std::string path = findCommand(process.command.front(), process.environment);
    if (path.empty())
        throw VerbError(static_cast<ExitCode>(kExitCommandNotFound),
                        fmt::format("{}: command not found", process.command.front()));
    const int log = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
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
        const timespec pause = timeOf(0.2);
        const int signal = signals.wait(info, &pause);
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
