// SPDX-License-Identifier: Apache-2.0
// Forks again and again while other threads are inside hooks: whatever lock they hold, no child may wait for it.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "gpu_calls.h"

int main(int, char** argv) {
    warmUpRuntime();
    const int children = std::atoi(argv[1]);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] {
            while (!stop.load()) callGpu(10);
        });
    int ended = 0;
    for (int i = 0; i < children; ++i) {
        const pid_t pid = fork();
        if (pid == 0) {
            callGpu(3);
            std::_Exit(5);
        }
        int status = 0;
        if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 5) ++ended;
    }
    stop.store(true);
    for (auto& thread : threads) thread.join();
    std::printf("%d children ended well\n", ended);
}
