// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace rankscope::collector {

void sideBySide(size_t count, unsigned threads, const std::function<void(size_t)>& work) {
    std::atomic<size_t> next{0};
    std::mutex errorLock;
    std::exception_ptr error;
    const auto take = [&] {
        for (size_t i = next++; i < count; i = next++) {
            try {
                work(i);
            } catch (...) {
                const std::lock_guard lock(errorLock);
                if (!error) error = std::current_exception();
                next = count;
            }
        }
    };
    const size_t wanted = threads ? threads : std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> helpers;
    for (size_t i = 1; i < std::min(wanted, count); ++i) helpers.emplace_back(take);
    take();
    for (std::thread& helper : helpers) helper.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace rankscope::collector
