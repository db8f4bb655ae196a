// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/process_end.h"

#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace rankscope::collector {
namespace {

namespace fs = std::filesystem;

std::string firstLineOf(const fs::path& file) {
    std::string line;
    std::getline(std::ifstream(file), line);
    return line;
}

/// When a living process began, in clock ticks since boot. See proc(5), /proc/pid/stat: the name in parentheses may
/// hold anything.
std::optional<std::string> startTicksOf(int pid) {
    const std::string stat = firstLineOf("/proc/" + std::to_string(pid) + "/stat");
    const size_t name = stat.rfind(')');
    if (name == std::string::npos) return std::nullopt;
    std::istringstream fields(stat.substr(name + 1));
    std::string field;
    constexpr int kState = 3, kStartTime = 22;
    for (int number = kState; fields >> field; ++number) {
        if (number == kState && (field == "Z" || field == "X")) return std::nullopt;  // dead, not yet waited for
        if (number == kStartTime) return field;
    }
    return std::nullopt;
}

/// A capture is named HOST.PID.START[-IMAGE].cap, START in ticks.
std::string startTicksIn(const fs::path& capture) {
    const std::string stem = capture.stem().string();
    const std::string last = stem.substr(stem.rfind('.') + 1);
    return last.substr(0, last.find('-'));
}

bool isAlive(const fs::path& capture, const capture::FileHeader& header) {
    if (header.pid <= 0 || firstLineOf("/proc/sys/kernel/random/boot_id") != header.bootId) return false;
    return startTicksOf(header.pid) == startTicksIn(capture);
}

}  // namespace

SilentEnd silentEndOf(const fs::path& capture, const capture::FileHeader& header) {
    if (isAlive(capture, header)) return SilentEnd::running;
    std::error_code ignored;
    return fs::exists(fs::path(capture).replace_extension(".ring"), ignored) ? SilentEnd::killed : SilentEnd::unknown;
}

}  // namespace rankscope::collector
