// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "analyzer/analyze.h"
#include "analyzer/cli/collect_step.h"
#include "analyzer/cli/errors.h"
#include "analyzer/cli/link_options.h"
#include "analyzer/cli/output_place.h"
#include "analyzer/report/output_file.h"
#include "analyzer/cli/run_input.h"
#include "analyzer/cli/verb.h"
#include "analyzer/replay/edits/edit.h"
#include "analyzer/replay/what_if.h"
#include "analyzer/report/what_if_text.h"

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

int predict(const WhatIfVerbOptions& options, const Console& console) {
    std::vector<std::unique_ptr<analyzer::Edit>> edits;
    try {
        for (const std::string& change : options.changes) edits.push_back(analyzer::parseEdit(change));
    } catch (const analyzer::EditError& error) {
        throw VerbError(kExitUsage, error.what(), error.hint());
    }
    const RunInput input = findRun(options.run);
    if (!options.output.empty()) checkOutput(options.output, {options.run});
    const analyzer::LinkSources links = linkSources(options.links);
    collectOnDemand(input, console);
    const analyzer::Analysis analysis = analyzer::readAnalysis(input.database, 0, nullptr, links);
    if (!analysis.replay.available())
        throw VerbError(kExitInput, options.run + ": this run cannot be replayed: " + analysis.replay.unavailable, "record CUDA calls, kernels and NCCL of all ranks, over some steps");
    std::string text;
    try {
        const analyzer::WhatIf result = analyzer::whatIf(analysis, edits);
        text = options.format == "json" ? analyzer::renderWhatIfJson(result, options.changes) : analyzer::renderWhatIfText(result, options.changes);
    } catch (const analyzer::EditError& error) {
        throw VerbError(kExitUsage, error.what(), error.hint());
    }
    if (options.output.empty())
        console.result(text);
    else
        analyzer::writeOutputFile(text, options.output);
    console.next("rankscope whatif --list");
    return kExitOk;
}

int act(const WhatIfVerbOptions& options, const Console& console) {
    if (options.list) {
        console.result(analyzer::listEdits());
        console.next("rankscope whatif NAME --change balance");
        return kExitOk;
    }
    if (options.run.empty()) throw VerbError(kExitUsage, "which run? NAME is missing", "rankscope whatif NAME --change CHANGE");
    if (options.changes.empty()) throw VerbError(kExitUsage, "no change is given", "rankscope whatif NAME --change balance; --list shows all changes");
    return predict(options, console);
}

}  // namespace

void addWhatIfVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<WhatIfVerbOptions>();
    auto* verb = app.add_subcommand("whatif", "How long a step would take after a change, by a replay of the recorded steps");
    verb->add_option("NAME", options->run, "Run name, run directory or .db file");
    verb->add_option("--change", options->changes, "What changes, as NAME:key=value,key=value; may be given several times, made in that order")->type_name("CHANGE")->allow_extra_args(false);
    verb->add_flag("--list", options->list, "All changes and their syntax");
    verb->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
    verb->add_option("-o,--output", options->output, "File for the result; stdout when left out")->type_name("FILE");
    addLinkOptions(*verb, options->links);
    verb->callback([options, &invocation] {
        invocation.action = [options, &invocation] { return act(*options, invocation.console); };
    });
}

}  // namespace rankscope::cli
