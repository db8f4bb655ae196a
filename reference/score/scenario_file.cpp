// SPDX-License-Identifier: Apache-2.0
#include "reference/score/scenario_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace rankscope::score {
namespace {

using nlohmann::json;

// Faults after which a job is not expected to end well.
constexpr std::array kFailures = {"kill",    "oom",       "missing_rank",   "mismatch",     "asleep",
                                  "stopped", "exception", "opposite_order", "ended_by_user"};

Claim readClaim(const json& entry, const std::string& origin, const char* list) {
    const auto fail = [&](const std::string& what) {
        throw ScenarioFileError(fmt::format("{}: '{}' {}", origin, list, what));
    };
    if (entry.is_string()) return {entry.get<std::string>(), {}};
    if (!entry.is_object() || !entry.contains("id") || !entry["id"].is_string())
        fail("holds an entry without an id, such as {\"id\": \"RS301\", \"ranks\": [3]}");
    Claim claim{entry["id"].get<std::string>(), {}};
    if (const auto other = entry.find("or"); other != entry.end() && other->is_string())
        claim.id += "/" + other->get<std::string>();
    if (const auto ranks = entry.find("ranks"); ranks != entry.end()) {
        if (!ranks->is_array() ||
            !std::all_of(ranks->begin(), ranks->end(), [](const json& rank) { return rank.is_number_integer(); }))
            fail("has 'ranks' that are no list of integers");
        claim.ranks = ranks->get<std::vector<int>>();
        std::sort(claim.ranks.begin(), claim.ranks.end());
    }
    return claim;
}

std::vector<Claim> readClaims(const json& document, const char* key, const std::string& origin) {
    std::vector<Claim> claims;
    const auto list = document.find(key);
    if (list == document.end()) return claims;
    if (!list->is_array()) throw ScenarioFileError(fmt::format("{}: '{}' must be a list", origin, key));
    for (const json& entry : *list) claims.push_back(readClaim(entry, origin, key));
    return claims;
}

double numberIn(const json& document, const char* group, const char* key, double fallback) {
    const auto found = document.find(group);
    if (found == document.end() || !found->is_object()) return fallback;
    const auto value = found->find(key);
    return value != found->end() && value->is_number() ? value->get<double>() : fallback;
}

// What a framework's script takes in a step only its own options tell, so that the job says it.
double frameworkTokens(const json& document) {
    return numberIn(document, "framework", "tokens", 1);
}

// Tokens of one optimizer step: data-parallel ranks x sequences x their length x how often a step repeats that.
double tokensPerStep(const json& document) {
    if (document.value("kind", json()) == "framework") return frameworkTokens(document);
    const double sequences = numberIn(document, "parallel", "dp", 8) * numberIn(document, "model", "micro_batch", 2);
    const bool pipelined = numberIn(document, "parallel", "pp", 1) > 1;
    const double rounds = pipelined ? numberIn(document, "parallel", "micro_batches", 8)
                                    : numberIn(document, "parallel", "accumulate", 1);
    return sequences * numberIn(document, "model", "seq", 2048) * rounds;
}

bool plants(const json& document, std::string_view kind) {
    const auto faults = document.find("faults");
    if (faults == document.end() || !faults->is_array()) return false;
    return std::any_of(faults->begin(), faults->end(), [&](const json& fault) {
        const auto name = fault.is_object() ? fault.find("kind") : fault.end();
        return fault.is_object() && name != fault.end() && name->is_string() && name->get<std::string>() == kind;
    });
}

json parseObject(const std::string& text, const std::string& origin) {
    try {
        json document = json::parse(text);
        if (!document.is_object()) throw ScenarioFileError(origin + ": a scenario must be a JSON object");
        return document;
    } catch (const json::exception& error) {
        throw ScenarioFileError(fmt::format("{}: not valid JSON: {}", origin, error.what()));
    }
}

}  // namespace

std::string toText(const Claim& claim) {
    if (claim.ranks.empty()) return claim.id;
    return fmt::format("{} rank{} {}", claim.id, claim.ranks.size() == 1 ? "" : "s", fmt::join(claim.ranks, ","));
}

std::string toText(const std::vector<Claim>& claims) {
    std::string text;
    for (const Claim& claim : claims) text += (text.empty() ? "" : "; ") + toText(claim);
    return text.empty() ? "nothing" : text;
}

Scenario parseScenario(const std::string& text, const std::string& origin) {
    const json document = parseObject(text, origin);
    Scenario scenario;
    scenario.json = text;
    scenario.origin = origin;
    scenario.expect = readClaims(document, "expect", origin);
    scenario.allow = readClaims(document, "allow", origin);
    scenario.plantsFailure =
        std::any_of(kFailures.begin(), kFailures.end(), [&](const char* kind) { return plants(document, kind); });
    scenario.rareSteps = plants(document, "jitter");
    scenario.tokens = scenario.fixedTokens = tokensPerStep(document);
    if (const auto fixed = document.find("fixed"); fixed != document.end()) {
        if (!fixed->is_object()) throw ScenarioFileError(origin + ": 'fixed' must be a JSON object");
        json repaired = document;
        repaired.merge_patch(*fixed);
        scenario.hasFixed = true;
        scenario.fixedTokens = tokensPerStep(repaired);
    }
    return scenario;
}

uint64_t hashOf(std::string_view text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

void setWorld(Scenario& scenario, int draw) {
    if (draw == 0 || !scenario.error.empty()) return;
    json document = json::parse(scenario.json);
    if (document.contains("world")) return;
    constexpr uint64_t kWorlds = 1'000'000;  // enough that hardly two scenarios share one
    document["world"] = 1 + hashOf(fmt::format("{} {}", scenario.name, draw)) % kWorlds;
    scenario.json = document.dump(1);
    scenario.drawnWorld = true;
}

}  // namespace rankscope::score
