// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/progress.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "analyzer/text/plain_text.h"

namespace rankscope::cli {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);  // what is done sooner needs no word
constexpr auto kPeriod = std::chrono::milliseconds(500);
constexpr std::string_view kClearLine = "\r\x1b[K";  // ECMA-48: erase in line
constexpr size_t kLongestPart = 60;                  // a name of a file, on one line of a terminal

bool isTold(const Console& console) {
    const char* terminal = std::getenv("TERM");
    return !console.isQuiet() && console.isTerminal(STDERR_FILENO) && terminal != nullptr &&
           std::string_view(terminal) != "dumb";
}

void writeToTerminal(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

}  // namespace

Progress::Progress(const Console& console, std::string what) : m_what(std::move(what)) {
    if (!isTold(console)) return;
    // Signals are for the thread that works.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    m_thread = std::thread([this] { show(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Progress::at(std::string part) {
    const std::lock_guard lock(m_mutex);
    m_part = text::shortened(text::oneLine(part), kLongestPart);
}

void Progress::end() {
    if (!m_thread.joinable()) return;
    {
        const std::lock_guard lock(m_mutex);
        m_ended = true;
    }
    m_change.notify_all();
    m_thread.join();
}

void Progress::show() {
    const auto start = std::chrono::steady_clock::now();
    std::unique_lock lock(m_mutex);
    if (m_change.wait_for(lock, kPatience, [this] { return m_ended; })) return;
    do {
        const auto seconds =
            std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start).count();
        writeToTerminal(fmt::format("{}{} ({} s){}", kClearLine, m_what, seconds, m_part.empty() ? "" : ": " + m_part));
    } while (!m_change.wait_for(lock, kPeriod, [this] { return m_ended; }));
    writeToTerminal(kClearLine);
}

}  // namespace rankscope::cli
