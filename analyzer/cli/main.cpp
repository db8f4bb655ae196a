// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "analyzer/cli/errors.h"
#include "analyzer/cli/verb.h"
#include "collector/store/error.h"

namespace {

using namespace rankscope::cli;

// Everything behind the first `--` is the job's command, untouched.
std::vector<std::string> splitOffJob(int argc, char** argv, Invocation& invocation) {
    std::vector<std::string> words(argv + 1, argv + argc);
    const auto mark = std::find(words.begin(), words.end(), "--");
    if (mark != words.end()) {
        invocation.hasJobMark = true;
        invocation.job.assign(mark + 1, words.end());
        words.erase(mark, words.end());
    }
    std::reverse(words.begin(), words.end());  // the order in which CLI11 takes a vector
    return words;
}

// A file over the limit (ulimit -f) is an error of the write that is told, not the end. A handler and not SIG_IGN: what is executed (the job) gets the default back.
void outliveFileSizeLimit() {
    struct sigaction present {};
    if (sigaction(SIGXFSZ, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) return;
    present.sa_handler = [](int) {};
    sigaction(SIGXFSZ, &present, nullptr);
}

int act(const Invocation& invocation) {
    const Console& console = invocation.console;
    try {
        return invocation.action();
    } catch (const VerbError& error) {
        console.error(error.what(), error.hint());
        return error.code();
    } catch (const rankscope::store::Error& error) {
        console.error(fmt::format("{}: {}", error.file(), error.cause()), error.hint());
        return kExitInput;
    } catch (const std::filesystem::filesystem_error& error) {
        console.error(fmt::format("{}: {}", error.path1().string(), error.code().message()), "choose a place that can be read and written");
        return kExitInput;
    } catch (const std::exception& error) {
        console.error(fmt::format("internal error: {}", error.what()));
        return kExitInternal;
    }
}

}  // namespace

int main(int argc, char** argv) {
    outliveFileSizeLimit();
    Invocation invocation;
    CLI::App app("Finds out what holds the ranks of a distributed training job back, and what to change.", "rankscope");
    app.set_version_flag("--version", "rankscope " RANKSCOPE_VERSION);
    app.require_subcommand(1);
    app.fallthrough();
    app.footer("`rankscope VERB --help` tells a verb's options. Start with: rankscope run -o NAME -- COMMAND...");

    std::string color = "auto";
    int quiet = 0, verbose = 0;
    app.add_option("--color", color, "auto, always or never; NO_COLOR is honoured")->check(CLI::IsMember({"auto", "always", "never"}))->type_name("WHEN");
    app.add_flag("-q,--quiet", quiet, "Errors and warnings only");
    app.add_flag("-v,--verbose", verbose, "More details on stderr");

    addRunVerb(app, invocation);
    addCollectVerb(app, invocation);
    addImportVerb(app, invocation);
    addAnalyzeVerb(app, invocation);
    addRecommendVerb(app, invocation);
    addExplainVerb(app, invocation);
    addExportVerb(app, invocation);
    addWhatIfVerb(app, invocation);
    addCompareVerb(app, invocation);
    addBaselineVerb(app, invocation);
    addViewVerb(app, invocation);
    addDoctorVerb(app, invocation);
    addTuneVerb(app, invocation);
    addReferenceVerb(app, invocation);

    try {
        app.parse(splitOffJob(argc, argv, invocation));
        if (invocation.hasJobMark && !app.got_subcommand("run") && !app.got_subcommand("tune"))
            throw CLI::ArgumentMismatch("only `run` and `tune` take a command behind --");
    } catch (const CLI::ParseError& error) {
        const int status = app.exit(error);  // prints help and version on stdout, complaints on stderr
        return status == 0 ? kExitOk : kExitUsage;
    }
    invocation.console.setColor(color == "always" ? ColorMode::always : color == "never" ? ColorMode::never : ColorMode::automatic);
    invocation.console.setVerbosity(quiet > 0 ? -1 : verbose);
    return act(invocation);
}
