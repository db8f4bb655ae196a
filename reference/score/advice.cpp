// SPDX-License-Identifier: Apache-2.0
#include "reference/score/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace rankscope::score {
namespace {

using AdviceJson = nlohmann::json;

constexpr const char* kPrograms[] = {"ddp", "fsdp", "job", "deepspeed", "accelerate"};

/// A setting's value in words, as a command line has it.
std::string wordOf(const AdviceJson& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
}

/// A setting's value as an option takes it: a number where it is one, or a share of what is set now ("1/2 of today's").
AdviceJson valueOf(const std::string& text) {
    const AdviceJson parsed = AdviceJson::parse(text, nullptr, false);
    if (parsed.is_number()) return parsed;
    const size_t slash = text.find('/'), end = text.find(" of today's");
    if (slash == std::string::npos || end == std::string::npos || slash > end) return text;
    const AdviceJson over = AdviceJson::parse(text.substr(0, slash), nullptr, false),
                     under = AdviceJson::parse(text.substr(slash + 1, end - slash - 1), nullptr, false);
    const bool isShare = over.is_number_unsigned() && under.is_number_unsigned() && under.get<uint64_t>() > 0;
    return isShare ? AdviceJson(over.get<double>() / under.get<double>()) : AdviceJson(text);
}

AdviceJson filledIn(const AdviceJson& pattern, const std::string& value, const std::string& origin) {
    if (pattern.is_object()) {
        AdviceJson filled = AdviceJson::object();
        for (const auto& [key, entry] : pattern.items()) filled[key] = filledIn(entry, value, origin);
        return filled;
    }
    if (!pattern.is_string() || !pattern.get<std::string>().starts_with("$")) return pattern;
    const std::string text = pattern.get<std::string>();
    if (text == "$") return valueOf(value);
    const AdviceJson advised = valueOf(value);
    const AdviceJson factor = text.starts_with("$*") ? valueOf(text.substr(2)) : AdviceJson();
    if (!factor.is_number() || !advised.is_number())
        throw ScenarioFileError(fmt::format(
            "{}: 'follow' has '{}' for the advised '{}': write $, or $*2048 for a number", origin, text, value));
    const double product = advised.get<double>() * factor.get<double>();
    if (product == std::round(product)) return static_cast<int64_t>(product);
    return product;
}

/// One setting made on the scenario. False: there is no way to make it.
bool follow(const AdviceJson& setting, const AdviceJson& ways, AdviceJson& document, Scenario& scenario) {
    bool made = false;
    if (!setting.at("tuner_csv").empty()) return false;  // a plugin's table: no setting of the job
    for (const char* program : kPrograms)
        for (const auto& [name, value] : setting.at(program).items()) {
            const auto way = ways.find(fmt::format("{}.{}", program, name));
            if (way == ways.end()) continue;
            document.merge_patch(filledIn(*way, wordOf(value), scenario.origin));
            made = true;
        }
    for (const auto& [name, value] : setting.at("env").items()) {
        scenario.environment.emplace_back(name,
                                          value.is_null() ? std::nullopt : std::optional(value.get<std::string>()));
        // What the job's own script of the launch sets would stand above it.
        if (document.contains("framework") && document["framework"].contains("environment"))
            document["framework"]["environment"].erase(name);
        made = true;
    }
    return made;
}

Promise promiseOf(const AdviceJson& gain) {
    return {gain.at("predicted_saving_ns").get<double>(), gain.at("interval_ns").at(0).get<double>(),
            gain.at("interval_ns").at(1).get<double>()};
}

struct Followed {
    std::vector<const AdviceJson*> settings;
    Scenario scenario;
};

/// All of these that can be followed, made one on top of the other.
Followed followAll(const std::vector<const AdviceJson*>& settings, const Scenario& scenario) {
    AdviceJson document = AdviceJson::parse(scenario.json);
    const AdviceJson ways = document.value("follow", AdviceJson::object());
    for (const char* key : {"fixed", "expect", "allow"}) document.erase(key);
    Followed result;
    result.scenario = scenario;
    for (const AdviceJson* setting : settings)
        if (follow(*setting, ways, document, result.scenario)) result.settings.push_back(setting);
    const Scenario changed = parseScenario(document.dump(1), scenario.origin);
    result.scenario.json = changed.json;
    result.scenario.tokens = changed.tokens;
    result.scenario.hasFixed = false;
    return result;
}

Advice adviceOf(const AdviceJson& document, const Scenario& scenario) {
    std::vector<const AdviceJson*> recommended, trials;
    for (const AdviceJson& one : document.at("recommendations"))
        if (one.at("kind") == "setting" && !one.at("predicted_saving_ns").is_null())
            (one.at("certainty") == "recommended" ? recommended : trials).push_back(&one);

    Advice advice;
    Followed followed = followAll(recommended, scenario);
    for (const AdviceJson* setting : recommended)
        if (std::ranges::find(followed.settings, setting) == followed.settings.end())
            advice.notFollowed.push_back(setting->at("area").get<std::string>());
    advice.isRecommended = !followed.settings.empty();
    const bool together =
        followed.settings.size() > 1 && advice.notFollowed.empty() && !document.at("together").is_null();
    if (!together) {
        // What some of several gain together nobody told.
        for (const AdviceJson* setting : advice.isRecommended ? followed.settings : trials) {
            followed = followAll({setting}, scenario);
            if (!followed.settings.empty()) break;
        }
        if (followed.settings.empty()) return advice;
    }
    const AdviceJson& first = *followed.settings.front();
    const bool byItself = !first.at("alone").is_null();
    advice.promise = promiseOf(together ? document.at("together") : byItself ? first.at("alone") : first);
    for (const AdviceJson* setting : followed.settings) {
        advice.followed.push_back(setting->at("area").get<std::string>());
        for (const auto& id : setting->at("findings").get<std::vector<std::string>>())
            if (std::ranges::find(advice.findings, id) == advice.findings.end()) advice.findings.push_back(id);
    }
    advice.scenario = std::move(followed.scenario);
    return advice;
}

}  // namespace

Advice readAdvice(const std::filesystem::path& file, const Scenario& scenario) {
    try {
        std::ifstream stream(file);
        return adviceOf(AdviceJson::parse(stream), scenario);
    } catch (const AdviceJson::exception& error) {
        throw ScenarioFileError(fmt::format("no advice of schema rankscope.recommend/1: {}", error.what()));
    }
}

}  // namespace rankscope::score
