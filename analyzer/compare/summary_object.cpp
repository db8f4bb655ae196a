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
#include "collector/store/bounded_json.h"

namespace rankscope::compare {
namespace {

using ReadJson = nlohmann::json;

constexpr double kLargestWhole = 1e9;  // of ranks, steps, size classes

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

}  // namespace

SummaryReader::SummaryReader(const ReadJson& json, std::string place, const std::string& origin)
    : m_json(json), m_place(std::move(place)), m_origin(origin) {
    if (!json.is_object()) fail("is no object");
}

void SummaryReader::ifKnown(const char* key, std::optional<double>& to, double least) const {
    const auto value = m_json.find(key);
    to.reset();
    if (value != m_json.end() && !value->is_null()) take(*value, key, to.emplace(), least);
}

void SummaryReader::take(const ReadJson& value, const std::string& name, double& to, double least) const {
    if (!value.is_number()) fail(name + " is no number");
    to = value.get<double>();
    if (!(to >= least) || to > kLargestNumber)
        fail(fmt::format("{} is {:g}: not from {:g} to {:g}", name, to, least, kLargestNumber));
}

void SummaryReader::take(const ReadJson& value, const std::string& name, int& to, double least) const {
    double number = 0;
    take(value, name, number, -kLargestNumber);
    if (number != std::floor(number)) fail(name + " is no whole number");
    if (!(number >= least) || number > kLargestWhole)
        fail(fmt::format("{} is {:g}: not from {:g} to {:g}", name, number, least, kLargestWhole));
    to = static_cast<int>(number);
}

void SummaryReader::take(const ReadJson& value, const std::string& name, int64_t& to, double) const {
    if (!value.is_number_integer()) fail(name + " is no whole number");
    if (value.is_number_unsigned() ? value.get<uint64_t>() > uint64_t{INT64_MAX} : value.get<int64_t>() < 0)
        fail(fmt::format("{} is {}: not from 0 to {}", name, value.dump(), INT64_MAX));
    to = value.get<int64_t>();
}

void SummaryReader::take(const ReadJson& value, const std::string& name, std::string& to, double) const {
    if (!value.is_string()) fail(name + " is no text");
    to = value.get<std::string>();
}

void SummaryReader::take(const ReadJson& value, const std::string& name, bool& to, double) const {
    if (!value.is_boolean()) fail(name + " is neither true nor false");
    to = value.get<bool>();
}

const ReadJson& SummaryReader::at(const char* key) const {
    const auto value = m_json.find(key);
    if (value == m_json.end())
        fail(std::string(key) + " is missing", std::string("it was made by another version; ") + kSaveAnew);
    return *value;
}

const ReadJson& SummaryReader::list(const ReadJson& value, const std::string& name) const {
    if (!value.is_array()) fail(name + " is no list");
    return value;
}

void SummaryReader::fail(const std::string& what, const std::string& hint) const {
    throw SummaryError(fmt::format("{}: {}{}", m_origin, m_place, what), hint);
}

ReadJson parseStrictJson(const std::string& text, const std::string& origin) {
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
        throw SummaryError(fmt::format("{}: the file is empty", origin), kHowItIsMade);
    if (text.starts_with("<<<<<<< ") || text.find("\n<<<<<<< ") != std::string::npos)
        throw SummaryError(fmt::format("{}: a merge left both sides in it (<<<<<<<)", origin),
                           "take either side whole: git checkout --ours FILE, or --theirs");
    std::vector<std::set<std::string>> open;  // the keys of every object that the parser is in
    const auto checkKey = [&](int, ReadJson::parse_event_t event, const ReadJson& parsed) {
        if (event == ReadJson::parse_event_t::object_start) open.emplace_back();
        if (event == ReadJson::parse_event_t::object_end) open.pop_back();
        if (event == ReadJson::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
            throw SummaryError(fmt::format("{}: the key {} is there twice in one object", origin,
                                           text::shortened(text::oneLine(parsed.get<std::string>()), kLongestReason)),
                               "take one of them, or save the run again");
        return true;
    };
    try {
        return store::parseJson(text, origin, checkKey);
    } catch (const store::Error& error) {
        throw SummaryError(error.what(), kHowItIsMade);
    } catch (const ReadJson::exception& error) {
        throw SummaryError(fmt::format("{}: no JSON: {}", origin, reasonOf(error.what())), kHowItIsMade);
    }
}

}  // namespace rankscope::compare
