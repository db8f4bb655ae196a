// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/helper_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace rankscope::cli {
namespace {

// In the forked process, which calls nothing but the system.
[[noreturn]] void becomeHelper(char* const* arguments, char* const* environment, int input, bool speaks,
                               pid_t parent) noexcept {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // it removes what it made
    if (getppid() != parent) _exit(1);
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (input == STDIN_FILENO)  // ours was closed
        fcntl(input, F_SETFD, 0);
    else
        dup2(input, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    if (!speaks) dup2(nowhere, STDERR_FILENO);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    setpriority(PRIO_PROCESS, 0, 10);
    signal(SIGTTOU, SIG_IGN);  // it is no foreground process of the terminal that it may speak to
    sigset_t nothing;
    sigemptyset(&nothing);
    sigprocmask(SIG_SETMASK, &nothing, nullptr);
    execve(arguments[0], arguments, environment);
    _exit(1);
}

bool isGone(pid_t pid) noexcept {
    const pid_t ended = waitpid(pid, nullptr, WNOHANG);
    return ended == pid || (ended < 0 && errno != EINTR);
}

bool isGoneWithin(pid_t pid, std::chrono::milliseconds time) noexcept {
    constexpr auto kPause = std::chrono::milliseconds(1);
    for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) {
        if (isGone(pid)) return true;
        std::this_thread::sleep_for(kPause);
    }
    return isGone(pid);
}

}  // namespace

bool HelperProgram::start(const ProcessToStart& program, bool speaks) noexcept {
    const auto arguments = pointers(program.command);
    const auto environment = pointers(program.environment);
    int ends[2];
    if (m_pid > 0 || access(arguments[0], X_OK) != 0 || pipe2(ends, O_CLOEXEC) != 0) return false;
    const pid_t self = getpid();
    const pid_t pid = fork();
    if (pid == 0) becomeHelper(arguments.data(), environment.data(), ends[0], speaks, self);
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return false;
    }
    setpgid(pid, pid);  // whoever comes first
    m_pid = pid;
    m_input = ends[1];
    return true;
}

void HelperProgram::end() noexcept {
    if (m_pid <= 0) return;
    close(std::exchange(m_input, -1));
    const pid_t pid = std::exchange(m_pid, 0);
    // NVML answers in milliseconds and a report is written in as many; the rest is for a machine under load.
    if (isGoneWithin(pid, std::chrono::milliseconds(1300))) return;
    kill(-pid, SIGKILL);
    isGoneWithin(pid, std::chrono::milliseconds(200));
}

}  // namespace rankscope::cli
