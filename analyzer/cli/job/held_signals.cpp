// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/held_signals.h"

#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <initializer_list>

#include "analyzer/cli/job/live_processes.h"
#include "analyzer/text/lists.h"

namespace rankscope::cli {
namespace {

void remove(sigset_t& set, std::initializer_list<int> signals) {
    for (int signal : signals) sigdelset(&set, signal);
}

bool sentByProcess(const siginfo_t& info) {
    return info.si_code == SI_USER || info.si_code == SI_TKILL || info.si_code == SI_QUEUE;
}

// A signal of the kernel that goes to every process of the foreground group. All others (a timer set before the wrapper
// was executed, a descriptor that is ready) go to this process alone, as they would have gone to the job.
bool sentByTerminal(const siginfo_t& info) {
    if (info.si_code <= 0) return false;
    if (info.si_signo == SIGHUP) return getsid(0) != getpid();  // one that hangs up tells its session's leader only
    constexpr int kOfTerminal[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGWINCH};
    return text::contains(kOfTerminal, info.si_signo);
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

int HeldSignals::wait(siginfo_t& info, int atMostMs) const {
    const timespec atMost{atMostMs / 1000, atMostMs % 1000 * 1'000'000L};
    for (;;) {
        const int signal = sigtimedwait(&m_held, &info, atMostMs < 0 ? nullptr : &atMost);
        if (signal > 0) return signal;
        if (errno != EINTR) return 0;
    }
}

void HeldSignals::jobHasEnded() {
    siginfo_t ignored;
    while (wait(ignored, 0) != 0) {
    }
    sigset_t messages = m_held;
    remove(messages, {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD, SIGXCPU, SIGXFSZ,
                      SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS});
    for (int signal = 1; signal <= SIGRTMAX; ++signal)
        if (sigismember(&messages, signal) == 1) sigaddset(&m_originalMask, signal);
    restore();
}

bool jobHasSent(const siginfo_t& info, std::span<const pid_t> job) {
    return sentByProcess(info) && (info.si_pid == getpid() || descendsFrom(info.si_pid, job));
}

bool jobHasSeen(const siginfo_t& info, std::span<const pid_t> job) {
    return sentByTerminal(info) || jobHasSent(info, job);
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
