// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/diagnose/diagnosis.h"

namespace rankscope::cli {
namespace {

std::string listOfAll() {
    std::string text;
    for (const diagnose::Diagnosis* entry : diagnose::catalogue())
        text +=
            fmt::format("{}  {}{}\n", entry->id, entry->title, entry->detect != nullptr ? "" : "  (not detected yet)");
    return text;
}

std::string allInFull() {
    std::string text;
    for (const diagnose::Diagnosis* entry : diagnose::catalogue())
        text += (text.empty() ? "" : "\n" + std::string(80, '-') + "\n\n") + diagnose::renderDiagnosis(*entry);
    return text;
}

int explain(const std::string& id, bool all, const Console& console) {
    if (all) {
        if (!id.empty())
            throw VerbError(kExitUsage, fmt::format("{} and --all are two questions", id), "ask one of them");
        console.result(allInFull());
        return kExitOk;
    }
    if (id.empty()) {
        console.result(listOfAll());
        console.next("rankscope explain RS301");
        return kExitOk;
    }
    const auto* entry = diagnose::findDiagnosis(id);
    if (!entry)
        throw VerbError(kExitInput, fmt::format("there is no diagnosis {}", id),
                        "`rankscope explain` lists all of them");
    console.result(diagnose::renderDiagnosis(*entry));
    console.next("rankscope analyze NAME");
    return kExitOk;
}

}  // namespace

void addExplainVerb(CLI::App& app, Invocation& invocation) {
    auto id = std::make_shared<std::string>();
    auto all = std::make_shared<bool>(false);
    auto* verb =
        app.add_subcommand("explain", "A diagnosis of the catalogue: definition, thresholds, false positives, fix");
    verb->add_option("ID", *id, "For example RS301; all are listed when left out");
    verb->add_flag("--all", *all, "The whole catalogue");
    setAction(*verb, invocation, [id, all, &invocation] { return explain(*id, *all, invocation.console); });
}

}  // namespace rankscope::cli
