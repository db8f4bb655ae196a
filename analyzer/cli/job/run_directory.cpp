// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/run_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_lock.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/job/live_processes.h"
#include "analyzer/cli/job/run_name.h"
#include "analyzer/text/masked_command.h"
#include "analyzer/text/output_file.h"
#include "collector/store/bounded_json.h"
#include "collector/store/folder_access.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kDescription = "run.json";
constexpr const char* kMembers = ".members";  // one line per wrapper; its flock is the run directory's lock

// One wrapper's line in the members file.
struct Member {
    std::string slot, host;
    pid_t pid = 0;
    uint64_t startTime = 0;  // see processStart
    bool done = false;
};

std::vector<Member> parseMembers(const std::string& text) {
    std::vector<Member> members;
    std::istringstream lines(text);
    Member member;
    while (lines >> member.slot >> member.host >> member.pid >> member.startTime >> member.done)
        members.push_back(member);
    return members;
}

std::string formatMembers(const std::vector<Member>& members) {
    std::string text;
    for (const auto& m : members) text += fmt::format("{} {} {} {} {:d}\n", m.slot, m.host, m.pid, m.startTime, m.done);
    return text;
}

bool gone(const Member& member) {
    return member.done || processStart(member.pid) != member.startTime;
}

// Of a member on another host only its own word is known: it has not said that it ended.
bool lives(const Member& member) {
    return member.host == hostName() ? !gone(member) : !member.done;
}

void refuseLiving(const fs::path& path, const std::string& shown, const std::vector<Member>& members) {
    const std::vector<pid_t> ranks = liveRanks(path / "capture");
    const auto member = std::ranges::find_if(members, lives);
    if (member == members.end() && ranks.empty()) return;
    const bool here = member == members.end() || member->host == hostName();
    throw VerbError(
        kExitInput,
        fmt::format("{} is being recorded: {} (pid {} on {}) still runs, and --force would delete its recording", shown,
                    member == members.end() ? "a rank" : "its job",
                    member == members.end() ? ranks.front() : member->pid, here ? hostName() : member->host),
        here ? "choose another name with -o, or end that job first"
             : "choose another name with -o, or end that job first; if nothing of it is left on that host, remove the "
               "folder");
}

json readDescription(const fs::path& path) {
    return store::readJsonOrNothing(path / kDescription);
}

void writeDescription(const fs::path& path, const json& description) {
    text::writeOutputFile(description.dump(2) + '\n', path / kDescription);
    store::setFileMode(path / kDescription);
}

int64_t unixNowNs() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

json describe(const fs::path& path, const RunDescription& d) {
    json options = json::object();
    if (d.recording) {
        options = {{"trace", d.recording->trace},
                   {"capture_range", d.recording->captureRange},
                   {"max_bytes", d.recording->maxBytes}};
        if (d.recording->isLight()) {
            options["light"] = true;
            options["ring_s"] = *secondsOf(d.recording->ring);
            if (d.recording->sumsKernels()) options["kernels"] = "summaries";
        }
        if (d.recording->delayS > 0) options["delay_s"] = d.recording->delayS;
        if (d.recording->durationS > 0) options["duration_s"] = d.recording->durationS;
    }
    if (!d.tunerRows.empty()) options["tuner_rows"] = d.tunerRows;
    if (!d.optionVariables.empty()) options["env"] = d.optionVariables;
    json result = {{"schema", "rankscope.run/1"},
                   {"name", path.filename().string()},
                   {"command", text::maskedCommand(d.command)},
                   {"start_unix_ns", unixNowNs()},
                   {"job_key", d.jobKey},
                   {"launcher", d.launcher},
                   {"virtual", d.virtualGpus},
                   {"options", options}};
    if (d.worldSize > 0) result["world_size"] = d.worldSize;
    if (!d.links.empty()) result["links"] = d.links;
    if (!d.scenario.empty()) result["scenario"] = d.scenario;
    if (d.startVariables) result["environment"] = *d.startVariables;
    return result;
}

// Takes away what a run leaves in its directory, and nothing else.
void emptyRun(const fs::path& path) {
    fs::remove_all(path / "capture");
    fs::remove_all(path / "stacks");
    fs::remove_all(path / "health");
    fs::remove_all(path / "dumps");
    for (const auto& entry : fs::directory_iterator(path)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("trace.db") || name == "scenario.json" || name.starts_with(kDescription))
            fs::remove(entry.path());
    }
}

// A folder of the user's with something else in it. One that holds a members file is ours, even before its run.json is
// written: a sibling is at it. The members file is the first that a run gets, so whoever finds the folder not empty
// must look for that file afterwards: in the other order a sibling may create it in between.
bool isForeign(const fs::path& path) {
    std::error_code missing;
    return !fs::is_empty(path, missing) && !missing && !fs::exists(path / kMembers) && !isRunDirectory(path);
}

}  // namespace

std::map<std::string, std::string> forcingVariables(const Environment& environment) {
    std::map<std::string, std::string> set;
    for (const std::string& variable : environment)
        for (const std::string_view name : {"NCCL_ALGO=", "NCCL_PROTO="})
            if (variable.starts_with(name))
                set[std::string(name.substr(0, name.size() - 1))] = variable.substr(name.size());
    return set;
}

