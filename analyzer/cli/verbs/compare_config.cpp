// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/verbs/compare_config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/compare/comparability.h"
#include "analyzer/compare/compare.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kKeys = "baseline, threshold.step, resolution.step, fail-on, allow, across";

[[noreturn]] void fail(const fs::path& file, const toml::node& node, const std::string& what,
                       const std::string& hint = {}) {
    throw VerbError(kExitInput,
                    text::oneLine(fmt::format("{}, line {}: {}", file.string(), node.source().begin.line, what)), hint);
}

double shareOf(const fs::path& file, const toml::node& node, const std::string& key) {
    std::optional<double> share;
    if (const auto text = node.value<std::string>(); node.is_string()) share = parseShare(*text);
    if (node.is_number()) share = node.value<double>();  // none: a whole number that no double holds
    if (!share || !(*share >= 0) || *share > 1)
        fail(file, node, fmt::format("{} is no share of the step from 0% to 100%", key), "write \"3%\", or 0.03");
    return *share;
}

/// { step = "3%" }
double stepShareOf(const fs::path& file, const toml::node& node, const std::string& key) {
    const toml::table* table = node.as_table();
    if (!table) fail(file, node, fmt::format("{} is no table", key), fmt::format("{}.step = \"3%\"", key));
    std::optional<double> share;
    for (const auto& [name, value] : *table) {
        if (name.str() != "step")
            fail(file, value, fmt::format("unknown key {}.{}", key, name.str()),
                 "only the step time decides: " + key + ".step");
        share = shareOf(file, value, key + ".step");
    }
    if (!share) fail(file, node, fmt::format("{} is empty", key), fmt::format("{}.step = \"3%\"", key));
    return *share;
}

template <typename Check>
std::vector<std::string> wordsOf(const fs::path& file, const toml::node& node, const std::string& key, Check&& check) {
    std::vector<std::string> words;
    const toml::array* array = node.as_array();
    if (!array && !node.is_string()) fail(file, node, fmt::format("{} is neither a text nor a list of texts", key));
    const auto add = [&](const toml::node& word) {
        if (!word.is_string()) fail(file, word, fmt::format("{} holds something that is no text", key));
        words.push_back(*word.value<std::string>());
        if (const std::string wrong = check(words.back()); !wrong.empty())
            fail(file, word, fmt::format("{}: {}", key, wrong));
    };
    if (!array) add(node);
    if (array)
        for (const toml::node& word : *array) add(word);
    return words;
}

std::string checkAcross(const std::string& word) {
    const auto& names = compare::acrossNames();
    if (text::contains(names, word)) return {};
    return fmt::format("{} is none of {}", word, text::joined(names));
}

void readCompareTable(const fs::path& file, const toml::table& table, CompareConfig& config) {
    for (const auto& [name, node] : table) {
        const std::string key(name.str());
        if (key == "baseline") {
            if (!node.is_string() || node.value<std::string>()->empty())
                fail(file, node, "baseline names no folder", "baseline = \"ci/baseline\"");
            config.baseline = (file.parent_path() / *node.value<std::string>()).string();
        } else if (key == "threshold") {
            config.stepThreshold = stepShareOf(file, node, key);
        } else if (key == "resolution") {
            config.resolution = stepShareOf(file, node, key);
        } else if (key == "fail-on") {
            config.failOn = wordsOf(file, node, key, compare::checkFailOn);
            if (config.failOn->empty()) fail(file, node, "fail-on is empty", "fail-on = [\"never\"] fails on nothing");
        } else if (key == "allow") {
            config.allow = wordsOf(file, node, key, compare::checkAllow);
        } else if (key == "across") {
            config.across = wordsOf(file, node, key, checkAcross);
        } else {
            fail(file, node, fmt::format("unknown key {} in [compare]", key), fmt::format("known are {}", kKeys));
        }
    }
}

}  // namespace

std::optional<double> parseShare(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    std::string rest = end;
    rest.erase(std::remove(rest.begin(), rest.end(), ' '), rest.end());
    if (end == text.c_str() || !std::isfinite(value) || value < 0 || (!rest.empty() && rest != "%"))
        return std::nullopt;
    return rest.empty() ? value : value / 100;
}

CompareConfig readCompareConfig(const fs::path& file) {
    CompareConfig config;
    const std::string text = readFile(file);
    try {
        const toml::table root = toml::parse(text, file.string());
        for (const auto& [name, node] : root) {
            if (name.str() != "compare")
                fail(file, node, fmt::format("unknown key {}", name.str()), "known is the table [compare]");
            if (!node.is_table()) fail(file, node, "compare is no table");
            readCompareTable(file, *node.as_table(), config);
        }
    } catch (const toml::parse_error& error) {
        throw VerbError(kExitInput,
                        fmt::format("{}, line {}: {}", file.string(), error.source().begin.line, error.description()),
                        "see https://toml.io for the syntax");
    }
    return config;
}

CompareConfig projectConfig(const std::string& asked) {
    if (!asked.empty()) return readCompareConfig(asked);
    namespace fs = std::filesystem;
    std::error_code ignored;
    if (fs::symlink_status(kProjectConfig, ignored).type() == fs::file_type::not_found) return {};
    const std::string obstacle = fs::is_directory(kProjectConfig, ignored) ? "is a folder" : obstacleAt(kProjectConfig);
    if (!obstacle.empty())
        throw VerbError(kExitInput, fmt::format("{} {}", kProjectConfig, obstacle),
                        "--config FILE reads settings from another place");  // without them the gate would be another
    return readCompareConfig(kProjectConfig);
}

}  // namespace rankscope::cli
