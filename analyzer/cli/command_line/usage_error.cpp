// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/command_line/usage_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <regex>
#include <sstream>

#include "analyzer/text/lists.h"
#include "analyzer/text/nearest_word.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {
namespace {

// What CLI11 lists behind the colon of "The following arguments were not expected: json --fromat", last word first.
std::vector<std::string> unexpectedWords(const std::string& message) {
    const size_t colon = message.find(": ");
    if (colon == std::string::npos) return {};
    std::istringstream list(message.substr(colon + 2));
    std::vector<std::string> words{std::istream_iterator<std::string>(list), {}};
    std::ranges::reverse(words);
    return words;
}

std::vector<std::string> longOptions(const CLI::App* verb) {
    std::vector<std::string> options;
    for (; verb != nullptr; verb = verb->get_parent())
        for (const CLI::Option* option : verb->get_options())
            for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    return options;
}

std::string helpOf(const CLI::App& verb) {
    std::string path;
    for (const CLI::App* level = &verb; level != nullptr; level = level->get_parent())
        path = level->get_name() + (path.empty() ? "" : " ") + path;
    return fmt::format("`{} --help` tells how it is used", path);
}

// The command line with `--` in front of the job's first word.
std::string withMark(const std::vector<std::string>& words, const std::string& first) {
    std::string line = "rankscope";
    bool isMarked = false;
    for (const std::string& word : words) {
        if (!isMarked && word == first) {
            line += " --";
            isMarked = true;
        }
        line += " " + text::shellWord(word);
    }
    return line;
}

// CLI11 says of a value that none of a list is: "--format: jsno not in {text,json}".
UsageError explainValue(const std::string& message, const std::string& help) {
    static const std::regex kForm("([^:]+): ([^]*) not in \\{([^}]*)\\}");
    std::smatch parts;
    if (!std::regex_match(message, parts, kForm)) return {message, help};
    std::istringstream list(parts[3]);
    std::vector<std::string> choices;
    for (std::string word; std::getline(list, word, ',');) choices.push_back(word);
    return {fmt::format("{}: '{}' is none of {}", parts[1].str(), parts[2].str(), text::joined(choices)),
            text::didYouMean(parts[2].str(), choices) + help};
}

}  // namespace

std::string verbWord(const std::vector<std::string>& words) {
    for (auto word = words.begin(); word != words.end(); ++word) {
        if (*word == "--color" && word + 1 != words.end())
            ++word;
        else if (!word->starts_with('-'))
            return *word;
    }
    return {};
}

std::vector<std::string> verbNames(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); }))
        names.push_back(verb->get_name());
    return names;
}

const CLI::App& chosenVerb(const CLI::App& app) {
    const auto chosen = app.get_subcommands();
    return chosen.empty() ? app : chosenVerb(*chosen.front());
}

UsageError explainUsage(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words,
                        bool takesJob, bool hasMark) {
    const CLI::App& verb = chosenVerb(app);
    const std::string help = helpOf(verb);
    std::vector<std::string> extras = app.remaining(true);
    const bool unexpected = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    if (unexpected && extras.empty()) extras = unexpectedWords(error.what());
    const std::vector<std::string> inner = verbNames(verb);
    if (!inner.empty() && extras.empty())
        return {fmt::format("{} takes a verb: {}", &verb == &app ? "rankscope" : verb.get_name(), text::joined(inner)),
                help};
    // Where a verb is missing CLI11 complains of that first, whatever else is wrong.
    if (extras.empty() || !(unexpected || !inner.empty())) return explainValue(error.what(), help);
    const std::string& first = extras.front();
    if (!first.starts_with('-') && takesJob && !hasMark)
        return {fmt::format("{}: `--` is missing in front of the job's command", first), withMark(words, first)};
    if (!first.starts_with('-') && !inner.empty())
        return {fmt::format("{}: no such verb of {}", first, verb.get_name()),
                text::didYouMean(first, inner) + "there are " + text::joined(inner)};
    const std::string option = first.substr(0, first.find('='));
    if (!option.starts_with('-')) return {option + ": one argument too many", help};
    return {option + ": no such option",
            (option.starts_with("--") ? text::didYouMean(option, longOptions(&verb)) : "") + help};
}

}  // namespace rankscope::cli
