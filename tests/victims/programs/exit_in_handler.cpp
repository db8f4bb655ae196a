// SPDX-License-Identifier: Apache-2.0
// A signal handler ends the process by _exit at an arbitrary point of a hook. Repeated in children with other moments
// each time.
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "gpu_calls.h"

namespace {
void leave(int) {
    _exit(12);
}
}  // namespace

int main() {
    int ended = 0;
    for (int i = 0; i < 40; ++i) {
        const pid_t pid = fork();
        if (pid == 0) {
            std::signal(SIGALRM, leave);
            // From before the recording starts to well inside it.
            const itimerval timer{{0, 0}, {0, 20 + i * i * 20}};
            setitimer(ITIMER_REAL, &timer, nullptr);
            for (;;) callGpu(1);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 12) ++ended;
    }
    std::printf("%d ended\n", ended);
}
