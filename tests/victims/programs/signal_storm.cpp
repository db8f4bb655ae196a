// SPDX-License-Identifier: Apache-2.0
// A handler that records comes at any instruction of a thread that records: ranges are pushed and popped while another
// thread sends one signal after the other, until the handler has made MARKS. Prints how many ranges and marks there
// were.
#include <nvtx3/nvToolsExt.h>
#include <poll.h>
#include <pthread.h>

#include <atomic>
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
    const int wanted = std::atoi(words[1]);
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
    int ranges = 0;
    for (; g_marks < wanted; ++ranges) {
        nvtxRangePushA("range");
        nvtxRangePop();
        // A ring that is full would only make room for less. It ends with the next signal, too.
        if (ranges % 100 == 0) poll(nullptr, 0, 1);
    }
    isOver = true;
    sender.join();
    std::printf("%d ranges, %d marks\n", ranges, g_marks.load() + 1);
}
