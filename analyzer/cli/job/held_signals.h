// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <span>

namespace rankscope::cli {

// Takes every signal that can be caught, synchronously while a job runs, so that none ends this process before its job.
// No handler is installed: an ignored signal (nohup) stays ignored in the job. For processes of one thread.
class HeldSignals {
  public:
    HeldSignals();
    ~HeldSignals();  // puts mask and dispositions back as they were
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;

    // Is called by a process that is about to execute the job.
    void restore() const;

    // The next signal; 0 when none came in time (-1: waits for ever).
    int wait(siginfo_t& info, int atMostMs = -1) const;

    // The job has ended. What came before that was the job's and is dropped; from now on SIGINT, SIGTERM, SIGHUP,
    // SIGQUIT, faults and limits end this process as they end any other, and messages to a job (SIGUSR1, SIGALRM,
    // real-time signals ...) wait until it ends by itself.
    void jobHasEnded();

  private:
    sigset_t m_held;
    sigset_t m_originalMask;
    struct sigaction m_originalChildAction {};
};

// Is true when the processes `job` need not be told: the terminal sent the signal to the whole foreground group, the
// job among them, or it was the job itself (or this process) that sent it.
bool jobHasSeen(const siginfo_t& info, std::span<const pid_t> job);
// Is true when the job itself (or this process) sent the signal.
bool jobHasSent(const siginfo_t& info, std::span<const pid_t> job);

// Sends it on as it came: with its value when it was queued with one.
void forward(const siginfo_t& info, pid_t process);

bool isStopSignal(int signal);  // SIGTSTP, SIGTTIN, SIGTTOU

// Stops this process by the signal, as it would have stopped without being held back; returns when it is continued.
void stopBy(int signal);

}  // namespace rankscope::cli
