// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/ring_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <vector>

#include "analyzer/cli/console/errors.h"
#include "analyzer/text/output_file.h"
#include "collector/store/bounded_json.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

nlohmann::json descriptionOf(const fs::path& run) {
    nlohmann::json description = store::readJsonOrNothing(run / "run.json");
    return description.is_object() ? description : nlohmann::json::object();
}

std::vector<fs::path> filesIn(const fs::path& folder, std::string_view ending) {
    std::vector<fs::path> files;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored))
        if (entry.path().extension() == ending) files.push_back(entry.path());
    return files;
}

// Files that are gone when their turn comes were the oldest of a ring, or of a process that ended.
void copyAll(const std::vector<fs::path>& files, const fs::path& to, std::set<fs::path>& copied) {
    for (const fs::path& file : files) {
        std::error_code error;
        fs::copy_file(file, to / file.filename(), error);
        if (!error)
            copied.insert(file.filename());
        else if (error != std::errc::no_such_file_or_directory)
            throw VerbError(kExitInput, fmt::format("{} cannot be copied: {}", file.string(), error.message()));
    }
}

// What the readers of the copies need fits together in this order: what moves from a ring into a .detail file meanwhile
// is then in both, which a reader sees, and what moves from there into the .cap file, too.
int copyCaptures(const fs::path& from, const fs::path& to) {
    std::set<fs::path> copied;
    copyAll(filesIn(from, ".ring"), to, copied);
    // Where a ring goes on to its next file in the meantime, that one is needed in place of its oldest.
    for (int round = 0; round < 2; ++round) {
        std::vector<fs::path> details = filesIn(from, ".detail");
        std::erase_if(details, [&](const fs::path& file) { return copied.contains(file.filename()); });
        copyAll(details, to, copied);
    }
    std::set<fs::path> captures;
    copyAll(filesIn(from, ".cap"), to, captures);
    return static_cast<int>(captures.size());
}

// The next free number; another wrapper of the job may take the same, and then the one behind it is ours.
fs::path makeFolder(const fs::path& dumps, const std::string& reason) {
    std::error_code error;
    fs::create_directories(dumps, error);
    int number = 1;
    for (const auto& entry : fs::directory_iterator(dumps, error))
        number = std::max(number, std::atoi(entry.path().filename().c_str()) + 1);
    for (; !error; ++number) {
        const fs::path folder = dumps / fmt::format("{}-{}", number, reason);
        if (fs::create_directory(folder, error)) return folder;
    }
    throw VerbError(kExitInput, fmt::format("{}: no folder can be made there: {}", dumps.string(), error.message()));
}

}  // namespace

bool hasRing(const fs::path& run) {
    const nlohmann::json options = descriptionOf(run).value("options", nlohmann::json::object());
    return options.is_object() && options.value("light", nlohmann::json()) == true &&
           options.value("ring_s", nlohmann::json()).is_number() && options["ring_s"].get<double>() > 0;
}

RingDump dumpRing(const fs::path& run, const std::string& reason) {
    const fs::path captures = run / "capture";
    if (!hasRing(run))
        throw VerbError(kExitInput, fmt::format("{} is recorded without a ring", run.string()),
                        "`rankscope run --light` records with one; of other runs nothing is thrown away");
    if (filesIn(captures, ".detail").empty())
        throw VerbError(kExitInput, fmt::format("{}: no process of the job has recorded anything yet", run.string()));
    nlohmann::json description = descriptionOf(run);
    if (description.contains("end_unix_ns"))
        throw VerbError(kExitInput, fmt::format("the job of {} has ended", run.string()),
                        "its ring is part of the run: `rankscope analyze` reads it");
    RingDump dump{makeFolder(run / "dumps", reason), 0};
    try {
        fs::create_directory(dump.run / "capture");
        const int64_t nowNs =
            std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
                .count();
        description["dump"] = {{"reason", reason}, {"unix_ns", nowNs}};
        text::writeOutputFile(description.dump(2) + "\n", (dump.run / "run.json").string());
        dump.ranks = copyCaptures(captures, dump.run / "capture");
        return dump;
    } catch (...) {
        std::error_code ignored;
        fs::remove_all(dump.run, ignored);
        throw;
    }
}

}  // namespace rankscope::cli
