// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/live_processes.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <regex>
#include <sstream>
#include <string>

#include "analyzer/text/lists.h"
#include "collector/store/shards.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

// The pid in ".trace.db.PID.part" and what SQLite appends to that.
std::optional<pid_t> writerOf(const std::string& name, const std::string& prefix) {
    static const std::regex kRest(R"(([0-9]{1,9})\.part(-journal|-wal|-shm|\.[0-9]{1,9}\.part)?)");
    std::smatch parts;
    const std::string rest = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
    return std::regex_match(rest, parts, kRest) ? std::optional<pid_t>(std::stoi(parts[1])) : std::nullopt;
}

}  // namespace

uint64_t processField(pid_t pid, int number) {
    std::ifstream stat(fmt::format("/proc/{}/stat", pid));
    std::string text;
    std::getline(stat, text, '\0');  // of a process that is ending reading fails, by which an iterator would throw
    // "PID (NAME) STATE PARENT ...", and the name may hold blanks and brackets.
    const size_t afterName = text.rfind(')');
    if (afterName == std::string::npos) return 0;
    std::istringstream fields(text.substr(afterName + 1));
    std::string field;
    for (int i = 3; i <= number && fields >> field; ++i)
        if (i == number) return std::strtoull(field.c_str(), nullptr, 10);
    return 0;
}

uint64_t processStart(pid_t pid) {
    constexpr int kStartTime = 22;
    return processField(pid, kStartTime);
}

bool descendsFrom(pid_t pid, std::span<const pid_t> ancestors) {
    constexpr int kParent = 4;            // its place in /proc/PID/stat, proc(5)
    constexpr int kMostGenerations = 64;  // ends the walk should /proc change below it
    for (int generation = 0; pid > 1 && generation < kMostGenerations; ++generation) {
        if (text::contains(ancestors, pid)) return true;
        pid = static_cast<pid_t>(processField(pid, kParent));
    }
    return false;
}

std::vector<pid_t> liveRanks(const fs::path& captureFolder) {
    static const std::regex kName(R"(.*\.([0-9]{1,9})\.([0-9]{1,19})(-[0-9]+)?\.ring)");
    std::vector<pid_t> live;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(captureFolder, ignored)) {
        const std::string name = entry.path().filename().string();
        std::smatch parts;
        if (!std::regex_match(name, parts, kName)) continue;
        const pid_t pid = std::stoi(parts[1]);
        const uint64_t start = processStart(pid);
        if (start != 0 && start == std::stoull(parts[2])) live.push_back(pid);
    }
    std::ranges::sort(live);
    live.erase(std::unique(live.begin(), live.end()), live.end());
    return live;
}

namespace {

/// `isWanted`: of the name of what was being written.
void removeLeftoversIn(const fs::path& folder, const std::function<bool(const std::string& target)>& isWanted) {
    std::error_code ignored;
    if (fs::is_symlink(fs::symlink_status(folder, ignored))) return;
    std::vector<fs::path> left;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
        std::string name = entry.path().filename().string();
        if (name.starts_with("..")) name.erase(0, 1);  // a copy of what was being written, which was being received
        const size_t end = name.find(".db.");
        if (!name.starts_with(".") || end == std::string::npos || !isWanted(name.substr(1, end + 2))) continue;
        const auto pid = writerOf(name, name.substr(0, end + 4));
        if (pid && *pid > 0 && kill(*pid, 0) != 0 && errno == ESRCH) left.push_back(entry.path());
    }
    for (const fs::path& path : left) fs::remove(path, ignored);
}

}  // namespace

void removeLeftovers(const fs::path& database) {
    const std::string name = database.filename().string();
    removeLeftoversIn(database.has_parent_path() ? database.parent_path() : fs::path("."),
                      [&](const std::string& target) { return target == name; });
    removeLeftoversIn(store::shardFolder(database), [](const std::string&) { return true; });
}

}  // namespace rankscope::cli
