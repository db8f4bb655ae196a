// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/run_name.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <set>
#include <sstream>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_lock.h"

namespace rankscope::cli {

namespace fs = std::filesystem;

namespace {

std::string currentTime() {
    return fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
}

// The part of the pattern that holds no %t: the folder in which all ranks of the job can meet before they know the
// time.
fs::path meetingFile(const std::string& pattern, const std::string& jobKey) {
    const std::string head = pattern.substr(0, pattern.find("%t"));
    const size_t slash = head.rfind('/');
    fs::path folder = slash == std::string::npos ? "." : expandRunName(head.substr(0, slash + 1), nullptr);
    return folder / fmt::format(".rankscope-job-{:016x}", std::hash<std::string>()(jobKey));
}

// The file holds the time in its first line and then one line per rank that has come. A rank that finds itself there
// already is the rank of a later job that has the same key (a launcher's port number is not unique for ever): it opens
// the file anew.
std::string timeOfJob(const std::string& pattern, const LaunchedRank& launched) {
    const auto path = meetingFile(pattern, launched.jobKey);
    fs::create_directories(path.parent_path());
    LockedFile file(path, kLockPatience);
    std::istringstream lines(file.read());
    std::string time, line;
    std::getline(lines, time);
    bool seen = time.empty();
    while (std::getline(lines, line)) seen = seen || line == launched.slot();
    if (seen) {
        time = currentTime();
        file.write(time + "\n" + launched.slot() + "\n");
    } else {
        file.append(launched.slot() + "\n");
    }
    return time;
}

}  // namespace

std::string hostName() {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    return name;
}

fs::path expandRunName(const std::string& pattern, const LaunchedRank* launched) {
    if (pattern.empty())
        throw VerbError(kExitUsage, "-o: the name is empty", "leave -o out to get a name made of the time");
    std::string name;
    for (size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] != '%') {
            name += pattern[i];
            continue;
        }
        const char what = i + 1 < pattern.size() ? pattern[++i] : '\0';
        if (what == '%') {
            name += '%';
        } else if (what == 'h') {
            name += hostName();
        } else if (what == 't') {
            name += launched ? timeOfJob(pattern, *launched) : currentTime();
        } else if (const size_t close = pattern.find('}', i);
                   what == 'q' && pattern.compare(i, 2, "q{") == 0 && close != std::string::npos) {
            const std::string variable = pattern.substr(i + 2, close - i - 2);
            const char* value = std::getenv(variable.c_str());
            if (!value)
                throw VerbError(kExitUsage, fmt::format("-o {}: the variable {} is not set", pattern, variable));
            name += value;
            i = close;
        } else {
            throw VerbError(kExitUsage, fmt::format("-o {}: unknown %-sequence", pattern),
                            "write %h (host), %t (start time), %q{VAR} or %% in a name");
        }
    }
    if (name.empty())
        throw VerbError(kExitUsage, fmt::format("-o {}: the name is empty once its variables are filled in", pattern));
    return name;
}

void forgetRunName(const std::string& pattern, const LaunchedRank& launched) {
    if (pattern.find("%t") == std::string::npos) return;
    try {
        const auto path = meetingFile(pattern, launched.jobKey);
        LockedFile file(path, kLockPatience);
        std::istringstream lines(file.read());
        std::string time, slot;
        std::getline(lines, time);
        std::set<std::string> ranks;  // without the attempts
        while (std::getline(lines, slot)) ranks.insert(slot.substr(0, slot.find('.')));
        // A short job's first rank can be done before its last one has come, which would choose a time of its own.
        const bool allHaveCome = ranks.size() >= static_cast<size_t>(std::max(launched.worldSize, 1));
        if (allHaveCome || time.empty()) fs::remove(path);
    } catch (const std::exception&) {
        // A leftover file does no harm: a later job that finds it opens it anew.
    }
}

}  // namespace rankscope::cli
