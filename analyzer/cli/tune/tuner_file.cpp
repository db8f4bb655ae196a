// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/tune/tuner_file.h"

#include <fmt/format.h>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"

namespace rankscope::cli {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostTold = 10;
constexpr uintmax_t kMostBytes = 256 * 1024;  // what the plugin reads

std::string readAll(const fs::path& file) {
    std::error_code error;
    if (!fs::is_regular_file(file, error))
        throw VerbError(kExitInput, fmt::format("there is no tuner file {}", file.string()));
    if (fs::file_size(file, error) > kMostBytes)
        throw VerbError(kExitInput,
                        fmt::format("{} is larger than {} KiB: not a tuner file", file.string(), kMostBytes / 1024));
    return readFile(file);
}

}  // namespace

std::vector<recommend::TunerRow> readTunerFile(const fs::path& file) {
    auto [rows, problems] = recommend::parseTunerCsv(readAll(file));
    if (problems.empty()) return rows;
    std::string told;
    const auto& first = problems.front();
    for (size_t i = 0; i < problems.size() && i < kMostTold; ++i) {
        const auto& problem = problems[i];
        if (i > 0) told += "\n  | ";
        told += problem.line > 0 ? fmt::format("{}, line {}: {}", file.string(), problem.line, problem.what)
                                 : fmt::format("{}: {}", file.string(), problem.what);
        if (problems.size() > 1 && !problem.hint.empty()) told += fmt::format(" ({})", problem.hint);
    }
    if (problems.size() > kMostTold) told += fmt::format("\n  | and {} more", problems.size() - kMostTold);
    throw VerbError(kExitInput, told,
                    problems.size() == 1 ? first.hint : "docs/tuner-csv.md tells what a row may hold");
}

std::string tunerNote(const fs::path& file, const std::vector<recommend::TunerRow>& rows,
                      const Environment& environment) {
    if (rows.empty()) return fmt::format("{} holds no rows: nothing is forced, NCCL's own choice stays", file.string());
    for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"})
        if (const std::string value = getVariable(environment, name); !value.empty())
            return fmt::format(
                "{}={} is in the environment and comes before the rows of {}: what it forbids they cannot bring back",
                name, value, file.string());
    return {};
}

std::string tunerRowsForJob(const std::vector<recommend::TunerRow>& rows) {
    std::string text;
    for (const auto& row : rows) text += (text.empty() ? "" : ";") + recommend::formatTunerRow(row);
    return text;
}

}  // namespace rankscope::cli
