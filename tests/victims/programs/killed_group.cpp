// SPDX-License-Identifier: Apache-2.0
// killed_group PROCESSES FILE: processes that make GPU calls until they are killed, and count in the file, for each its
// process id and the calls that have returned (int64).
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "gpu_calls.h"

namespace {

struct Counter {
    int64_t process = 0;
    std::atomic<int64_t> calls{0};
};

}  // namespace

int main(int, char** words) {
    const int processes = std::atoi(words[1]);
    const int file = open(words[2], O_RDWR);
    const size_t bytes = static_cast<size_t>(processes) * sizeof(Counter);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return 1;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return 1;
    auto* counters = static_cast<Counter*>(memory);
    for (int i = 1; i < processes; ++i)
        if (fork() == 0) {
            counters += i;
            break;
        }
    counters->process = getpid();
    for (;;) {
        callGpu(1);
        // A ring that is full would only make room for less.
        if (++counters->calls % 20 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}
