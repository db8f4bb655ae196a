// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analyzer/recommend/tune.h"
#include "analyzer/text/plain_text.h"
#include "collector/store/bounded_json.h"
#include "collector/store/error.h"

namespace rankscope::recommend {
namespace {

using nlohmann::json;

/// Length of a variable's name at `at` that an equals sign follows; 0 if there is none.
size_t nameLength(const std::string& text, size_t at) {
    const auto isIn = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
    size_t end = at;
    while (end < text.size() && isIn(text[end])) ++end;
    const bool isName = end > at && !std::isdigit(static_cast<unsigned char>(text[at]));
    return isName && end < text.size() && text[end] == '=' ? end - at : 0;
}

void refuseOurOwn(const std::string& name, const std::string& where) {
    if (name.rfind("RANKSCOPE_", 0) == 0 || name == "LD_PRELOAD" || name == "NCCL_TUNER_PLUGIN" ||
        name == "NCCL_TUNER_CONFIG_FILE" || name == "NCCL_PROFILER_PLUGIN")
        throw store::Error(where, fmt::format("{} is set by Rankscope itself", name),
                           "tuner rows go into a file, --tuner FILE");
}

/// One line of a tuner file, from a string or from an object with its columns.
std::string tunerLine(const json& row, const std::string& where) {
    if (row.is_string()) return row.get<std::string>();
    if (!row.is_object()) throw store::Error(where, "a row of tuner_csv is neither a line nor an object", "");
    const auto number = [&](const char* key) {
        return row.contains(key) && row[key].is_number_integer() ? row[key].get<int64_t>() : -1;
    };
    const auto name = [&](const char* key) {
        return row.contains(key) && row[key].is_string() ? row[key].get<std::string>() : std::string();
    };
    return formatTunerRow({.collective = name("collective"),
                           .minBytes = number("min_bytes"),
                           .maxBytes = number("max_bytes"),
                           .algorithm = name("algorithm"),
                           .protocol = name("protocol"),
                           .channels = number("channels"),
                           .nodes = number("nodes"),
                           .ranks = number("ranks")});
}

TuneCandidate candidateOf(const json& entry, size_t index, const std::string& file) {
    const std::string where = fmt::format("{}, entry {}", file, index + 1);
    if (!entry.is_object()) throw store::Error(where, "no object", "");
    TuneCandidate candidate;
    for (const char* key : {"name", "title", "id"})
        if (candidate.name.empty() && entry.contains(key) && entry[key].is_string())
            candidate.name = entry[key].get<std::string>();
    if (candidate.name.empty()) candidate.name = fmt::format("candidate {}", index + 1);
    const json environment = entry.value("env", json::object());
    if (!environment.is_object()) throw store::Error(where, "env is no object", "write {\"NCCL_ALGO\": \"ring\"}");
    for (const auto& [name, value] : environment.items()) {
        refuseOurOwn(name, where);
        if (nameLength(name + "=", 0) != name.size() || name.empty())
            throw store::Error(where, fmt::format("'{}' is no variable's name", name), "");
        if (!value.is_null() && !value.is_string())
            throw store::Error(where, fmt::format("the value of {} is neither text nor null", name),
                               "null unsets the variable");
        candidate.environment[name] = value.is_null() ? std::nullopt : std::optional(value.get<std::string>());
    }
    const json rows = entry.value("tuner_csv", json::array());
    if (!rows.is_array()) throw store::Error(where, "tuner_csv is no list", "");
    std::string lines;
    for (const json& row : rows) lines += tunerLine(row, where) + "\n";
    if (!lines.empty()) {
        TunerFile read = parseTunerCsv(lines);
        if (!read.problems.empty())
            throw store::Error(fmt::format("{}, tuner row {}", where, read.problems[0].line), read.problems[0].what,
                               read.problems[0].hint);
        candidate.tunerRows = std::move(read.rows);
    }
    // A candidate is measured by itself: what it gains on top of other settings is another prediction.
    const json& predicted = entry.contains("alone") && entry["alone"].is_object() ? entry["alone"] : entry;
    if (predicted.contains("predicted_saving_ns") && predicted["predicted_saving_ns"].is_number())
        candidate.predictedSavingNs = predicted["predicted_saving_ns"].get<double>();
    if (const json interval = predicted.value("interval_ns", json());
        interval.is_array() && interval.size() == 2 && interval[0].is_number() && interval[1].is_number())
        candidate.predictedIntervalNs = {interval[0].get<double>(), interval[1].get<double>()};
    return candidate;
}

std::vector<TuneCandidate> fromJson(const std::string& file, const std::string& text,
                                    std::vector<std::string>& leftOut) {
    json root;
    try {
        root = store::parseJson(text, file);
    } catch (const json::parse_error& error) {
        throw store::Error(file, fmt::format("no JSON: {}", error.what()), "");
    }
    json entries = root;
    for (const char* key : {"recommendations", "candidates"})
        if (root.is_object() && root.contains(key)) entries = root[key];
    if (root.is_object() && entries.is_array())
        for (const json& other : root.value("alternatives", json::array())) entries.push_back(other);
    if (!entries.is_array())
        throw store::Error(file, "neither \"recommendations\" nor \"candidates\" in it",
                           "give what `rankscope recommend NAME --format json` prints");
    std::vector<TuneCandidate> candidates;
    for (size_t i = 0; i < entries.size(); ++i) {
        if (entries[i].is_object() && entries[i].value("kind", json("setting")) != "setting")
            continue;  // what no setting cures is no candidate
        TuneCandidate candidate = candidateOf(entries[i], i, file);
        if (candidate.environment.empty() && candidate.tunerRows.empty())
            leftOut.push_back(candidate.name);
        else
            candidates.push_back(std::move(candidate));
    }
    return candidates;
}

}  // namespace

TuneCandidate parseCandidate(const std::string& text) {
    TuneCandidate candidate;
    candidate.name = trimmed(text);
    const std::string where = fmt::format("candidate '{}'", candidate.name);
    for (size_t at = 0; at < candidate.name.size();) {
        const size_t length = nameLength(candidate.name, at);
        if (length == 0)
            throw store::Error(where, fmt::format("'{}' is no setting", candidate.name.substr(at)),
                               "write NAME=VALUE, and more of them behind commas");
        const std::string name = candidate.name.substr(at, length);
        refuseOurOwn(name, where);
        size_t end = at + length + 1;
        while (end < candidate.name.size() && !(candidate.name[end] == ',' && nameLength(candidate.name, end + 1) > 0))
            ++end;
        if (!candidate.environment.emplace(name, candidate.name.substr(at + length + 1, end - at - length - 1)).second)
            throw store::Error(where, fmt::format("{} is set twice", name), "");
        at = end + 1;
    }
    if (candidate.environment.empty())
        throw store::Error("a candidate", "is empty", "write NAME=VALUE, e.g. NCCL_ALGO=ring");
    return candidate;
}

std::vector<TuneCandidate> parseCandidates(const std::string& file, const std::string& text,
                                           std::vector<std::string>& leftOut) {
    const size_t first = text.find_first_not_of(" \t\r\n");
    if (first != std::string::npos && (text[first] == '{' || text[first] == '[')) return fromJson(file, text, leftOut);
    std::vector<TuneCandidate> candidates;
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        line = std::string(trimmed(line));
        if (line.empty() || line[0] == '#') continue;
        try {
            candidates.push_back(parseCandidate(line));
        } catch (const store::Error& error) {
            throw store::Error(fmt::format("{}, line {}", file, number), error.cause(), error.hint());
        }
    }
    return candidates;
}

std::string shellLines(const std::map<std::string, std::optional<std::string>>& environment, std::string_view mark) {
    std::string lines;
    for (const auto& [name, value] : environment)
        lines +=
            fmt::format("{}{}\n", mark, value ? "export " + name + "=" + text::shellQuoted(*value) : "unset " + name);
    return lines;
}

}  // namespace rankscope::recommend
