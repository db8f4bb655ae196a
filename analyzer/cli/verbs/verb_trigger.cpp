// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/job/ring_dump.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {
namespace {

int trigger(const std::string& run, const Console& console) {
    const RunInput input = findRun(run);
    if (input.captures.empty()) throw VerbError(kExitInput, fmt::format("{} has no capture folder", run));
    const RingDump dump = dumpRing(input.directory, "trigger");
    console.note(
        fmt::format("{}: the ring of {} as it is now", dump.run.string(), text::countedText(dump.ranks, "rank")));
    console.result(dump.run.string() + "\n");
    console.next(fmt::format("rankscope analyze {}", text::shellWord(dump.run.string())));
    return kExitOk;
}

}  // namespace

void addTriggerVerb(CLI::App& app, Invocation& invocation) {
    auto run = std::make_shared<std::string>();
    auto* verb = app.add_subcommand(
        "trigger",
        "Copy what a running job of `run --light` recorded in the last minute into NAME/dumps, a run of its own");
    verb->group(kRecordGroup);
    addRunOption(*verb, *run);
    setAction(*verb, invocation, [run, &invocation] { return trigger(*run, invocation.console); });
}

}  // namespace rankscope::cli
