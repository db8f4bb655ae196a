// SPDX-License-Identifier: Apache-2.0
// threads SHAPE: many threads call hooked functions. Prints nothing that depends on timing.
#include <pthread.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "gpu_calls.h"

namespace {

struct CallsAtEnd {
    int calls = 0;
    ~CallsAtEnd() { callGpu(calls); }
};
thread_local CallsAtEnd callsAtEnd;

void* leaveEarly(void*) {
    callGpu(5);
    pthread_exit(nullptr);
}

void together(int count, int calls) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([calls] { callGpu(calls); });
    for (auto& thread : threads) thread.join();
}

}  // namespace

int main(int, char** argv) {
    const auto is = [argv](const char* name) { return std::strcmp(argv[1], name) == 0; };
    if (is("many")) together(8, 500);
    if (is("crowd")) together(200, 3);
    if (is("storm"))
        for (int i = 0; i < 200; ++i) std::thread([] { callGpu(3); }).join();
    if (is("pthread_exit"))
        for (int i = 0; i < 20; ++i) {
            pthread_t thread;
            pthread_create(&thread, nullptr, leaveEarly, nullptr);
            pthread_join(thread, nullptr);
        }
    if (is("thread_local"))
        for (int i = 0; i < 20; ++i)
            std::thread([] {
                callsAtEnd.calls = 2;
                callGpu(1);
            }).join();
    if (is("small_stack")) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 64 * 1024);
        pthread_t thread;
        pthread_create(&thread, &attributes, leaveEarly, nullptr);
        pthread_join(thread, nullptr);
    }
    std::printf("%s done\n", argv[1]);
}
