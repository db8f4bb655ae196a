// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/doctor/machine_check.h"
#include "analyzer/cli/verbs/verb.h"

namespace rankscope::cli {
namespace {

std::string asText(const std::vector<MachineCheck>& checks, bool color) {
    std::string text;
    for (const auto& check : checks) {
        const char* mark = check.ok ? "ok" : "no";
        const char* paint = !color ? "" : check.ok ? "\033[32m" : "\033[33m";
        text += fmt::format("{}{:<3}{} {:<16} {}\n", paint, mark, color ? "\033[0m" : "", check.name, check.found);
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
    verb->add_option("--format", *format, "text or json")
        ->check(CLI::IsMember({"text", "json"}))
        ->capture_default_str();
    verb->callback([format, &invocation] {
        invocation.action = [format, &invocation] {
            const auto checks = checkMachine(findInstallLayout());
            const Console& console = invocation.console;
            console.result(*format == "json" ? asJson(checks) : asText(checks, console.colorOnStdout()));
            const bool hasDevices = std::any_of(checks.begin(), checks.end(), [](const MachineCheck& check) {
                return check.name == "devices" && check.ok;
            });
            console.next(hasDevices ? "rankscope run -o NAME -- torchrun …"
                                    : "rankscope reference run fsdp-slow-rank -o demo-run");
            return static_cast<int>(kExitOk);
        };
    });
}

}  // namespace rankscope::cli
