// SPDX-License-Identifier: Apache-2.0
// unwinding throw|cancel: an exception, or the cancellation of a thread, passes through a hook. The functions behind
// the hooks come from a library of the user's that throws and waits.
#include <pthread.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "gpu_calls.h"

namespace {

void* waitForEver(void*) {
    cudaDeviceSynchronize();
    return nullptr;
}

}  // namespace

int main(int, char** argv) {
    if (std::strcmp(argv[1], "throw") == 0) {
        for (int i = 0; i < 5; ++i) {
            try {
                cudaStreamSynchronize(nullptr);
                std::printf("nothing thrown\n");
            } catch (const std::runtime_error& error) {
                std::printf("caught: %s\n", error.what());
            }
        }
        void* memory = nullptr;
        std::printf("and on: %d\n", static_cast<int>(cudaEventSynchronize(static_cast<cudaEvent_t>(memory))));
        return 0;
    }
    for (int i = 0; i < 5; ++i) {
        pthread_t thread;
        pthread_create(&thread, nullptr, waitForEver, nullptr);
        pthread_cancel(thread);
        void* result = nullptr;
        pthread_join(thread, &result);
        std::printf("canceled: %d\n", result == PTHREAD_CANCELED);
    }
}
