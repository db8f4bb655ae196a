// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "analyzer/compare/run_summary.h"
#include "analyzer/text/lists.h"

namespace rankscope::compare {
namespace {

/// What a place in a group of that use is called; groups of other uses tell no ranks apart.
const std::map<facts::CommRole, const char*> kPlaceNames = {{facts::CommRole::gradients, "dp"},
                                                            {facts::CommRole::shardedParameters, "shard"},
                                                            {facts::CommRole::replicas, "replica"},
                                                            {facts::CommRole::experts, "ep"},
                                                            {facts::CommRole::activations, "tp"}};

/// Place and size of a rank's largest group, by use.
using Places = std::map<facts::CommRole, std::pair<int, size_t>>;

std::map<int, Places> placesOf(const job::Analysis& analysis) {
    std::map<int, Places> places;
    for (const auto& [id, role] : analysis.layout.roles) {
        const facts::Communicator* communicator = analysis.facts.findCommunicator(id);
        if (!kPlaceNames.contains(role) || !communicator || communicator->ranks.size() < 2) continue;
        const std::vector<int>& ranks = communicator->ranks;
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
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kPlaceNames.at(role), place.first);
    return text;
}

}  // namespace

std::map<int, std::string> rankRoles(const job::Analysis& analysis) {
    const std::map<int, Places> places = placesOf(analysis);
    std::map<int, std::string> roles;
    std::set<std::string> seen;
    bool unique = true;
    for (const facts::RankSummary& rank : analysis.ranks) {
        const std::string name = roleText(analysis.layout.stageOf(rank.rank), text::valueAt(places, rank.rank));
        unique = unique && !name.empty() && seen.insert(name).second;
        roles[rank.rank] = name;
    }
    if (!unique)
        for (auto& [rank, name] : roles) name = fmt::format("rank {}", rank);
    return roles;
}

}  // namespace rankscope::compare
