// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "analyzer/compare/summary_file.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::compare {
namespace {

using Json = nlohmann::json;

constexpr const char* kHowItIsMade = "a baseline file is made by: rankscope baseline save NAME --dir DIR";
constexpr size_t kLongestReason = 300;
constexpr size_t kLongestLast = 60;  // of what was read last: the library repeats it whatever its size

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
