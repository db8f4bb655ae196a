// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/scenario_json.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rankscope::reference {

using nlohmann::json;

ObjectReader::ObjectReader(const json& object, std::string origin, std::string path)
    : m_object(object), m_origin(std::move(origin)), m_path(std::move(path)) {
    if (!m_object.is_object())
        throw ScenarioError(m_origin + ": " + (m_path.empty() ? "the scenario" : "'" + m_path + "'") +
                            " must be a JSON object");
}

void ObjectReader::fail(const std::string& key, const std::string& what) const {
    throw ScenarioError(m_origin + ": '" + (m_path.empty() ? key : m_path + "." + key) + "' " + what);
}

const json* ObjectReader::find(const char* key) {
    m_known.insert(key);
    const auto found = m_object.find(key);
    return found == m_object.end() ? nullptr : &*found;
}

int64_t ObjectReader::longInteger(const char* key, int64_t fallback, int64_t atLeast) {
    const json* value = find(key);
    if (!value) return fallback;
    const bool fits =
        value->is_number_integer() && !(value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX);
    if (!fits) fail(key, "must be an integer");
    if (value->get<int64_t>() < atLeast)
        fail(key, "must be at least " + std::to_string(atLeast) + ", it is " + value->dump());
    return value->get<int64_t>();
}

int ObjectReader::integer(const char* key, int fallback, int64_t atLeast) {
    const int64_t value = longInteger(key, fallback, atLeast);
    if (value > 1000000) fail(key, "is " + std::to_string(value) + ": more than 1000000 is not a job");
    return static_cast<int>(value);
}

double ObjectReader::number(const char* key, double fallback, bool zeroAllowed) {
    const json* value = find(key);
    if (!value) return fallback;
    if (!value->is_number()) fail(key, "must be a number");
    const double result = value->get<double>();
    if (!std::isfinite(result) || result < 0 || (result == 0 && !zeroAllowed))
        fail(key,
             std::string("must be ") + (zeroAllowed ? "zero or more" : "more than zero") + ", it is " + value->dump());
    // Milliseconds, KiB or Gbit/s beyond it would leave 64 bits once they are nanoseconds or bytes.
    constexpr double kMost = 1e9;
    if (result > kMost) fail(key, "must be at most 1e9, it is " + value->dump());
    return result;
}

double ObjectReader::positive(const char* key, double fallback) {
    return number(key, fallback, false);
}
double ObjectReader::notNegative(const char* key, double fallback) {
    return number(key, fallback, true);
}

bool ObjectReader::boolean(const char* key, bool fallback) {
    const json* value = find(key);
    if (!value) return fallback;
    if (!value->is_boolean()) fail(key, "must be true or false");
    return value->get<bool>();
}

std::string ObjectReader::text(const char* key, const std::string& fallback) {
    const json* value = find(key);
    if (!value) return fallback;
    if (!value->is_string()) fail(key, "must be a text");
    return value->get<std::string>();
}

std::vector<int> ObjectReader::ranks(const char* key, int worldSize) {
    std::vector<int> result;
    const json* list = find(key);
    if (!list) return result;
    if (!list->is_array() || list->empty()) fail(key, "must be a list of ranks");
    for (const json& entry : *list) {
        if (!entry.is_number_unsigned() || entry.get<uint64_t>() >= static_cast<uint64_t>(worldSize))
            fail(key, "names " + entry.dump() + " of " + std::to_string(worldSize) + " ranks");
        result.push_back(entry.get<int>());
        if (std::count(result.begin(), result.end(), result.back()) > 1)
            fail(key, "names rank " + entry.dump() + " twice");
    }
    return result;
}

Dtype ObjectReader::dtype(const char* key, Dtype fallback) {
    const std::string name = text(key, dtypeName(fallback));
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32})
        if (name == dtypeName(dtype)) return dtype;
    fail(key, "is '" + name + "': use bf16, fp16 or fp32");
}

ObjectReader ObjectReader::object(const char* key) {
    static const json empty = json::object();
    const json* value = find(key);
    return ObjectReader(value ? *value : empty, m_origin, m_path.empty() ? key : m_path + "." + key);
}

void ObjectReader::rejectUnknownKeys() const {
    for (const auto& [key, value] : m_object.items()) {
        if (m_known.count(key)) continue;
        std::string known;
        for (const std::string& name : m_known) known += (known.empty() ? "" : ", ") + name;
        fail(key, "is not a known key (known: " + known + ")");
    }
}

}  // namespace rankscope::reference
