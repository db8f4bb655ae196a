// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/places.h"

#include <vector>

namespace rankscope::facts {
namespace {

// Empty where a communicator of that role does not split the job.
std::string directionOf(CommRole role) {
    switch (role) {
        case CommRole::gradients:
        case CommRole::shardedParameters:
            return "dp";
        case CommRole::activations:
            return "tp";
        case CommRole::experts:
            return "ep";
        default:
            return {};
    }
}

}  // namespace

std::map<int, Places> placesOf(const TraceFacts& facts, const Layout& layout) {
    std::map<int, Places> places;
    std::map<std::pair<int, std::string>, int> sizes;
    for (const auto& [id, communicator] : facts.communicators) {
        const std::string direction = directionOf(layout.role(id));
        if (direction.empty() || static_cast<int>(communicator.ranks.size()) != communicator.size) continue;
        for (size_t i = 0; i < communicator.ranks.size(); ++i) {
            const int rank = communicator.ranks[i];
            int& largest = sizes[{rank, direction}];
            if (communicator.size <= largest) continue;
            largest = communicator.size;
            places[rank][direction] = static_cast<int>(i);
        }
    }
    for (const Pipeline& pipeline : layout.pipelines)
        for (size_t stage = 0; stage < pipeline.stages.size(); ++stage)
            places[pipeline.stages[stage]].emplace("pp", static_cast<int>(stage));
    return places;
}

}  // namespace rankscope::facts
