// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/leftovers.h"

#include <signal.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <string>

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

// The pid in ".trace.db.PID.part" and what SQLite appends to that.
std::optional<pid_t> writerOf(const std::string& name, const std::string& prefix) {
    if (name.rfind(prefix, 0) != 0) return std::nullopt;
    pid_t pid = 0;
    const char* end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + prefix.size(), end, pid);
    if (error != std::errc() || pid <= 0) return std::nullopt;
    const std::string suffix(rest, end);
    return suffix == ".part" || suffix == ".part-journal" || suffix == ".part-wal" || suffix == ".part-shm"
               ? std::optional(pid)
               : std::nullopt;
}

}  // namespace

void removeLeftovers(const fs::path& database) {
    const std::string prefix = "." + database.filename().string() + ".";
    std::error_code ignored;
    for (const auto& entry :
         fs::directory_iterator(database.has_parent_path() ? database.parent_path() : fs::path("."), ignored)) {
        const auto pid = writerOf(entry.path().filename().string(), prefix);
        if (pid && kill(*pid, 0) != 0 && errno == ESRCH) fs::remove(entry.path(), ignored);
    }
}

}  // namespace rankscope::cli
