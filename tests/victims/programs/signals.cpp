// SPDX-License-Identifier: Apache-2.0
// Shows that the program's signals stay its own: handlers, mask, alternate stack, and that no other thread takes a
// blocked signal.
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "gpu_calls.h"

namespace {

void own(int) {}

void show(const char* when) {
    for (int number = 1; number < 32; ++number) {
        struct sigaction action {};
        if (sigaction(number, nullptr, &action) != 0) continue;
        const char* handler = action.sa_handler == SIG_DFL   ? "default"
                              : action.sa_handler == SIG_IGN ? "ignored"
                              : action.sa_handler == own     ? "own"
                                                             : "foreign";
        std::printf("%s %d: %s flags %x\n", when, number, handler, static_cast<unsigned>(action.sa_flags));
    }
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    for (int number = 1; number < 32; ++number)
        if (sigismember(&mask, number) == 1) std::printf("%s blocked %d\n", when, number);
    stack_t stack{};
    sigaltstack(nullptr, &stack);
    std::printf("%s alternate stack flags %d\n", when, stack.ss_flags);
}

}  // namespace

int main() {
    std::signal(SIGUSR2, own);
    std::signal(SIGUSR1, own);
    show("before");
    callGpu(100);
    show("after");
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    kill(getpid(), SIGUSR1);
    callGpu(100);
    sigset_t pending;
    sigpending(&pending);
    std::printf("blocked signal waits: %d\n", sigismember(&pending, SIGUSR1));
}
