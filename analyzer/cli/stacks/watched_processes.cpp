// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/stacks/watched_processes.h"

#include <charconv>
#include <map>

#include "analyzer/cli/job/live_processes.h"
#include "injector/capture_format/watch_counters.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

// "HOST.PID.START[-IMAGE]", as the injector names its files.
struct RecordingName {
    pid_t pid = 0;
    uint64_t startTicks = 0;
    int image = 0;
};

template <typename Number>
bool readNumber(std::string_view text, Number& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool parseName(std::string_view stem, RecordingName& name) {
    const size_t beforeStart = stem.rfind('.');
    if (beforeStart == std::string_view::npos || beforeStart == 0) return false;
    const size_t beforePid = stem.rfind('.', beforeStart - 1);
    if (beforePid == std::string_view::npos) return false;
    std::string_view start = stem.substr(beforeStart + 1);
    if (const size_t dash = start.find('-'); dash != std::string_view::npos) {
        if (!readNumber(start.substr(dash + 1), name.image)) return false;
        start = start.substr(0, dash);
    }
    return readNumber(stem.substr(beforePid + 1, beforeStart - beforePid - 1), name.pid) &&
           readNumber(start, name.startTicks);
}

}  // namespace

std::vector<WatchedProcess> watchedProcesses(const fs::path& captureFolder, pid_t ancestor) {
    std::map<pid_t, std::pair<int, WatchedProcess>> newest;  // with its image
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(captureFolder, ignored)) {
        RecordingName name;
        if (entry.path().extension() != ".ring" || !parseName(entry.path().stem().string(), name)) continue;
        if (name.pid <= 0 || processStart(name.pid) != name.startTicks || !descendsFrom(name.pid, {&ancestor, 1}))
            continue;
        const fs::path captureFile = fs::path(entry.path()).replace_extension(".cap");
        capture::FileHeader header{};
        capture::WatchCounters counters{};
        if (!capture::readWatched(captureFile.c_str(), header, counters)) continue;
        auto& [image, process] = newest[name.pid];
        if (process.pid != 0 && image > name.image) continue;
        image = name.image;
        process = {name.pid, name.startTicks, captureFile.filename().string(), header.rank, counters.progress};
    }
    std::vector<WatchedProcess> processes;
    for (const auto& [pid, one] : newest) processes.push_back(one.second);
    return processes;
}

}  // namespace rankscope::cli
