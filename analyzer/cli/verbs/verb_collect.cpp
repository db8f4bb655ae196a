// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {
namespace {

RunInput findRecordedRun(const std::string& run) {
    RunInput input = findRun(run);
    if (input.captures.empty())
        throw VerbError(kExitInput, fmt::format("{} has no capture folder", run),
                        "an imported run is made by `rankscope import`");
    return input;
}

int collect(const std::vector<std::string>& runs, const std::string& links, bool shards, const Console& console,
            team::Team* team) {
    const std::string& run = runs.front();
    if (shards && runs.size() > 1)
        throw VerbError(kExitUsage, "--shards takes one NAME, which each host has for itself",
                        "give the run the same name on all hosts, or collect without --shards");
    const RunInput input = findRecordedRun(run);
    std::vector<std::filesystem::path> otherHosts;
    for (size_t i = 1; i < runs.size(); ++i) otherHosts.push_back(findRecordedRun(runs[i]).directory);
    const Collected collected = collectRun(input, console, otherHosts, links, team, shards);
    requireRecorded(collected, run);
    console.note(fmt::format("{}: {}", run, collected.summary));
    if (!collected.warning.empty()) console.warning(collected.warning);
    tellContents(input.database, console);
    console.next(fmt::format("rankscope analyze {}", text::shellWord(run)));
    return kExitOk;
}

}  // namespace

void addCollectVerb(CLI::App& app, Invocation& invocation) {
    auto runs = std::make_shared<std::vector<std::string>>();
    auto links = std::make_shared<std::string>();
    auto* verb = app.add_subcommand(
        "collect", "Build NAME/trace.db from the capture files; ranks that are missing or died are tolerated");
    verb->group(kRecordGroup);
    verb->add_option("NAME", *runs,
                     "Run name or run directory; further ones are the same job's on hosts without a shared file system")
        ->required();
    addLinksOption(*verb, *links);
    auto shards = std::make_shared<bool>(false);
    verb->add_flag("--shards", *shards,
                   "Under mpirun: leave each host's events on its disk, in NAME/trace.d/HOST.db; NAME/trace.db, which "
                   "joins them, goes to all of these hosts");
    setAction(*verb, invocation, [runs, links, shards, &invocation] {
        team::Team* team = invocation.team.get();
        if (team == nullptr || team->isFirst()) return collect(*runs, *links, *shards, invocation.console, team);
        helpCollect(*runs, *team);
        return helpedToTheEnd(*team);
    });
}

}  // namespace rankscope::cli
