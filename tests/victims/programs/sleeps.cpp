// SPDX-License-Identifier: Apache-2.0
// sleeps MS CHILDREN: uses the GPU, sleeps so long that the injector has looked around on the machine, forks children
// that use the GPU too, and goes on.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "gpu_calls.h"

int main(int, char** argv) {
    warmUpRuntime();
    callGpu(3);
    usleep(static_cast<useconds_t>(std::atoi(argv[1])) * 1000);
    for (int i = 0; i < std::atoi(argv[2]); ++i) {
        std::fflush(stdout);
        const pid_t pid = fork();
        if (pid == 0) {
            callGpu(2);
            std::exit(5);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        std::printf("child: %x\n", status);
    }
    callGpu(4);
    std::printf("done\n");
}
