// SPDX-License-Identifier: Apache-2.0
// fork BEFORE CHILD AFTER: GPU calls of the parent before the fork, of the child, and of the parent after it.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "gpu_calls.h"

int main(int, char** argv) {
    const int before = std::atoi(argv[1]);
    const int child = std::atoi(argv[2]);
    const int after = std::atoi(argv[3]);
    if (before > 0) callGpu(before);
    std::printf("before\n");
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        if (child > 0) callGpu(child);
        std::printf("child\n");
        std::exit(7);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (after > 0) callGpu(after);
    std::printf("parent: child status %x\n", status);
}
