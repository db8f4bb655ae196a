// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/scenario_claims.h"

#include <algorithm>

#include "reference/workloads/scenario_json.h"

namespace rankscope::reference {
namespace {

using nlohmann::json;

bool isId(const std::string& text) {
    return text.size() == 5 && text.rfind("RS", 0) == 0 &&
           std::all_of(text.begin() + 2, text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Claim readClaim(const json& entry, const std::string& place, int worldSize, const std::string& origin) {
    ObjectReader bare(entry.is_object() ? entry : json::object(), origin, "");
    if (entry.is_string()) {
        const auto id = entry.get<std::string>();
        if (!isId(id)) bare.fail(place, "is '" + id + "': a diagnosis is called RS301 or the like");
        return {place, id};
    }
    if (!entry.is_object())
        bare.fail(place, "must be an object with an id, such as {\"id\": \"RS301\", \"ranks\": [3]}");
    ObjectReader reader(entry, origin, place);
    if (!reader.has("id")) reader.fail("id", "is missing, such as {\"id\": \"RS301\", \"ranks\": [3]}");
    const std::string id = reader.text("id", "");
    if (!isId(id)) reader.fail("id", "is '" + id + "': a diagnosis is called RS301 or the like");
    if (const std::string other = reader.text("or", ""); !other.empty() && !isId(other))
        reader.fail("or", "is '" + other + "': a diagnosis is called RS301 or the like");
    // None: the place is not told.
    if (const json* ranks = reader.find("ranks"); ranks && !(ranks->is_array() && ranks->empty()))
        reader.ranks("ranks", worldSize);
    for (const char* text : {"cause", "comment", "description", "note", "title", "why"}) reader.text(text, "");
    reader.rejectUnknownKeys();
    return {place + ".id", id};
}

}  // namespace

std::vector<Claim> readClaims(const json& list, const std::string& key, int worldSize, const std::string& origin) {
    if (!list.is_array()) throw ScenarioError(origin + ": '" + key + "' must be a list");
    std::vector<Claim> claims;
    for (size_t i = 0; i < list.size(); ++i)
        claims.push_back(readClaim(list[i], key + "[" + std::to_string(i) + "]", worldSize, origin));
    return claims;
}

}  // namespace rankscope::reference
