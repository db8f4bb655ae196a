// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>
#include <system_error>
#include <thread>

#include "analyzer/cli/command_line/help.h"
#include "analyzer/cli/command_line/usage_error.h"
#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/install_layout.h"
#include "analyzer/cli/console/terminal_size.h"
#include "analyzer/cli/console/user_config.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/text/nearest_word.h"
#include "collector/store/error.h"
#include "collector/team/team.h"

namespace {

using namespace rankscope::cli;

// So long a process that only helps lets the first one of its mpirun say what is wrong with the words they were both
// given: on a busy machine it may come later. mpirun ends who still waits.
constexpr std::chrono::seconds kTimeToSpeak{3};

// Everything behind the first `--` is the job's command, untouched.
std::vector<std::string> splitOffJob(std::vector<std::string> words, Invocation& invocation) {
    const auto mark = std::ranges::find(words, "--");
    if (mark != words.end()) {
        invocation.hasJobMark = true;
        invocation.job.assign(mark + 1, words.end());
        words.erase(mark, words.end());
    }
    return words;
}

// `help VERB` is `VERB --help`, and `version` is `--version`: words that other programs know.
std::vector<std::string> withoutHelpVerbs(std::vector<std::string> words) {
    const auto word = std::ranges::find(words, verbWord(words));
    if (word == words.end()) return words;
    if (*word == "version") {
        *word = "--version";
    } else if (*word == "help") {
        words.erase(word);
        words.push_back("--help");
    }
    return words;
}

// Also one that --help does not show.
bool hasVerb(const CLI::App& app, const std::string& name) {
    return !app.get_subcommands([&](const CLI::App* verb) { return verb->get_name() == name; }).empty();
}

ColorMode colorMode(const std::string& option) {
    const char* noColor = std::getenv("NO_COLOR");
    // Nearest first: the command line, the environment, the person's own file.
    const bool isOpen = option.empty() && (noColor == nullptr || *noColor == '\0');
    const std::string& color = isOpen ? userConfig().color : option;
    return color == "always" ? ColorMode::always : color == "never" ? ColorMode::never : ColorMode::automatic;
}

// A file over the limit (ulimit -f) is an error of the write that is told, not the end. A handler and not SIG_IGN: what
// is executed (the job) gets the default back.
void outliveFileSizeLimit() {
    struct sigaction present {};
    if (sigaction(SIGXFSZ, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) return;
    present.sa_handler = [](int) {};
    sigaction(SIGXFSZ, &present, nullptr);
}

// A job that waited for its machines for a day does not fail for a colour.
void checkUserConfig(bool startsJob, const Console& console) {
    const UserConfig& config = userConfig();
    if (config.complaint.empty()) return;
    if (!startsJob) throw VerbError(kExitInput, config.complaint, config.hint);
    console.warning(fmt::format("{}: nothing of that file counts; {}", config.complaint, config.hint));
}

struct Outcome {
    int status = kExitOk;
    std::string error, hint;  // none: it went well
};

Outcome actOrFail(const std::function<int()>& action) {
    try {
        return {action(), {}, {}};
    } catch (const VerbError& error) {
        return {error.code(), error.what(), error.hint()};
    } catch (const rankscope::team::MemberFailed& error) {
        return {error.status(), error.what(), error.hint()};
    } catch (const rankscope::store::Error& error) {
        return {kExitInput, fmt::format("{}: {}", error.file(), error.cause()), error.hint()};
    } catch (const std::filesystem::filesystem_error& error) {
        return {kExitInput, fmt::format("{}: {}", error.path1().string(), error.code().message()),
                "choose a place that can be read and written"};
    } catch (const std::bad_alloc&) {
        return {kExitInternal, "memory ran out", "allow more of it (ulimit -v, or the limit of the container)"};
    } catch (const std::system_error& error) {
        if (error.code() != std::errc::resource_unavailable_try_again)
            return {kExitInternal, fmt::format("internal error: {}", error.what()), {}};
        return {kExitInternal, "no further thread or process could be started",
                "allow more processes and memory (ulimit -u, ulimit -v, or the limits of the container)"};
    } catch (const std::exception& error) {
        return {kExitInternal, fmt::format("internal error: {}", error.what()), {}};
    }
}

int tell(const Outcome& outcome, const Console& console) {
    if (!outcome.error.empty()) console.error(outcome.error, outcome.hint);
    return outcome.status;
}

// What a process does that mpirun started beside the first one: all that goes wrong goes to that one, which ends it.
int actInTeam(Invocation& invocation, const std::function<int()>& action) {
    rankscope::team::Team& team = *invocation.team;
    try {
        if (team.isFirst()) {
            const int status = tell(actOrFail(action), invocation.console);
            team.dismiss(status);
            return status;
        }
        const Outcome outcome = actOrFail(action);
        return team.fail(outcome.error, outcome.hint, outcome.status);
    } catch (const rankscope::team::Dismissed& dismissed) {
        team.leave();
        return dismissed.status;
    }
}

int act(Invocation& invocation, const std::string& color, bool startsJob, bool sharesWork) {
    if (sharesWork) {
        // Before anything that may fail here alone: the others wait for this process.
        try {
            const Outcome joined = actOrFail([&invocation] {
                invocation.team =
                    rankscope::team::Team::join(findInstallLayout().prefix / "lib/rankscope", RANKSCOPE_VERSION);
                return 0;
            });
            if (joined.status != kExitOk) return tell(joined, invocation.console);
        } catch (const rankscope::team::Dismissed& dismissed) {  // of another version than the first
            return dismissed.status;
        }
        if (rankscope::team::Team::isLaunched()) invocation.console.passOn();
        if (invocation.team && !invocation.team->isFirst()) invocation.console.silence();
    }
    const auto action = [&] {
        invocation.console.setColor(colorMode(color));
        checkUserConfig(startsJob, invocation.console);
        return invocation.action();
    };
    return invocation.team ? actInTeam(invocation, action) : tell(actOrFail(action), invocation.console);
}

int runProgram(int argc, char** argv) {
    Invocation invocation;
    const auto takesJob = [&invocation](const CLI::App& verb) { return invocation.jobUse(verb) != JobUse::none; };
    const auto jobWords = [&invocation](const CLI::App& verb) -> std::string {
        const JobUse use = invocation.jobUse(verb);
        return use == JobUse::required ? "-- COMMAND..." : use == JobUse::optional ? "[-- COMMAND...]" : "";
    };
    CLI::App app("Finds out what holds the ranks of a distributed training job back, and what to change.", "rankscope");
    app.formatter(helpFormatter(columnsOfStdout(), jobWords));
    app.set_version_flag("--version", "rankscope " RANKSCOPE_VERSION);
    app.require_subcommand(1);
    app.fallthrough();
    app.footer(
        "`rankscope help VERB` tells a verb's options. Start with: rankscope demo\n"
        "or with a job of yours:                         rankscope run -o NAME -- COMMAND...");

    std::string color;  // empty: not told
    int quiet = 0, verbose = 0;
    app.add_option("--color", color, "auto, always or never; NO_COLOR is honoured")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->type_name("WHEN");
    app.add_flag("-q,--quiet", quiet, "Errors and warnings only");
    app.add_flag("-v,--verbose", verbose, "What was read, what is missing, how long it took; on stderr");

    for (const auto addVerb :
         {addRunVerb,       addTopVerb,     addTriggerVerb,   addCollectVerb, addImportVerb, addListVerb,
          addAnalyzeVerb,   addExplainVerb, addViewVerb,      addStatsVerb,   addExportVerb, addRecommendVerb,
          addWhatIfVerb,    addCompareVerb, addBaselineVerb,  addTrendVerb,   addTuneVerb,   addDemoVerb,
          addReferenceVerb, addDoctorVerb,  addCompletionVerb})
        addVerb(app, invocation);

    const std::vector<std::string> typed(argv + 1, argv + argc);
    // Help, and what is wrong with the words, is said once.
    if (rankscope::team::Team::helps() && sharesWork(verbWord(typed))) invocation.console.silence();
    try {
        std::vector<std::string> words = withoutHelpVerbs(splitOffJob(typed, invocation));
        if (const std::string word = verbWord(words); !word.empty() && !hasVerb(app, word)) {
            invocation.console.error(
                fmt::format("{}: no such verb", word),
                rankscope::text::didYouMean(word, verbNames(app)) + "`rankscope --help` lists them all");
            return kExitUsage;
        }
        std::ranges::reverse(words);  // the order in which CLI11 takes a vector
        app.parse(words);
        if (invocation.hasJobMark && !takesJob(chosenVerb(app)))
            throw CLI::ArgumentMismatch("only `run`, `tune` and `doctor --privacy` take a command behind --");
    } catch (const CLI::ParseError& error) {
        if (invocation.console.isSilent()) {
            if (error.get_exit_code() == 0) return kExitOk;
            // mpirun ends all at the first that fails, and the first process has the words for it.
            std::this_thread::sleep_for(kTimeToSpeak);
            return kExitUsage;
        }
        if (error.get_exit_code() == 0)
            return app.exit(error) == 0 ? kExitOk : kExitUsage;  // help and version, on stdout
        const auto [what, hint] = explainUsage(app, error, typed, takesJob(chosenVerb(app)), invocation.hasJobMark);
        invocation.console.error(what, hint);
        return kExitUsage;
    }
    invocation.console.setVerbosity(quiet > 0 ? -1 : verbose);
    return act(invocation, color, takesJob(chosenVerb(app)), sharesWork(chosenVerb(app).get_name()));
}

}  // namespace

int main(int argc, char** argv) {
    outliveFileSizeLimit();
    try {
        return runProgram(argc, argv);
    } catch (const std::exception& error) {  // memory that ends before, or while, an error is told
        std::fprintf(stderr, "rankscope: error: internal error: %s\n", error.what());
        return kExitInternal;
    }
}
