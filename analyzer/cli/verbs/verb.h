// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/cli/console/console.h"
#include "collector/team/team.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rankscope::cli {

// Whether a verb takes a command behind `--`.
enum class JobUse { none, optional, required };

// Holds what a verb needs from the command line besides its own options. A verb declares its options on the CLI::App
// and leaves in `action` what is to be done once the whole command line is known to be right.
struct Invocation {
    Console console;
    std::vector<std::string> job;      // the words behind `--`
    bool hasJobMark = false;           // a `--` was given
    std::function<int()> action;       // returns the exit code
    std::unique_ptr<team::Team> team;  // the processes that share this verb's work; nullptr: this one does all of it

    std::map<const CLI::App*, JobUse> jobVerbs;  // those that take a command
    JobUse jobUse(const CLI::App& verb) const {
        const auto at = jobVerbs.find(&verb);
        return at == jobVerbs.end() ? JobUse::none : at->second;
    }
    // Words that an argument may be, beside others: for completion. Asked only when they are needed.
    std::map<const CLI::Option*, std::function<std::vector<std::string>()>> knownWords;
};

// Groups of verbs in --help, in the order of a first day with the tool.
inline constexpr const char* kRecordGroup = "Record a job, or read what another profiler recorded";
inline constexpr const char* kReportGroup = "See what holds it back";
inline constexpr const char* kChangeGroup = "Find out what to change, and whether it helped";
inline constexpr const char* kTryGroup = "Try it without a job of yours; the machine, this program";

// Leaves `action` in the invocation where the command line names this verb.
template <typename Verb>
void setAction(Verb& verb, Invocation& invocation, std::function<int()> action) {
    verb.callback([&invocation, action = std::move(action)] { invocation.action = action; });
}

// Verbs whose work several processes may share (`mpirun -n 4 rankscope VERB`).
inline bool sharesWork(std::string_view verb) {
    return verb == "collect" || verb == "analyze" || verb == "recommend";
}

void addRunVerb(CLI::App& app, Invocation& invocation);
void addListVerb(CLI::App& app, Invocation& invocation);
void addDemoVerb(CLI::App& app, Invocation& invocation);
void addCompletionVerb(CLI::App& app, Invocation& invocation);
void addCollectVerb(CLI::App& app, Invocation& invocation);
void addImportVerb(CLI::App& app, Invocation& invocation);
void addAnalyzeVerb(CLI::App& app, Invocation& invocation);
void addRecommendVerb(CLI::App& app, Invocation& invocation);
void addExplainVerb(CLI::App& app, Invocation& invocation);
void addExportVerb(CLI::App& app, Invocation& invocation);
void addStatsVerb(CLI::App& app, Invocation& invocation);
void addWhatIfVerb(CLI::App& app, Invocation& invocation);
void addDoctorVerb(CLI::App& app, Invocation& invocation);
void addCompareVerb(CLI::App& app, Invocation& invocation);
void addBaselineVerb(CLI::App& app, Invocation& invocation);
void addTrendVerb(CLI::App& app, Invocation& invocation);
void addReferenceVerb(CLI::App& app, Invocation& invocation);
void addViewVerb(CLI::App& app, Invocation& invocation);
void addTriggerVerb(CLI::App& app, Invocation& invocation);
void addTuneVerb(CLI::App& app, Invocation& invocation);
void addTopVerb(CLI::App& app, Invocation& invocation);
void addReferenceScoreVerb(CLI::App& reference, Invocation& invocation);  // in builds that have the reference room

}  // namespace rankscope::cli