void tellLinks(const fs::path& path, const std::string& links) {
    if (!isRunDirectory(path)) return;
    json description = readDescription(path);
    if (!description.is_object()) return;  // the collector says that it is damaged
    description["links"] = links;
    writeDescription(path, description);
}

bool isRunDirectory(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path / kDescription, ignored);
}

RunDirectory::RunDirectory(const fs::path& path, const RunDescription& description, const Membership& membership,
                           bool force)
    : m_path(fs::absolute(path).lexically_normal()), m_membership(membership) {
    if (!m_path.has_filename()) m_path = m_path.parent_path();  // "run/" names the same folder as "run"
    if (fs::exists(m_path) && !fs::is_directory(m_path))
        throw VerbError(kExitInput, fmt::format("{} exists and is not a folder", path.string()),
                        "choose another name with -o");
    if (isForeign(m_path))
        throw VerbError(kExitInput, fmt::format("{} exists, is not empty and is not a run", path.string()),
                        "choose another name with -o");
    try {
        store::makeRunFolder(m_path, description.shared);
        LockedFile file(m_path / kMembers, kLockPatience);
        auto members = parseMembers(file.read());
        if (isRunDirectory(m_path)) {
            const json existing = readDescription(m_path);
            bool sibling = existing.is_object() && existing.value("job_key", "") == description.jobKey;
            // A rank that is there already belongs to an earlier job with the same key.
            for (const auto& member : members)
                sibling = sibling &&
                          (member.slot != membership.slot || (description.onePerNode && member.host != hostName()));
            // Where the nodes meet is the same from job to job: only a job that lives is joined.
            if (description.onePerNode) sibling = sibling && std::ranges::any_of(members, lives);
            if (!sibling) {
                if (!force) {
                    const bool alive = std::ranges::any_of(members, lives);
                    throw VerbError(
                        kExitInput,
                        fmt::format("{} holds {}", path.string(),
                                    alive ? "the run of another job, which is being recorded" : "an earlier run"),
                        alive ? "choose another name with -o; the nodes of one torchrun job share a run when they are "
                                "given the same --rdzv-id"
                              : "add --force to replace it, or choose another name with -o");
                }
                refuseLiving(m_path, path.string(), members);
                emptyRun(m_path);
                members.clear();
            }
        }
        if (!isRunDirectory(m_path)) {
            store::makeFolderInside(captureFolder());
            writeDescription(m_path, describe(m_path, description));
        }
        m_isFirstOfHost = std::ranges::none_of(
            members, [](const Member& member) { return member.host == hostName() && !gone(member); });
        members.push_back({membership.slot, hostName(), getpid(), processStart(getpid()), false});
        file.write(formatMembers(members));
    } catch (const std::system_error& error) {
        if (error.code() == std::errc::timed_out)
            throw VerbError(kExitInput, fmt::format("cannot join the run {}: {}", path.string(), error.what()),
                            "end that process, or choose another name with -o");
        if (error.code() == std::errc::operation_not_permitted)
            throw VerbError(kExitInput, error.what(), "choose another name with -o");
        throw VerbError(kExitInput,
                        fmt::format("cannot create the run directory {}: {}", path.string(), error.code().message()),
                        "choose a place that can be written with -o");
    }
}

bool RunDirectory::isOfOneHost() const {
    LockedFile file(m_path / kMembers, kLockPatience);
    return std::ranges::all_of(parseMembers(file.read()),
                               [](const Member& member) { return member.host == hostName(); });
}

bool RunDirectory::leave(const ProcessEnd& end, int stopSignal) {
    LockedFile file(m_path / kMembers, kLockPatience);
    auto members = parseMembers(file.read());
    const std::string host = hostName();
    int local = 0;
    bool allGone = true;
    for (auto& member : members) {
        if (member.host != host) continue;
        if (member.slot == m_membership.slot && member.pid == getpid()) member.done = true;
        ++local;
        allGone = allGone && gone(member);
    }
    file.write(formatMembers(members));

    json description = readDescription(m_path);
    if (description.is_object()) {
        // With the launcher outside: the first failure is the job's.
        const bool failedBefore = description.value("exit_status", 0) != 0;
        if (!failedBefore) {
            description["exit_status"] = end.signal != 0 ? 128 + end.signal : end.status;  // as a shell tells it
            if (end.signal != 0) description["signal"] = end.signal;
        }
        // A launcher outside ends the ranks that are left by the same signals.
        if (stopSignal != 0 && description.value("launcher", "") == "inside") description["stop_signal"] = stopSignal;
        description["end_unix_ns"] = unixNowNs();
        writeDescription(m_path, description);
    }
    return allGone && local >= m_membership.localSize;
}

void RunDirectory::abandon() noexcept {
    try {
        LockedFile file(m_path / kMembers, kLockPatience);
        if (parseMembers(file.read()).size() != 1) return;
        emptyRun(m_path);
        fs::remove(m_path / kMembers);
        fs::remove(m_path);  // fails, rightly, when something else is in it
    } catch (const std::exception&) {
        // Nothing more can be done, and the reason why the job did not start matters more.
    }
}

}  // namespace rankscope::cli
