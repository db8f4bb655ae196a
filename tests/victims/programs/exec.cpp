// SPDX-License-Identifier: Apache-2.0
// exec BEFORE AFTER: calls the GPU, then becomes itself anew and calls it again under the same process id.
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include "gpu_calls.h"

int main(int argc, char** argv) {
    callGpu(std::atoi(argv[1]));
    std::printf("image with %s calls\n", argv[1]);
    std::fflush(stdout);
    if (argc == 2) return 9;
    execl("/proc/self/exe", argv[0], argv[2], static_cast<char*>(nullptr));
    return 1;
}
