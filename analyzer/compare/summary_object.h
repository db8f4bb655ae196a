// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace rankscope::compare {

inline constexpr const char* kSaveAnew = "save it again: rankscope baseline save RUN --dir DIR";

/// One object of a summary file. Reads its members and names what is wrong with them: every function throws
/// SummaryError with the file, the member's place and a hint. It refers to the parsed text and to the file's name.
class SummaryObject {
  public:
    SummaryObject(const nlohmann::json& json, std::string place, const std::string& origin);
    /// Reads a time, a count, bytes: none of them is negative.
    double number(const char* key) const;
    double signedNumber(const char* key) const;
    int whole(const char* key, int least = 0) const;
    int64_t count(const char* key) const;
    std::string text(const char* key) const;
    bool flag(const char* key) const;
    std::optional<double> numberOrNull(const char* key) const;
    std::optional<double> numberIfThere(const char* key) const;  // empty, too, where it is null
    std::map<std::string, double> numbers(const char* key) const;
    std::map<std::string, double> times(const char* key) const;  // none of them negative
    std::map<std::string, std::string> texts(const char* key) const;
    std::vector<double> numberList(const char* key) const;
    std::vector<int> wholeList(const char* key) const;
    std::vector<std::string> textList(const char* key) const;
    void each(const char* key, const std::function<void(const SummaryObject& row)>& take) const;

  private:
    template <typename T, typename Check>
    std::vector<T> listOf(const char* key, Check&& check) const;
    template <typename Read>
    auto membersOf(const char* key, Read&& read) const;
    double checkedNumber(const nlohmann::json& value, const std::string& name, double least) const;
    int checkedWhole(const nlohmann::json& value, const std::string& name, int least) const;
    const nlohmann::json& at(const char* key) const;
    const nlohmann::json& array(const char* key) const;
    [[noreturn]] void fail(const std::string& what, const std::string& hint = kSaveAnew) const;

    const nlohmann::json& m_json;
    std::string m_place;
    const std::string& m_origin;
};

/// JSON in which no object has a key twice: of two values, which a merge can leave behind, neither is taken. Throws
/// SummaryError with `origin`, the place in it and what to do.
nlohmann::json parseStrictJson(const std::string& text, const std::string& origin);

}  // namespace rankscope::compare
