// SPDX-License-Identifier: Apache-2.0
// The user's own tool in CUDA_INJECTION64_PATH: tells that the driver called it.
#include <unistd.h>

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
    [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, "user's CUDA tool: called\n", 25);
    return 1;
}
