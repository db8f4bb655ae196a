// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/verbs/verb.h"
#include "collector/store/error.h"

namespace {

using namespace rankscope::cli;

// Everything behind the first `--` is the job's command, untouched.
std::vector<std::string> splitOffJob(int argc, char** argv, Invocation& invocation) {
    std::vector<std::string> words(argv + 1, argv + argc);
    const auto mark = std::ranges::find(words, "--");
    if (mark != words.end()) {
        invocation.hasJobMark = true;
        invocation.job.assign(mark + 1, words.end());
        words.erase(mark, words.end());
    }
    std::ranges::reverse(words);  // the order in which CLI11 takes a vector
    return words;
}

// A file over the limit (ulimit -f) is an error of the write that is told, not the end. A handler and not SIG_IGN: what
// is executed (the job) gets the default back.
void outliveFileSizeLimit() {
    struct sigaction present {};
    if (sigaction(SIGXFSZ, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) return;
    present.sa_handler = [](int) {};
    sigaction(SIGXFSZ, &present, nullptr);
}

// Damerau-Levenshtein distance (neighbours exchanged count once).
size_t distance(const std::string& a, const std::string& b) {
    std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i)
        for (size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                rows[i][j] = i + j;
                continue;
            }
            rows[i][j] =
                std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    return rows[a.size()][b.size()];
}

// The known word that differs least from `word`; empty where none is near enough to have been meant: letters left out,
// put in, changed or exchanged, one in three at most.
std::string nearestWord(const std::string& word, const std::vector<std::string>& known) {
    constexpr size_t kLongestTypo = 64;  // a longer word is no typo, and the table would be large
    if (word.size() > kLongestTypo) return {};
    std::string nearest;
    size_t best = std::max<size_t>(1, word.size() / 3) + 1;
    for (const std::string& candidate : known)
        if (const size_t apart = distance(word, candidate); apart < best) {
            best = apart;
            nearest = candidate;
        }
    return nearest;
}

std::string didYouMean(const std::string& word, const std::vector<std::string>& known) {
    const std::string near = nearestWord(word, known);
    return near.empty() ? std::string() : fmt::format("did you mean {}? ", near);
}

// Returns what CLI11 lists behind the colon of "The following arguments were not expected: json --fromat", last word
// first.
std::vector<std::string> unexpectedWords(const std::string& message) {
    const size_t colon = message.find(": ");
    if (colon == std::string::npos) return {};
    std::istringstream list(message.substr(colon + 2));
    std::vector<std::string> words{std::istream_iterator<std::string>(list), {}};
    std::ranges::reverse(words);
    return words;
}

std::vector<std::string> verbNames(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(verb->get_name());
    return names;
}

// The first word that is no option of the program as a whole; where it names no verb, CLI11 would only say that one is
// missing.
std::string verbWord(const std::vector<std::string>& reversed) {
    for (auto word = reversed.rbegin(); word != reversed.rend(); ++word) {
        if (*word == "--color" && word + 1 != reversed.rend())
            ++word;
        else if (!word->starts_with('-'))
            return *word;
    }
    return {};
}

void tellUsage(const CLI::App& app, const CLI::ParseError& error, const Invocation& invocation) {
    const auto chosen = app.get_subcommands();
    const CLI::App* verb = chosen.empty() ? nullptr : chosen.front();
    const std::string help =
        fmt::format("`rankscope{} --help` tells how it is used", verb ? " " + verb->get_name() : "");
    std::vector<std::string> extras = app.remaining(true);
    const bool unexpected = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    if (unexpected && extras.empty()) extras = unexpectedWords(error.what());
    // Without a verb CLI11 complains of that first, whatever else is wrong.
    if (extras.empty() || !(unexpected || verb == nullptr)) return invocation.console.error(error.what(), help);
    const std::string& first = extras.front();
    if (verb != nullptr && (verb->get_name() == "run" || verb->get_name() == "tune") && !invocation.hasJobMark)
        return invocation.console.error(
            fmt::format("{}: {} does not take it", first, verb->get_name()),
            fmt::format("write -- before the command: rankscope {} -o NAME -- COMMAND...", verb->get_name()));
    std::vector<std::string> options;
    for (const CLI::App* level : {verb, &app})
        if (level != nullptr)
            for (const CLI::Option* option : level->get_options())
                for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    const std::string option = first.substr(0, first.find('='));
    const std::string what = !first.starts_with('-') ? "one argument too many" : "no such option";
    invocation.console.error(fmt::format("{}: {}", option, what),
                             (first.starts_with("--") ? didYouMean(option, options) : "") + help);
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
        console.error(fmt::format("{}: {}", error.path1().string(), error.code().message()),
                      "choose a place that can be read and written");
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
    app.add_option("--color", color, "auto, always or never; NO_COLOR is honoured")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->type_name("WHEN");
    app.add_flag("-q,--quiet", quiet, "Errors and warnings only");
    app.add_flag("-v,--verbose", verbose, "What was read, what is missing, how long it took; on stderr");

    for (const auto addVerb :
         {addRunVerb, addTriggerVerb, addCollectVerb, addImportVerb, addAnalyzeVerb, addRecommendVerb, addExplainVerb,
          addStatsVerb, addExportVerb, addWhatIfVerb, addCompareVerb, addBaselineVerb, addTrendVerb, addViewVerb,
          addTopVerb, addDoctorVerb, addTuneVerb, addReferenceVerb})
        addVerb(app, invocation);

    try {
        std::vector<std::string> words = splitOffJob(argc, argv, invocation);
        if (const std::string word = verbWord(words); !word.empty() && std::ranges::count(verbNames(app), word) == 0) {
            if (word == "help") throw CLI::CallForHelp();
            if (word == "version") throw CLI::CallForVersion("rankscope " RANKSCOPE_VERSION, 0);
            invocation.console.error(fmt::format("{}: no such verb", word),
                                     didYouMean(word, verbNames(app)) + "`rankscope --help` lists them all");
            return kExitUsage;
        }
        app.parse(words);
        if (invocation.hasJobMark && !app.got_subcommand("run") && !app.got_subcommand("tune"))
            throw CLI::ArgumentMismatch("only `run` and `tune` take a command behind --");
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0)
            return app.exit(error) == 0 ? kExitOk : kExitUsage;  // help and version, on stdout
        tellUsage(app, error, invocation);
        return kExitUsage;
    }
    invocation.console.setColor(color == "always"  ? ColorMode::always
                                : color == "never" ? ColorMode::never
                                                   : ColorMode::automatic);
    invocation.console.setVerbosity(quiet > 0 ? -1 : verbose);
    return act(invocation);
}
