// SPDX-License-Identifier: Apache-2.0
#include "reference/score/generator.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

namespace rankscope::score {
namespace {

using nlohmann::json;

constexpr int kSeedsOfADraw = 100;  // more than a table asks for: two draws have no scenario in common

/// Numbers that depend on what is chosen and for whom, on nothing else.
class Dice {
  public:
    Dice(std::string_view what, int seed)
        : m_state(mixed(hashOf(what) + static_cast<uint64_t>(seed) * 0x9e3779b97f4a7c15u)) {}

    size_t below(size_t count, std::string_view purpose) const { return mixed(m_state ^ hashOf(purpose)) % count; }
    const json& of(const json& list, std::string_view purpose) const { return list.at(below(list.size(), purpose)); }

  private:
    static uint64_t mixed(uint64_t x) {  // splitmix64
        x += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return x ^ (x >> 31);
    }
    uint64_t m_state;
};

int numberOf(const json& document, const char* group, const char* key, int fallback) {
    return document.contains(group) ? document[group].value(key, fallback) : fallback;
}

/// What "$rank" and the like stand for in one job. Ranks are ordered as Megatron does: tp innermost, pp outermost.
/// "$rail_ends": who can be named behind a slow network link of "$rank": of two nodes the rank and its counterpart,
/// which share all its traffic, of more the rank.
std::map<std::string, json> placesIn(const json& job, const Dice& dice) {
    const int pp = numberOf(job, "parallel", "pp", 1);
    const int perStage = numberOf(job, "parallel", "dp", 8) * numberOf(job, "parallel", "tp", 1);
    const int nodes = numberOf(job, "cluster", "nodes", 2), perNode = numberOf(job, "cluster", "ranks_per_node", 4);
    const int rank = static_cast<int>(dice.below(static_cast<size_t>(pp * perStage), "rank"));
    const int node = static_cast<int>(dice.below(static_cast<size_t>(nodes), "node"));
    const int stage = static_cast<int>(dice.below(static_cast<size_t>(pp), "stage"));
    const auto range = [](int first, int count) {
        json list = json::array();
        for (int i = 0; i < count; ++i) list.push_back(first + i);
        return list;
    };
    json railEnds = json::array({rank});
    if (nodes == 2) railEnds = json::array({rank % perNode, rank % perNode + perNode});
    return {{"$rank", rank},
            {"$rail_ends", railEnds},
            {"$node", node},
            {"$stage", stage},
            {"$node_ranks", range(node * perNode, perNode)},
            {"$stage_ranks", range(stage * perStage, perStage)}};
}

void fillPlaces(json& value, const std::map<std::string, json>& places) {
    if (value.is_string()) {
        if (const auto place = places.find(value.get<std::string>()); place != places.end()) value = place->second;
    } else if (value.is_structured()) {
        for (json& member : value) fillPlaces(member, places);
    }
}

/// The job called `name`, in the size that the dice choose.
json sizedJob(const json& table, const std::string& name, const Dice& dice) {
    const json& entry = table.at("jobs").at(name);
    json job = entry.at("job");
    if (const auto sizes = entry.find("sizes"); sizes != entry.end())
        for (const auto& [pointer, values] : sizes->items())
            job[json::json_pointer(pointer)] = dice.of(values, pointer);
    job["noise"] = dice.of(table.at("noise"), "noise");
    if (!job.contains("steps")) job["steps"] = dice.of(table.at("steps"), "steps");
    job["seed"] = 1 + dice.below(1000000, "seed");
    return job;
}

Scenario finished(json document, const std::string& name) {
    document["name"] = name;
    Scenario scenario = parseScenario(document.dump(2) + "\n", name);
    scenario.name = name;
    return scenario;
}

std::string strengthText(const json& strength) {
    if (strength.contains("text")) return strength["text"];
    std::string text;
    for (const auto& [key, value] : strength.items())
        if (!value.is_structured() && key != "demand")
            text +=
                (text.empty() ? "" : " ") + key + " " + (value.is_string() ? value.get<std::string>() : value.dump());
    return text;
}

Scenario planted(const json& table, const json& fault, const std::string& suite, int level, int seed) {
    const std::string name = fault.at("name");
    const Dice dice(name, seed);
    const std::string jobName = dice.of(fault.at("jobs"), "job");
    const json& strength = fault.at("strengths").at(static_cast<size_t>(level));
    json document = sizedJob(table, jobName, dice);
    document.merge_patch(fault.value("with", json::object()));
    document.merge_patch(strength.value("with", json::object()));
    json plant = fault.at("plant");
    for (const auto& [key, value] : strength.items())
        if (key != "with" && key != "fixed" && key != "text" && key != "demand") plant[key] = value;
    document["faults"] = json::array({plant});
    document["expect"] = json::array({fault.at("expect")});
    document["allow"] = fault.value("allow", json::array());
    if (fault.value("twin", true)) {
        document["fixed"] = strength.value("fixed", fault.value("fixed", json::object()));
        if (!document["fixed"].contains("faults")) document["fixed"]["faults"] = json::array();
    }
    fillPlaces(document, placesIn(document, dice));

    Scenario scenario =
        finished(document, fmt::format("{}-{}-{}-{}{}", suite, name, jobName, static_cast<char>('a' + level), seed));
    scenario.strength = PlantedStrength{name, scenario.expect.front().id, level, strengthText(strength)};
    const std::string demand = strength.value("demand", "cost");
    scenario.decidedByCost = demand == "cost";
    if (demand == "may") scenario.allow.push_back(scenario.expect.front());
    if (demand == "may" || demand == "never") scenario.expect.clear();
    return scenario;
}

}  // namespace

std::vector<Scenario> generate(const std::string& text, const std::string& origin, int draw, const std::string& suite) {
    try {
        const json table = json::parse(text);
        const int firstSeed = draw * kSeedsOfADraw;
        std::vector<Scenario> scenarios;
        for (const auto& [name, entry] : table.at("jobs").items())
            for (int seed = firstSeed; seed < firstSeed + table.at("healthy_seeds").get<int>(); ++seed)
                scenarios.push_back(
                    finished(sizedJob(table, name, Dice(name, seed)), fmt::format("{}-none-{}-{}", suite, name, seed)));
        for (const json& fault : table.at("faults"))
            for (int level = 0; level < static_cast<int>(fault.at("strengths").size()); ++level)
                for (int i = 0; i < fault.value("seeds", table.at("fault_seeds").get<int>()); ++i)
                    scenarios.push_back(planted(table, fault, suite, level, firstSeed + i));
        return scenarios;
    } catch (const json::exception& error) {
        throw ScenarioFileError(fmt::format("{}: {}", origin, error.what()));
    }
}

}  // namespace rankscope::score
