// SPDX-License-Identifier: Apache-2.0
#include "injector/session/diagnostics.h"

#include <unistd.h>

#include <atomic>

#include "injector/text.h"

namespace rankscope::injector {
namespace {
std::atomic<bool> g_verbose{false};
}

void setVerbose(bool verbose) noexcept {
    g_verbose.store(verbose, std::memory_order_relaxed);
}

void say(const char* message) noexcept {
    if (!g_verbose.load(std::memory_order_relaxed)) return;
    FixedText<1024> line;
    line.append("rankscope: ").append(message).append("\n");
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.c_str(), line.size());
}

}  // namespace rankscope::injector
