// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <set>
#include <vector>

#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {
namespace {

const char* placeName(facts::CommRole role) {
    switch (role) {
        case facts::CommRole::gradients:
            return "dp";
        case facts::CommRole::shardedParameters:
            return "shard";
        case facts::CommRole::replicas:
            return "replica";
        case facts::CommRole::experts:
            return "ep";
        case facts::CommRole::activations:
            return "tp";
        default:
            return nullptr;
    }
}

/// Place and size of a rank's largest group, by use.
using Places = std::map<facts::CommRole, std::pair<int, size_t>>;

std::map<int, Places> placesOf(const job::Analysis& analysis) {
    std::map<int, Places> places;
    for (const auto& [id, role] : analysis.layout.roles) {
        const auto communicator = analysis.facts.communicators.find(id);
        if (!placeName(role) || communicator == analysis.facts.communicators.end()) continue;
        const std::vector<int>& ranks = communicator->second.ranks;
        if (ranks.size() < 2) continue;
        for (size_t i = 0; i < ranks.size(); ++i) {
            auto& place = places[ranks[i]][role];
            if (ranks.size() > place.second) place = {static_cast<int>(i), ranks.size()};
        }
    }
    return places;
}

std::string roleText(int stage, const Places& places) {
    std::string text = stage < 0 ? "" : fmt::format("pp {}", stage);
    for (const auto& [role, place] : places)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", placeName(role), place.first);
    return text;
}

}  // namespace

std::map<int, std::string> rankRoles(const job::Analysis& analysis) {
    const std::map<int, Places> places = placesOf(analysis);
    std::map<int, std::string> roles;
    std::set<std::string> seen;
    bool unique = true;
    for (const facts::RankSummary& rank : analysis.ranks) {
        const auto place = places.find(rank.rank);
        const std::string text =
            roleText(analysis.layout.stageOf(rank.rank), place == places.end() ? Places{} : place->second);
        unique = unique && !text.empty() && seen.insert(text).second;
        roles[rank.rank] = text;
    }
    if (!unique)
        for (auto& [rank, text] : roles) text = fmt::format("rank {}", rank);
    return roles;
}

}  // namespace rankscope::compare
