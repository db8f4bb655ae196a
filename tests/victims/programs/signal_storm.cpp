// SPDX-License-Identifier: Apache-2.0
// A handler that records comes at any instruction of a thread that records: ranges are pushed and popped while a timer
// sends one signal after the other, until the handler has made MARKS. Prints how many ranges and marks there were.
#include <nvtx3/nvToolsExt.h>
#include <poll.h>
#include <sys/time.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

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
    std::signal(SIGALRM, onSignal);
    constexpr suseconds_t kApartUs = 50;
    const itimerval often{{0, kApartUs}, {0, kApartUs}}, never{};
    setitimer(ITIMER_REAL, &often, nullptr);
    int ranges = 0;
    for (; g_marks < wanted; ++ranges) {
        nvtxRangePushA("range");
        nvtxRangePop();
        // A ring that is full would only make room for less. It ends with the next signal, too.
        if (ranges % 1000 == 0) poll(nullptr, 0, 1);
    }
    setitimer(ITIMER_REAL, &never, nullptr);
    std::printf("%d ranges, %d marks\n", ranges, g_marks.load() + 1);
}
