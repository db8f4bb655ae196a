// SPDX-License-Identifier: Apache-2.0
// Forks while another thread makes the first call of its process, at ever later moments of that call: the recording may
// be half begun, and the child begins its own.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "gpu_calls.h"

namespace {

int statusOf(pid_t pid) {
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// In a process that called nothing yet.
[[noreturn]] void forkAfter(std::chrono::microseconds delay) {
    std::thread first([] { callGpu(2); });
    std::this_thread::sleep_for(delay);
    const pid_t pid = fork();
    if (pid == 0) {
        callGpu(3);
        std::exit(5);
    }
    const int status = statusOf(pid);
    first.join();
    std::_Exit(status);
}

}  // namespace

int main(int, char** argv) {
    warmUpRuntime();
    const int times = std::atoi(argv[1]);
    const int step = std::atoi(argv[2]);
    int ended = 0;
    for (int i = 0; i < times; ++i) {
        const pid_t pid = fork();
        if (pid == 0) forkAfter(std::chrono::microseconds(i * step));
        if (statusOf(pid) == 5) ++ended;
    }
    std::printf("%d children ended well\n", ended);
}
