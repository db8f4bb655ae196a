// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/summary_object.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "analyzer/compare/summary_file.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::compare {
namespace {

using Json = nlohmann::json;

constexpr double kLargestNumber = 1e18;  // 31 years in ns, an exabyte: a larger one means nothing, and fits no int64_t
constexpr double kLargestWhole = 1e9;    // of ranks, steps, size classes

constexpr const char* kHowItIsMade = "a baseline file is made by: rankscope baseline save NAME --dir DIR";
constexpr size_t kLongestReason = 300;  // characters of a file that an error repeats: some lines of a terminal
constexpr size_t kLongestLast = 60;     // of what was read last: the library repeats it whatever its size

/// "line 3, column 7: unexpected end of input": what the library says, without the names it has for that.
std::string reasonOf(const std::string& what) {
    std::string text = what;
    const auto drop = [&](std::string_view begin, std::string_view end) {
        const size_t from = text.find(begin), until = from == std::string::npos ? from : text.find(end, from);
        if (until != std::string::npos) text.erase(from, until + end.size() - from);
    };
    drop("[json.exception", "] ");
    drop("parse error at ", "at ");
    drop("syntax error while parsing", " - ");
    if (const size_t last = text.find("; last read:"); last != std::string::npos && text.size() - last > kLongestLast)
        text.resize(last);
    return text::shortened(text::oneLine(text), kLongestReason);
}

bool hasConflictMarker(std::string_view text) {
    return text.starts_with("<<<<<<< ") || text.find("\n<<<<<<< ") != std::string_view::npos;
}

/// Follows the parser and keeps the keys of every object it is in.
class KeysOnce {
  public:
    explicit KeysOnce(const std::string& origin) : m_origin(origin) {}
    bool operator()(int, Json::parse_event_t event, Json& parsed) {
        if (event == Json::parse_event_t::object_start) m_open.emplace_back();
        if (event == Json::parse_event_t::object_end) m_open.pop_back();
        if (event == Json::parse_event_t::key && !m_open.back().insert(parsed.get<std::string>()).second)
            throw SummaryError(fmt::format("{}: the key {} is there twice in one object", m_origin,
                                           text::shortened(text::oneLine(parsed.get<std::string>()), kLongestReason)),
                               "take one of them, or save the run again");
        return true;
    }

  private:
    const std::string& m_origin;
    std::vector<std::set<std::string>> m_open;
};

}  // namespace

SummaryObject::SummaryObject(const Json& json, std::string place, const std::string& origin)
    : m_json(json), m_place(std::move(place)), m_origin(origin) {
    if (!json.is_object()) fail("is no object");
}

double SummaryObject::number(const char* key) const {
    return checkedNumber(at(key), key, 0);
}

double SummaryObject::signedNumber(const char* key) const {
    return checkedNumber(at(key), key, -kLargestNumber);
}

int SummaryObject::whole(const char* key, int least) const {
    return checkedWhole(at(key), key, least);
}

int64_t SummaryObject::count(const char* key) const {
    const Json& value = at(key);
    if (!value.is_number_integer()) fail(std::string(key) + " is no whole number");
    if (value.is_number_unsigned() ? value.get<uint64_t>() > uint64_t{INT64_MAX} : value.get<int64_t>() < 0)
        fail(fmt::format("{} is {}: not from 0 to {}", key, value.dump(), INT64_MAX));
    return value.get<int64_t>();
}

std::string SummaryObject::text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) fail(std::string(key) + " is no text");
    return value.get<std::string>();
}

bool SummaryObject::flag(const char* key) const {
    const Json& value = at(key);
    if (!value.is_boolean()) fail(std::string(key) + " is neither true nor false");
    return value.get<bool>();
}

std::optional<double> SummaryObject::numberOrNull(const char* key) const {
    return at(key).is_null() ? std::nullopt : std::optional(signedNumber(key));
}

std::optional<double> SummaryObject::numberIfThere(const char* key) const {
    const auto value = m_json.find(key);
    return value == m_json.end() || value->is_null() ? std::nullopt : std::optional(number(key));
}

