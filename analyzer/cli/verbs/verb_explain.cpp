// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/diagnose/catalogue.h"

namespace rankscope::cli {
namespace {

std::string listOfAll() {
    std::string text;
    for (const auto& entry : diagnose::catalogue())
        text += fmt::format("{}  {}{}\n", entry.id, entry.title, entry.detected ? "" : "  (not detected yet)");
    return text;
}

int explain(const std::string& id, const Console& console) {
    if (id.empty()) {
        console.result(listOfAll());
        console.next("rankscope explain RS301");
        return kExitOk;
    }
    const auto* entry = diagnose::findCatalogueEntry(id);
    if (!entry)
        throw VerbError(kExitInput, fmt::format("there is no diagnosis {}", id),
                        "`rankscope explain` lists all of them");
    console.result(diagnose::renderCatalogueEntry(*entry));
    console.next("rankscope analyze NAME");
    return kExitOk;
}

}  // namespace

void addExplainVerb(CLI::App& app, Invocation& invocation) {
    auto id = std::make_shared<std::string>();
    auto* verb =
        app.add_subcommand("explain", "A diagnosis of the catalogue: definition, thresholds, false positives, fix");
    verb->add_option("ID", *id, "For example RS301; all are listed when left out");
    verb->callback(
        [id, &invocation] { invocation.action = [id, &invocation] { return explain(*id, invocation.console); }; });
}

}  // namespace rankscope::cli
