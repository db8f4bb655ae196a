// SPDX-License-Identifier: Apache-2.0
// The user's own library in front of the CUDA runtime: one call throws, one waits until its thread is cancelled.
#include <unistd.h>

#include <stdexcept>

extern "C" {
__attribute__((visibility("default"))) int cudaStreamSynchronize(void*) {
    throw std::runtime_error("thrown below");
}
__attribute__((visibility("default"))) int cudaEventSynchronize(void*) {
    return 3;
}
__attribute__((visibility("default"))) int cudaDeviceSynchronize() {
    for (;;) pause();
}
}
