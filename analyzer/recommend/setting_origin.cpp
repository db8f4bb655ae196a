// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/setting_origin.h"

#include <fmt/format.h>

namespace rankscope::recommend {

SettingOrigin originOf(const facts::TraceFacts& facts, const std::string& variable) {
    const std::string value = facts.text("env." + variable);
    if (const auto given = facts.meta.find("run_env." + variable); given != facts.meta.end() && given->second == value)
        return SettingOrigin::option;
    if (facts.text("start_env") != "recorded") return SettingOrigin::unknown;
    const auto there = facts.meta.find("start_env." + variable);
    return there != facts.meta.end() && there->second == value ? SettingOrigin::shell : SettingOrigin::job;
}

std::optional<std::string> givenBack(const facts::TraceFacts& facts, const std::string& variable,
                                     const std::optional<costs::NcclVersion>& nccl) {
    const SettingOrigin origin = originOf(facts, variable);
    if (origin == SettingOrigin::shell || origin == SettingOrigin::option || !nccl || !nccl->perFunctionSyntax())
        return std::nullopt;
    return "";
}

std::string originText(const facts::TraceFacts& facts, const std::string& variable,
                       const std::optional<std::string>& then) {
    const std::string setting = variable + "=" + facts.text("env." + variable);
    std::string reach = "take it out there, where a shell's unset does not reach";
    if (then) reach = "what the shell exports holds if that sets only what is not set yet; else change it there";
    if (then && then->empty()) reach += " (empty is as good as unset to NCCL from 2.24 on)";
    switch (originOf(facts, variable)) {
        case SettingOrigin::shell:
            return fmt::format("{} is in the environment of `rankscope run`", setting);
        case SettingOrigin::option:
            return fmt::format("{} was given with --env: change it there", setting);
        case SettingOrigin::job:
            return fmt::format(
                "{} was not in the environment of `rankscope run`: the job's script or its launcher's options set it; "
                "{}",
                setting, reach);
        case SettingOrigin::unknown:
            break;
    }
    return fmt::format("who set {} is not recorded; if it was the job's script or its launcher's options, {}", setting,
                       reach);
}

}  // namespace rankscope::recommend
