// SPDX-License-Identifier: Apache-2.0
#include "gui/session/lane_choices_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collector/store/bounded_json.h"

namespace rankscope::gui {
namespace {

template <typename Value>
std::vector<Value> numbers(const nlohmann::json& json, const char* key) {
    std::vector<Value> values;
    if (const auto found = json.find(key); found != json.end() && found->is_array())
        for (const auto& value : *found)
            if (value.is_number_integer()) values.push_back(value.get<Value>());
    return values;
}

template <typename Value>
std::set<Value> numberSet(const nlohmann::json& json, const char* key) {
    const auto values = numbers<Value>(json, key);
    return {values.begin(), values.end()};
}

}  // namespace

std::string textOf(const LaneChoices& choices) {
    const nlohmann::json json{{"grouping", choices.grouping},
                              {"compact", choices.compact},
                              {"collapsed_groups", choices.collapsedGroups},
                              {"expanded_ranks", choices.expandedRanks},
                              {"hidden_ranks", choices.hiddenRanks},
                              {"hidden_lanes", choices.hiddenLanes},
                              {"pinned_ranks", choices.pinnedRanks},
                              {"order", choices.order},
                              {"filter", choices.filter}};
    return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

LaneChoices laneChoicesOf(std::string_view text) {
    LaneChoices choices;
    const auto json = store::parseJsonOrNothing(text);
    if (!json.is_object()) return choices;
    choices.collapsedGroups = numberSet<int64_t>(json, "collapsed_groups");
    choices.expandedRanks = numberSet<int32_t>(json, "expanded_ranks");
    choices.hiddenRanks = numberSet<int32_t>(json, "hidden_ranks");
    choices.pinnedRanks = numbers<int32_t>(json, "pinned_ranks");
    choices.order = numbers<int32_t>(json, "order");
    if (const auto found = json.find("hidden_lanes"); found != json.end() && found->is_array())
        for (const auto& label : *found)
            if (label.is_string()) choices.hiddenLanes.insert(label.get<std::string>());
    if (const auto found = json.find("grouping"); found != json.end() && found->is_string())
        choices.grouping = found->get<std::string>();
    if (const auto found = json.find("compact"); found != json.end() && found->is_boolean())
        choices.compact = found->get<bool>();
    if (const auto found = json.find("filter"); found != json.end() && found->is_string())
        choices.filter = found->get<std::string>();
    return choices;
}

LaneChoices onlyKnown(LaneChoices choices, const RunOutline& outline) {
    std::set<int32_t> ranks;
    std::set<int64_t> groups;
    std::set<std::string> groupings{LaneChoices::kByHost, LaneChoices::kByNothing};
    for (const OutlineRank& rank : outline.ranks) {
        ranks.insert(rank.rank);
        for (const auto& [direction, place] : rank.places) groupings.insert(direction);
    }
    const auto unknown = [&](int32_t rank) { return !ranks.contains(rank); };
    if (!groupings.contains(choices.grouping)) {
        choices.grouping = LaneChoices::kByHost;
        choices.collapsedGroups.clear();
    }
    for (const OutlineHost& host : outline.hosts)
        if (choices.grouping == LaneChoices::kByHost) groups.insert(host.host);
    for (const OutlineRank& rank : outline.ranks)
        if (const auto place = rank.places.find(choices.grouping); place != rank.places.end())
            groups.insert(place->second);
    std::erase_if(choices.collapsedGroups, [&](int64_t group) { return !groups.contains(group); });
    std::erase_if(choices.expandedRanks, unknown);
    std::erase_if(choices.hiddenRanks, unknown);
    std::erase_if(choices.pinnedRanks, unknown);
    std::erase_if(choices.order, unknown);
    return choices;
}

std::string runIdentity(std::string_view name, std::string_view startUnixNs, size_t ranks) {
    // FNV-1a: the same on every machine and in every version.
    uint64_t hash = 14695981039346656037ull;
    for (const char c : fmt::format("{}\n{}\n{}", name, startUnixNs, ranks))
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    return fmt::format("{:016x}", hash);
}

}  // namespace rankscope::gui
