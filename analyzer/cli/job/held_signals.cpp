// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/held_signals.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <initializer_list>
#include <string>

namespace rankscope::cli {
namespace {

// Between a process of the job and the one that we started: ends the walk should /proc change below it.
constexpr int kMostAncestors = 64;

void remove(sigset_t& set, std::initializer_list<int> signals) {
    for (int signal : signals) sigdelset(&set, signal);
}

pid_t parentOf(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string line;
    std::getline(file, line);
    // "PID (NAME) STATE PARENT ...", and the name may hold blanks and brackets.
    const size_t name = line.rfind(')');
    if (name == std::string::npos || name + 4 >= line.size()) return 0;
    return static_cast<pid_t>(std::strtol(line.c_str() + name + 4, nullptr, 10));
}

bool isOfJob(pid_t sender, std::span<const pid_t> job) {
    for (int generation = 0; sender > 1 && generation < kMostAncestors; ++generation) {
        if (std::ranges::find(job, sender) != job.end()) return true;
        sender = parentOf(sender);
    }
    return false;
}

bool sentByProcess(const siginfo_t& info) {
    return info.si_code == SI_USER || info.si_code == SI_TKILL || info.si_code == SI_QUEUE;
}

// A signal of the kernel that goes to every process of the foreground group. All others (a timer set before the wrapper
// was executed, a descriptor that is ready) go to this process alone, as they would have gone to the job.
bool sentByTerminal(const siginfo_t& info) {
    if (info.si_code <= 0) return false;
    switch (info.si_signo) {
        case SIGINT:
        case SIGQUIT:
        case SIGTSTP:
        case SIGTTIN:
        case SIGTTOU:
        case SIGCONT:
        case SIGWINCH:
            return true;
        case SIGHUP:
            return getsid(0) != getpid();  // a terminal that hangs up tells the leader of its session only
        default:
            return false;
    }
}

}  // namespace

HeldSignals::HeldSignals() {
    // A fault of this process ends it though its signal is blocked; the same signal from outside is the job's.
    sigfillset(&m_held);
    remove(m_held, {SIGKILL, SIGSTOP});
    sigprocmask(SIG_BLOCK, &m_held, &m_originalMask);
    // Whoever started us with SIGCHLD ignored would otherwise leave us without the job's status.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, &m_originalChildAction);
}

HeldSignals::~HeldSignals() {
    restore();
}

void HeldSignals::restore() const {
    sigaction(SIGCHLD, &m_originalChildAction, nullptr);
    sigprocmask(SIG_SETMASK, &m_originalMask, nullptr);
}

int HeldSignals::wait(siginfo_t& info, const timespec* atMost) const {
    for (;;) {
        const int signal = sigtimedwait(&m_held, &info, atMost);
        if (signal > 0) return signal;
        if (errno != EINTR) return 0;
    }
}

void HeldSignals::jobHasEnded() {
    constexpr timespec kNow{};
    siginfo_t ignored;
    while (wait(ignored, &kNow) != 0) {
    }
    sigset_t messages = m_held;
    remove(messages, {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD, SIGXCPU, SIGXFSZ,
                      SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS});
    for (int signal = 1; signal <= SIGRTMAX; ++signal)
        if (sigismember(&messages, signal) == 1) sigaddset(&m_originalMask, signal);
    restore();
}

bool jobHasSeen(const siginfo_t& info, std::span<const pid_t> job) {
    if (sentByTerminal(info)) return true;
    return sentByProcess(info) && (info.si_pid == getpid() || isOfJob(info.si_pid, job));
}

void forward(const siginfo_t& info, pid_t process) {
    if (info.si_code == SI_QUEUE)
        sigqueue(process, info.si_signo, info.si_value);
    else
        kill(process, info.si_signo);
}

bool isStopSignal(int signal) {
    return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

void stopBy(int signal) {
    sigset_t only, before;
    sigemptyset(&only);
    sigaddset(&only, signal);
    kill(getpid(),
         signal);  // and not SIGSTOP, which also stops where nobody is left to continue us (an orphaned process group)
    sigprocmask(SIG_UNBLOCK, &only, &before);
    sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace rankscope::cli
