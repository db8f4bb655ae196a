// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <memory>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/terminal_size.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/nearest_word.h"

namespace rankscope::cli {
namespace {

using diagnose::Diagnosis;
using diagnose::Family;

std::string familyTitle(Family family) {
    switch (family) {
        case Family::pipeline:
            return "Pipelines";
        case Family::communication:
            return "Communication";
        case Family::imbalance:
            return "Ranks that differ";
        case Family::host:
            return "The host, which feeds the device";
        case Family::hang:
            return "Jobs that hang or die";
    }
    return "Others";
}

std::string lineOf(const Diagnosis& entry) {
    return fmt::format("  {}  {}{}\n", entry.id, entry.title, entry.detect != nullptr ? "" : "  (not detected yet)");
}

std::string listOfAll() {
    std::string text;
    Family family{};
    for (const Diagnosis* entry : diagnose::catalogue()) {
        if (const Family next = diagnose::familyOf(entry->id); next != family) {
            text += (text.empty() ? "" : "\n") + familyTitle(next) + "\n";
            family = next;
        }
        text += lineOf(*entry);
    }
    return text;
}

std::string allInFull() {
    const size_t columns = columnsOfStdout();
    std::string text;
    for (const Diagnosis* entry : diagnose::catalogue())
        text += (text.empty() ? "" : "\n" + std::string(std::min<size_t>(columns, 80), '-') + "\n\n") +
                diagnose::renderDiagnosis(*entry, columns);
    return text;
}

std::string lowerCase(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

// The diagnosis of that id or title, else all whose title holds the words.
std::vector<const Diagnosis*> entriesNamed(const std::string& words) {
    if (const Diagnosis* entry = diagnose::findDiagnosis(words)) return {entry};
    std::vector<const Diagnosis*> found;
    for (const Diagnosis* entry : diagnose::catalogue()) {
        const std::string title = lowerCase(entry->title);
        if (title == lowerCase(words)) return {entry};
        if (title.find(lowerCase(words)) != std::string::npos) found.push_back(entry);
    }
    return found;
}

std::vector<std::string> idsAndTitleWords() {
    std::vector<std::string> known;
    for (const Diagnosis* entry : diagnose::catalogue()) {
        known.push_back(entry->id);
        std::string word;
        for (const char c : std::string(entry->title) + " ") {
            if (c != ' ') {
                word += c;
                continue;
            }
            if (word.size() > 3) known.push_back(lowerCase(word));  // shorter ones (a, of, the) name nothing
            word.clear();
        }
    }
    return known;
}

int explainOne(const std::string& words, const Console& console) {
    const std::vector<const Diagnosis*> entries = entriesNamed(words);
    if (entries.empty())
        throw VerbError(kExitInput, fmt::format("there is no diagnosis {}", words),
                        text::didYouMean(words, idsAndTitleWords()) + "`rankscope explain` lists all of them");
    if (entries.size() == 1) {
        console.result(diagnose::renderDiagnosis(*entries.front(), columnsOfStdout()));
        console.next("rankscope analyze NAME");
        return kExitOk;
    }
    std::string text = fmt::format("{} diagnoses have '{}' in their title\n", entries.size(), words);
    for (const Diagnosis* entry : entries) text += lineOf(*entry);
    console.result(text);
    console.next(fmt::format("rankscope explain {}", entries.front()->id));
    return kExitOk;
}

int explain(const std::vector<std::string>& words, bool all, const Console& console) {
    const std::string wanted = text::joined(words, " ");
    if (all) {
        if (!wanted.empty())
            throw VerbError(kExitUsage, fmt::format("{} and --all are two questions", wanted), "ask one of them");
        console.result(allInFull());
        return kExitOk;
    }
    if (!wanted.empty()) return explainOne(wanted, console);
    console.result(listOfAll());
    console.next("rankscope explain RS301");
    return kExitOk;
}

}  // namespace

void addExplainVerb(CLI::App& app, Invocation& invocation) {
    auto words = std::make_shared<std::vector<std::string>>();
    auto all = std::make_shared<bool>(false);
    auto* verb =
        app.add_subcommand("explain", "A diagnosis of the catalogue: definition, thresholds, false positives, fix");
    verb->group(kReportGroup);
    auto* id = verb->add_option("ID", *words, "For example RS301, or words of a title; all are listed when left out");
    invocation.knownWords[id] = [] {
        std::vector<std::string> ids;
        for (const Diagnosis* entry : diagnose::catalogue()) ids.push_back(entry->id);
        return ids;
    };
    verb->add_flag("--all", *all, "The whole catalogue");
    setAction(*verb, invocation, [words, all, &invocation] { return explain(*words, *all, invocation.console); });
}

}  // namespace rankscope::cli
