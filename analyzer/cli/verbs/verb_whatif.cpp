// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/console/progress.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/edits/edit.h"
#include "analyzer/edits/what_if.h"
#include "analyzer/report/analyze.h"
#include "analyzer/report/renderers.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {
namespace {

struct WhatIfVerbOptions {
    std::string run;
    std::vector<std::string> changes;
    bool list = false;
    std::string format = "text";
    std::string output;
    LinkOptions links;
};

job::Analysis analysisOf(const WhatIfVerbOptions& options, const Console& console) {
    const RunInput input = findRun(options.run);
    const costs::LinkSources links = linkSources(options.links);
    collectOnDemand(input, console);
    Progress progress(console, "reading " + options.run);
    job::Analysis analysis = job::readAnalysis(input.database, {0, links, {}});
    progress.end();
    for (const std::string& warning : analysis.peaks.warnings) console.warning(warning);
    if (!analysis.replay.available())
        throw VerbError(kExitInput, options.run + ": this run cannot be replayed: " + analysis.replay.unavailable,
                        "record CUDA calls, kernels and NCCL of all ranks, over some steps");
    return analysis;
}

int list(const WhatIfVerbOptions& options, const Console& console) {
    if (!options.changes.empty())
        throw VerbError(kExitUsage, "--list and --change exclude each other",
                        "rankscope whatif NAME --list tells what the run can be asked for");
    checkOutput(options.output, {options.run});
    giveResult(options.run.empty() ? edits::listEdits() : edits::listEdits(analysisOf(options, console)),
               options.output, console);
    console.next("rankscope whatif " + (options.run.empty() ? std::string("NAME") : text::shellWord(options.run)) +
                 " --change CHANGE");
    return kExitOk;
}

int predict(const WhatIfVerbOptions& options, const Console& console) {
    const edits::Edits edits = edits::parseEdits(options.changes);
    checkOutput(options.output, {options.run});
    const edits::WhatIf result = edits::whatIf(analysisOf(options, console), edits);
    giveResult(options.format == "json" ? report::renderWhatIfJson(result, options.changes)
                                        : report::renderWhatIfText(result, options.changes),
               options.output, console);
    console.next("rankscope whatif " + text::shellWord(options.run) + " --list");
    return kExitOk;
}

int act(const WhatIfVerbOptions& options, const Console& console) {
    if (options.list) return list(options, console);
    if (options.run.empty())
        throw VerbError(kExitUsage, "which run? NAME is missing", "rankscope whatif NAME --change CHANGE");
    if (options.changes.empty())
        throw VerbError(kExitUsage, "no change is given",
                        "rankscope whatif NAME --change balance; --list shows all changes");
    try {
        return predict(options, console);
    } catch (const edits::EditError& error) {
        throw VerbError(kExitUsage, error.what(), error.hint());
    }
}

}  // namespace

void addWhatIfVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<WhatIfVerbOptions>();
    auto* verb =
        app.add_subcommand("whatif", "How long a step would take after a change, by a replay of the recorded steps");
    verb->group(kChangeGroup);
    verb->add_option("NAME", options->run, "Run name, run directory or .db file");
    verb->add_option("--change", options->changes,
                     "What changes, as NAME:key=value,key=value; may be given several times, made in that order")
        ->type_name("CHANGE")
        ->allow_extra_args(false);
    verb->add_flag("--list", options->list,
                   "The changes that run NAME can be asked for, with their syntax; without NAME all there are");
    addFormatOption(*verb, options->format, {"text", "json"}, "text or json");
    addOutputOption(*verb, options->output, "File for the result");
    addLinkOptions(*verb, options->links);
    setAction(*verb, invocation, [options, &invocation] { return act(*options, invocation.console); });
}

}  // namespace rankscope::cli
