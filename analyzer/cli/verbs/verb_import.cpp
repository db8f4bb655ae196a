// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/install_layout.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/console/progress.h"
#include "analyzer/cli/job/live_processes.h"
#include "analyzer/cli/job/run_directory.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "collector/importers/import.h"
#include "collector/importers/import_error.h"

namespace rankscope::cli {

namespace fs = std::filesystem;

namespace {

struct ImportVerbOptions {
    std::vector<std::string> files;
    std::string output;
    std::string links;
    std::string mapping;
    bool allOperations = false;
    bool force = false;
    bool share = false;
};

bool canBeTrace(const fs::directory_entry& entry) {
    if (!entry.is_regular_file()) return false;
    const std::string last = entry.path().extension().string();  // ".gz" of ".json.gz"
    const auto endings = collector::importEndings();
    return (!last.empty() &&
            std::ranges::any_of(endings, [&](std::string_view ending) { return ending.ends_with(last); })) ||
           collector::isImportableByContent(entry.path());
}

// Those in the folder itself, or else in the folders below it: hosts may have left one each.
std::vector<fs::path> tracesIn(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder))
        if (canBeTrace(entry)) files.push_back(entry.path());
    if (files.empty())
        for (const auto& entry :
             fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied))
            if (canBeTrace(entry)) files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

// A folder stands for the files in it, as profilers leave one per rank.
std::vector<fs::path> expandFolders(const std::vector<std::string>& given) {
    std::vector<fs::path> files;
    for (const auto& name : given) {
        if (!fs::exists(name)) throw VerbError(kExitInput, fmt::format("there is no file {}", name));
        if (!fs::is_directory(name) && !fs::is_regular_file(name))
            throw VerbError(kExitInput, fmt::format("{} is neither a file nor a folder", name),
                            "a pipe or a device cannot be imported: write it to a file first");
        if (!fs::is_directory(name)) {
            files.emplace_back(name);
            continue;
        }
        const std::vector<fs::path> found = tracesIn(name);
        if (found.empty())
            throw VerbError(kExitInput, fmt::format("the folder {} holds no {} file, and no dump of a flight recorder",
                                                    name, text::joined(collector::importEndings(), " or ")));
        files.insert(files.end(), found.begin(), found.end());
    }
    return files;
}

void refuseToOverwrite(const ImportVerbOptions& options) {
    const fs::path output = options.output;
    if (isRunDirectory(output))
        throw VerbError(kExitInput, fmt::format("{} holds a recorded run", options.output),
                        "choose another name with -o");
    std::error_code ignored;
    if (output.empty()) throw VerbError(kExitUsage, "-o: the name is empty");
    if (fs::exists(output, ignored) && !fs::is_directory(output, ignored))
        throw VerbError(kExitInput, fmt::format("{} exists and is not a folder", options.output),
                        "choose another name with -o");
    removeLeftovers(output / "trace.db");
    if (!fs::exists(output / "trace.db", ignored) && fs::is_directory(output, ignored) &&
        !fs::is_empty(output, ignored))
        throw VerbError(kExitInput, fmt::format("{} exists, is not empty and is not a run", options.output),
                        "choose another name with -o");
    if (!options.force && fs::exists(output / "trace.db"))
        throw VerbError(kExitInput, fmt::format("{} holds an earlier import", options.output),
                        "add --force to replace it, or choose another name with -o");
}

// A mapping is a file, or one of those that come with the product by its name.
fs::path findMapping(const std::string& told) {
    if (told.empty() || fs::is_regular_file(told)) return told;
    const fs::path folder = findInstallLayout().mappings;
    const fs::path known = folder / (told + ".json");
    if (told.find('/') == std::string::npos && fs::is_regular_file(known)) return known;
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) names.push_back(entry.path().stem().string());
    std::ranges::sort(names);
    throw VerbError(kExitInput, fmt::format("there is no mapping {}", told),
                    names.empty() ? "name a file; docs/mappings.md says what stands in one"
                                  : fmt::format("name a file, or {}", text::joined(names, " or ")));
}

int import(const ImportVerbOptions& options, const Console& console) {
    const auto files = expandFolders(options.files);
    refuseToOverwrite(options);
    collector::ImportOptions settings;
    settings.allOperations = options.allOperations;
    settings.shared = options.share;
    settings.mapping = findMapping(options.mapping);
    settings.links = options.links.empty() ? linksOfEnvironment() : options.links;
    Progress progress(console, "importing");
    settings.progress = [&progress](const fs::path& file, size_t done, size_t of) {
        progress.at(fmt::format("read {} of {}: {}", done, of, file.filename().string()));
    };
    collector::ImportResult result;
    try {
        result = collector::importRun(files, options.output, settings);
    } catch (const collector::ImportError& error) {
        throw VerbError(kExitInput, error.problem(), error.hint());
    }
    progress.end();
    console.note(fmt::format(
        "{}: {} from {} ({}{})", options.output, text::countedText(result.ranks.size(), "rank"), result.source,
        result.isRecorder ? text::countedText(result.events, "call")
                          : fmt::format("{} events, {} kernels", result.events, result.kernels),
        result.losses ? fmt::format(", {} loss{}", result.losses, result.losses == 1 ? "" : "es") : ""));
    console.stage(fmt::format("imported {}", text::countedText(files.size(), "file")));
    tellContents(fs::path(options.output) / "trace.db", console);
    console.next(fmt::format("rankscope analyze {}", text::shellWord(options.output)));
    return kExitOk;
}

}  // namespace

void addImportVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<ImportVerbOptions>();
    auto* verb =
        app.add_subcommand("import", "Make a run from other profilers' traces; the format is found by content");
    verb->group(kRecordGroup);
    verb->add_option("FILES", options->files, "Trace files, of one rank or several, or folders of them")->required();
    verb->add_option("-o,--output", options->output, "Run directory to make")->type_name("NAME")->required();
    verb->add_option("--map", options->mapping,
                     "How FILES of no known format are read: a mapping (docs/mappings.md), or the name of one that "
                     "comes with the product (jax-gpu, primus-pipeline, straggler-analysis)")
        ->type_name("MAPPING");
    verb->add_flag(
        "--all-operations", options->allOperations,
        "Keep every CPU operator and Python function of a trace (else those that tell what the host did while "
        "the device stood idle), its events of memory as counters, and calls of the operating system");
    addLinksOption(*verb, options->links);
    addShareOption(*verb, options->share);
    verb->add_flag("--force", options->force, "Replace an earlier import of that name");
    setAction(*verb, invocation, [options, &invocation] { return import(*options, invocation.console); });
}

}  // namespace rankscope::cli
