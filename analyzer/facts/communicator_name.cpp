// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/communicator_name.h"

#include <fmt/format.h>

#include <algorithm>

namespace rankscope::facts {
namespace {

constexpr size_t kMostParts = 4;  // of a list of ranks: more do not fit a column of a table

std::string_view roleText(CommRole role) {
    switch (role) {
        case CommRole::gradients:
            return "data parallel";
        case CommRole::shardedParameters:
            return "sharded data parallel";
        case CommRole::activations:
            return "tensor parallel";
        case CommRole::experts:
            return "expert parallel";
        case CommRole::pipeline:
            return "pipeline";
        case CommRole::replicas:
            return "replicas";
        case CommRole::control:
            return "control";
        case CommRole::unknown:
            break;
    }
    return {};
}

std::string nameOf(const Communicator& communicator, CommRole role) {
    std::string name(roleText(role));
    if (name.empty()) name = communicator.name.empty() ? "group" : communicator.name;
    const size_t known = communicator.ranks.size();
    if (known == 0) return communicator.size > 0 ? fmt::format("{} of {} ranks", name, communicator.size) : name;
    name += " " + rankListText(communicator.ranks);
    const int others = communicator.size - static_cast<int>(known);
    return others > 0 ? fmt::format("{} and {} rank{} not recorded", name, others, others == 1 ? "" : "s") : name;
}

}  // namespace

std::string rankListText(std::vector<int> ranks) {
    std::sort(ranks.begin(), ranks.end());
    std::vector<std::string> parts;
    for (size_t i = 0; i < ranks.size();) {
        size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
        parts.push_back(last == i ? std::to_string(ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]));
        i = last + 1;
    }
    if (parts.size() > kMostParts)
        return fmt::format("{},{},...,{} ({} ranks)", parts[0], parts[1], parts.back(), ranks.size());
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
    return text;
}

std::map<int64_t, std::string> communicatorNames(const TraceFacts& facts, const Layout& layout) {
    std::map<int64_t, std::string> names;
    std::map<std::string, int> uses;
    for (const auto& [id, communicator] : facts.communicators)
        ++uses[names[id] = nameOf(communicator, layout.role(id))];
    for (auto& [id, name] : names)
        if (uses[name] > 1) name += fmt::format(" (communicator {})", id);
    return names;
}

std::string communicatorName(const TraceFacts& facts, const Layout& layout, int64_t id) {
    const std::map<int64_t, std::string> names = communicatorNames(facts, layout);
    const auto known = names.find(id);
    return known == names.end() ? fmt::format("communicator {}", id) : known->second;
}

}  // namespace rankscope::facts
