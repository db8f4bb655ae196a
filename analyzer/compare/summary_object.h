// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace rankscope::compare {

inline constexpr const char* kHowItIsMade = "a baseline file is made by: rankscope baseline save NAME --dir DIR";
inline constexpr const char* kSaveAnew = "save it again: rankscope baseline save RUN --dir DIR";

inline constexpr double kLargestNumber =
    1e18;  // 31 years in ns, an exabyte: a larger one means nothing, and fits no int64_t

/// Reads an object of a summary file, member by member, and names what is wrong with one: every function throws
/// SummaryError with the file, the member's place and a hint. It refers to the parsed text and to the file's name.
class SummaryReader {
  public:
    static constexpr bool kReads = true;

    SummaryReader(const nlohmann::json& json, std::string place, const std::string& origin);
    /// A member that must be there, in lists and maps, too; its numbers are `least` or more.
    template <typename T>
    void operator()(const char* key, T& to, double least = 0) const {
        take(at(key), key, to, least);
    }
    bool has(const char* key) const { return m_json.contains(key); }
    /// Missing: false, 0, or nothing.
    template <typename T>
    void ifSet(const char* key, T& to) const {
        to = {};
        if (has(key)) (*this)(key, to);
    }
    /// Missing or null: empty.
    void ifKnown(const char* key, std::optional<double>& to, double least = 0) const;
    void orNull(const char* key, std::optional<double>& to) const { ifKnown(key, to, -kLargestNumber); }
    /// `members(io, row)` reads each row.
    template <typename Row, typename Members>
    void rows(const char* key, std::vector<Row>& to, Members&& members) const {
        to.clear();
        for (const nlohmann::json& row : list(at(key), key)) {
            const SummaryReader reader(row, fmt::format("{}{}[{}].", m_place, key, to.size()), m_origin);
            members(reader, to.emplace_back());
        }
    }

  private:
    void take(const nlohmann::json& value, const std::string& name, double& to, double least) const;
    void take(const nlohmann::json& value, const std::string& name, int& to, double least) const;
    void take(const nlohmann::json& value, const std::string& name, int64_t& to, double least) const;
    void take(const nlohmann::json& value, const std::string& name, std::string& to, double least) const;
    void take(const nlohmann::json& value, const std::string& name, bool& to, double least) const;
    template <typename T>
    void take(const nlohmann::json& value, const std::string& name, std::vector<T>& to, double least) const {
        to.clear();
        for (const nlohmann::json& each : list(value, name)) {
            const std::string place = fmt::format("{}[{}]", name, to.size());
            take(each, place, to.emplace_back(), least);
        }
    }
    template <typename T>
    void take(const nlohmann::json& value, const std::string& name, std::map<std::string, T>& to, double least) const {
        if (!value.is_object()) fail(name + " is no object");
        for (const auto& [key, each] : value.items()) take(each, name + "." + key, to[key], least);
    }
    const nlohmann::json& at(const char* key) const;
    const nlohmann::json& list(const nlohmann::json& value, const std::string& name) const;
    [[noreturn]] void fail(const std::string& what, const std::string& hint = kSaveAnew) const;

    const nlohmann::json& m_json;
    std::string m_place;
    const std::string& m_origin;
};

/// JSON in which no object has a key twice: of two values, which a merge can leave behind, neither is taken. Throws
/// SummaryError with `origin`, the place in it and what to do.
nlohmann::json parseStrictJson(const std::string& text, const std::string& origin);

}  // namespace rankscope::compare
