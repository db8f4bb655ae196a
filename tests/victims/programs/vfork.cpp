// SPDX-License-Identifier: Apache-2.0
// A vfork child shares the parent's memory until it leaves by _exit or exec.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "gpu_calls.h"

int main() {
    callGpu(10);
    for (int i = 0; i < 3; ++i) {
        const pid_t pid = vfork();
        if (pid == 0) {
            execl("/nonexistent/program", "program", static_cast<char*>(nullptr));
            _exit(127);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        std::printf("child status %d\n", WEXITSTATUS(status));
        std::fflush(stdout);
    }
    callGpu(10);
    std::printf("shell status %d\n", std::system("exit 4"));
    callGpu(10);
}
