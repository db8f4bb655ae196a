// SPDX-License-Identifier: Apache-2.0
// A handler that records comes at any instruction of a thread that records: CALLS ranges are pushed and popped while
// another thread sends one signal after the other. Prints how many ranges and marks there were.
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

std::atomic<int> g_marks{0};

void onSignal(int) {
    nvtxMarkA("of the handler");
    ++g_marks;
}

}  // namespace

int main(int, char** words) {
    const int calls = std::atoi(words[1]);
    nvtxMarkA("begins");
    std::signal(SIGUSR1, onSignal);
    std::atomic<bool> isOver{false};
    const pthread_t recording = pthread_self();
    std::thread sender([&] {
        while (!isOver) {
            const int seen = g_marks;
            pthread_kill(recording, SIGUSR1);
            while (g_marks == seen && !isOver) std::this_thread::yield();  // else the other would do nothing else
        }
    });
    for (int i = 0; i < calls; ++i) {
        nvtxRangePushA("range");
        nvtxRangePop();
        // A ring that is full would only make room for less.
        if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    isOver = true;
    sender.join();
    std::printf("%d ranges, %d marks\n", calls, g_marks.load() + 1);
}
