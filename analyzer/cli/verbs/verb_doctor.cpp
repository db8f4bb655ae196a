// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/doctor/machine_check.h"
#include "analyzer/cli/doctor/privacy.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/text/terminal_text.h"

namespace rankscope::cli {
namespace {

std::string asText(const std::vector<MachineCheck>& checks, bool color) {
    const text::Painter paint(color);
    std::string text;
    for (const auto& check : checks) {
        const std::string mark = check.ok ? paint(text::Shade::green, "ok ") : paint(text::Shade::yellow, "no ");
        text += fmt::format("{} {:<16} {}\n", mark, check.name, check.found);
        if (!check.cost.empty()) text += fmt::format("{:21}costs: {}\n", "", check.cost);
    }
    return text;
}

std::string asJson(const std::vector<MachineCheck>& checks) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& check : checks)
        list.push_back({{"name", check.name}, {"ok", check.ok}, {"found", check.found}, {"cost", check.cost}});
    const nlohmann::json report = {{"schema", "rankscope.doctor/1"}, {"checks", list}};
    return report.dump(2) + "\n";
}

}  // namespace

void addDoctorVerb(CLI::App& app, Invocation& invocation) {
    auto format = std::make_shared<std::string>("text");
    auto* verb = app.add_subcommand("doctor", "What this machine can record, what it cannot, and why");
    verb->group(kTryGroup);
    addFormatOption(*verb, *format, {"text", "json"}, "text or json");
    invocation.jobVerbs[verb] = JobUse::optional;  // whose arguments --privacy shows
    auto privacy = std::make_shared<bool>(false);
    verb->add_flag("--privacy", *privacy, "What a recording holds of the job's environment and command");
    setAction(*verb, invocation, [format, privacy, &invocation] {
        if (invocation.hasJobMark && !*privacy)
            throw VerbError(kExitUsage, "doctor takes a command behind -- with --privacy only",
                            "`rankscope run -o NAME -- COMMAND` runs one");
        if (*privacy) {
            invocation.console.result(privacyText(invocation.job));
            return static_cast<int>(kExitOk);
        }
        const auto checks = checkMachine(findInstallLayout());
        const Console& console = invocation.console;
        console.result(*format == "json" ? asJson(checks) : asText(checks, console.colorOnStdout()));
        const bool hasDevices =
            std::ranges::any_of(checks, [](const MachineCheck& check) { return check.name == "devices" && check.ok; });
        console.next(hasDevices ? "rankscope run -o NAME -- torchrun …" : "rankscope demo");
        return static_cast<int>(kExitOk);
    });
}

}  // namespace rankscope::cli
