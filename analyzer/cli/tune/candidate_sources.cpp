// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/tune/candidate_sources.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/cli/console/install_layout.h"
#include "analyzer/cli/job/child_program.h"
#include "analyzer/cli/tune/tuner_file.h"
#include "collector/store/bounded_json.h"
#include "collector/store/error.h"

namespace rankscope::cli {
namespace {

using recommend::TuneCandidate;

void append(std::vector<TuneCandidate>& all, std::vector<TuneCandidate> more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Asks `rankscope recommend` for JSON: another process, so that its memory is gone before the job starts.
std::string adviceOn(const std::string& run) {
    const std::string self = ownProgram().string();
    const auto output = readProgramOutput({{self, "-q", "recommend", run, "--format", "json"}, currentEnvironment()});
    if (output.end.failed()) {
        std::string said = output.standardError.substr(0, 500);
        while (!said.empty() && said.back() == '\n') said.pop_back();
        for (size_t at = said.find('\n'); at != std::string::npos; at = said.find('\n', at + 1))
            said.insert(at + 1, "  | ");
        throw VerbError(kExitInput, fmt::format("`rankscope recommend {}` failed:\n  | {}", run, said));
    }
    return output.standardOutput;
}

// Says what the advice says where it recommends nothing: each reason to keep what is there, or why nothing could be
// judged.
std::vector<std::string> reasonsToKeep(const std::string& run, const std::string& advice) {
    const nlohmann::json document = store::parseJsonOrNothing(advice);
    std::vector<std::string> reasons = {
        fmt::format("`rankscope recommend {}` recommends no change: there is nothing to try.", run)};
    if (!document.is_object()) return reasons;
    for (const auto& limit : document.value("limits", nlohmann::json::array()))
        if (limit.is_string()) reasons.push_back("not judged: " + limit.get<std::string>());
    for (const auto& kept : document.value("kept", nlohmann::json::array()))
        if (kept.is_object()) reasons.push_back(fmt::format("{}: {}", kept.value("area", ""), kept.value("why", "")));
    return reasons;
}

// What stands on the command line is the user's to write otherwise; files are input.
TuneCandidate fromCommandLine(const std::string& text) {
    try {
        return recommend::parseCandidate(text);
    } catch (const store::Error& error) {
        throw VerbError(kExitUsage, fmt::format("--candidate {}: {}", text, error.cause()), error.hint());
    }
}

TuneCandidate fromTunerFile(const std::string& file) {
    TuneCandidate candidate;
    candidate.name = "tuner file " + file;
    candidate.tunerRows = readTunerFile(file);
    if (candidate.tunerRows.empty())
        throw VerbError(kExitInput,
                        fmt::format("{} holds no rows: NCCL's own choice stays, and there is nothing to try", file));
    return candidate;
}

}  // namespace

std::vector<TuneCandidate> candidatesOf(const CandidateSources& sources, std::vector<std::string>& notes) {
    std::vector<TuneCandidate> all;
    std::vector<std::string> leftOut, keep;
    for (const std::string& text : sources.candidates) all.push_back(fromCommandLine(text));
    for (const std::string& file : sources.candidateFiles)
        append(all, recommend::parseCandidates(file, readFile(file), leftOut));
    for (const std::string& file : sources.tunerFiles) all.push_back(fromTunerFile(file));
    if (!sources.fromRecommend.empty()) {
        const std::string advice = adviceOn(sources.fromRecommend);
        const size_t before = all.size() + leftOut.size();
        append(all, recommend::parseCandidates(fmt::format("recommend {}", sources.fromRecommend), advice, leftOut));
        if (all.size() + leftOut.size() == before) keep = reasonsToKeep(sources.fromRecommend, advice);
    }
    for (const std::string& name : leftOut)
        notes.push_back(fmt::format("Not tried, for it is no environment variable and no tuner row: {}.", name));
    notes.insert(notes.end(), keep.begin(), keep.end());
    if (!all.empty() || (!keep.empty() && leftOut.empty())) return all;
    if (leftOut.empty())
        throw VerbError(
            sources.candidateFiles.empty() ? kExitUsage : kExitInput, "there is no candidate to try",
            "--candidate 'NCCL_ALGO=ring,NCCL_PROTO=simple', --candidates FILE, --tuner FILE or --from-recommend NAME");
    throw VerbError(kExitInput, fmt::format("no candidate can be tried from here: {}", notes.front()),
                    "change the job itself, and compare two runs of it");
}

}  // namespace rankscope::cli
