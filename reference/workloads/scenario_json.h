// SPDX-License-Identifier: Apache-2.0
// Reads typed values out of one JSON object and remembers which keys were asked for, so that a misspelt key is an error
// and not a default.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "reference/workloads/scenario.h"

namespace rankscope::reference {

class ObjectReader {
  public:
    /// `path` names the object in messages, for example "cluster.intra".
    ObjectReader(const nlohmann::json& object, std::string origin, std::string path);

    int integer(const char* key, int fallback, int64_t atLeast);
    int64_t longInteger(const char* key, int64_t fallback, int64_t atLeast);
    double positive(const char* key, double fallback);
    double notNegative(const char* key, double fallback);
    bool boolean(const char* key, bool fallback);
    std::string text(const char* key, const std::string& fallback);
    /// A list of different ranks of a job of `worldSize`; empty when the key is missing.
    std::vector<int> ranks(const char* key, int worldSize);
    Dtype dtype(const char* key, Dtype fallback);
    const nlohmann::json* find(const char* key);
    ObjectReader object(const char* key);
    bool has(const char* key) const { return m_object.contains(key); }

    /// Throws for the first key that nobody asked for.
    void rejectUnknownKeys() const;
    [[noreturn]] void fail(const std::string& key, const std::string& what) const;

  private:
    double number(const char* key, double fallback, bool zeroAllowed);

    const nlohmann::json& m_object;
    std::string m_origin;
    std::string m_path;
    std::set<std::string> m_known;
};

}  // namespace rankscope::reference