template <typename Read>
auto SummaryObject::membersOf(const char* key, Read&& read) const {
    const SummaryObject inner(at(key), m_place + key + ".", m_origin);
    std::map<std::string, decltype(read(inner, key))> all;
    for (const auto& [name, value] : at(key).items()) all[name] = read(inner, name.c_str());
    return all;
}

std::map<std::string, double> SummaryObject::numbers(const char* key) const {
    return membersOf(key, [](const SummaryObject& inner, const char* name) { return inner.signedNumber(name); });
}

std::map<std::string, double> SummaryObject::times(const char* key) const {
    return membersOf(key, [](const SummaryObject& inner, const char* name) { return inner.number(name); });
}

std::map<std::string, std::string> SummaryObject::texts(const char* key) const {
    return membersOf(key, [](const SummaryObject& inner, const char* name) { return inner.text(name); });
}

void SummaryObject::each(const char* key, const std::function<void(const SummaryObject& row)>& take) const {
    size_t index = 0;
    for (const Json& row : array(key))
        take(SummaryObject(row, fmt::format("{}{}[{}].", m_place, key, index++), m_origin));
}

template <typename T, typename Check>
std::vector<T> SummaryObject::listOf(const char* key, Check&& check) const {
    std::vector<T> all;
    for (const Json& value : array(key)) all.push_back(check(value, fmt::format("{}[{}]", key, all.size())));
    return all;
}

std::vector<double> SummaryObject::numberList(const char* key) const {
    return listOf<double>(key,
                          [this](const Json& value, const std::string& name) { return checkedNumber(value, name, 0); });
}

std::vector<int> SummaryObject::wholeList(const char* key) const {
    return listOf<int>(key,
                       [this](const Json& value, const std::string& name) { return checkedWhole(value, name, 0); });
}

std::vector<std::string> SummaryObject::textList(const char* key) const {
    return listOf<std::string>(key, [this](const Json& value, const std::string& name) {
        if (!value.is_string()) fail(name + " is no text");
        return value.get<std::string>();
    });
}

double SummaryObject::checkedNumber(const Json& value, const std::string& name, double least) const {
    if (!value.is_number()) fail(name + " is no number");
    const auto number = value.get<double>();
    if (!(number >= least) || number > kLargestNumber)
        fail(fmt::format("{} is {:g}: not from {:g} to {:g}", name, number, least, kLargestNumber));
    return number;
}

int SummaryObject::checkedWhole(const Json& value, const std::string& name, int least) const {
    if (!value.is_number()) fail(name + " is no number");
    const auto number = value.get<double>();
    if (number != std::floor(number)) fail(name + " is no whole number");
    if (!(number >= least) || number > kLargestWhole)
        fail(fmt::format("{} is {:g}: not from {} to {:g}", name, number, least, kLargestWhole));
    return static_cast<int>(number);
}

const Json& SummaryObject::at(const char* key) const {
    const auto value = m_json.find(key);
    if (value == m_json.end())
        fail(std::string(key) + " is missing", std::string("it was made by another version; ") + kSaveAnew);
    return *value;
}

const Json& SummaryObject::array(const char* key) const {
    const Json& value = at(key);
    if (!value.is_array()) fail(std::string(key) + " is no list");
    return value;
}

void SummaryObject::fail(const std::string& what, const std::string& hint) const {
    throw SummaryError(fmt::format("{}: {}{}", m_origin, m_place, what), hint);
}

Json parseStrictJson(const std::string& text, const std::string& origin) {
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
        throw SummaryError(fmt::format("{}: the file is empty", origin), kHowItIsMade);
    if (hasConflictMarker(text))
        throw SummaryError(fmt::format("{}: a merge left both sides in it (<<<<<<<)", origin),
                           "take either side whole: git checkout --ours FILE, or --theirs");
    KeysOnce once(origin);
    try {
        return Json::parse(
            text, [&once](int depth, Json::parse_event_t event, Json& parsed) { return once(depth, event, parsed); });
    } catch (const Json::exception& error) {
        throw SummaryError(fmt::format("{}: no JSON: {}", origin, reasonOf(error.what())), kHowItIsMade);
    }
}

}  // namespace rankscope::compare
