// SPDX-License-Identifier: Apache-2.0
// ends HOW CALLS: makes CALLS GPU calls, then ends in the way named.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "gpu_calls.h"

namespace {

void onSegv(int) {
    [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, "own handler\n", 12);
    _exit(66);
}

void crash() {
    volatile int* nowhere = nullptr;
    *nowhere = 1;
}

void quickly() {
    [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, "at_quick_exit\n", 14);
}

struct LateCaller {
    int calls = 0;
    ~LateCaller() {
        if (calls > 0) callGpu(calls);
    }
} lateCaller;

}  // namespace

int main(int, char** argv) {
    const char* how = argv[1];
    const auto is = [how](const char* name) { return std::strcmp(how, name) == 0; };
    const rlimit noCore{0, 0};
    setrlimit(RLIMIT_CORE, &noCore);
    if (is("own-handler")) std::signal(SIGSEGV, onSegv);
    callGpu(std::atoi(argv[2]));
    std::printf("%s\n", how);
    std::fflush(stdout);
    if (is("return")) return 3;
    if (is("exit")) std::exit(4);
    if (is("_exit")) _exit(5);
    if (is("_Exit")) std::_Exit(6);
    if (is("quick_exit")) {
        std::at_quick_exit(quickly);
        std::quick_exit(7);
    }
    if (is("pthread_exit")) pthread_exit(nullptr);
    if (is("raw-exit")) syscall(SYS_exit, 11);
    if (is("exit-in-thread")) {
        std::thread([] { std::exit(8); }).join();
    }
    if (is("running-threads")) {
        std::thread([] {
            for (;;) pause();
        }).detach();
        return 9;
    }
    if (is("late-calls")) {
        lateCaller.calls = 10;
        return 10;
    }
    if (is("segv") || is("own-handler")) crash();
    if (is("abort")) std::abort();
    if (is("throw")) throw std::runtime_error("uncaught");
    if (is("kill")) kill(getpid(), SIGKILL);
    if (is("term")) raise(SIGTERM);
    if (is("int")) raise(SIGINT);
    return 1;
}
