// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/user_config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/nearest_word.h"
#include "analyzer/text/plain_text.h"
#include "collector/store/link_spec.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuseSetting(const fs::path& file, const toml::source_position& at, const std::string& what,
                                const std::string& hint) {
    throw VerbError(kExitInput, text::oneLine(fmt::format("{}, line {}: {}", file.string(), at.line, what)), hint);
}

std::string textOf(const fs::path& file, const toml::node& node, std::string_view key) {
    const auto value = node.value<std::string>();
    if (!node.is_string() || !value)
        refuseSetting(file, node.source().begin, fmt::format("{} is no text", key),
                      fmt::format("write {} = \"…\"", key));
    return *value;
}

std::string choiceOf(const fs::path& file, const toml::node& node, std::string_view key,
                     const std::vector<std::string>& choices) {
    std::string value = textOf(file, node, key);
    if (!text::contains(choices, value))
        refuseSetting(file, node.source().begin, fmt::format("{} is '{}'", key, value),
                      text::didYouMean(value, choices) + "write " + text::joined(choices, " or "));
    return value;
}

[[noreturn]] void refuseKey(const fs::path& file, const toml::node& node, const std::string& key,
                            const std::vector<std::string>& known) {
    refuseSetting(file, node.source().begin, fmt::format("there is no setting {}", key),
                  text::didYouMean(key, known) + "settings: " + text::joined(known) +
                      "; what a project holds its runs to stands in its rankscope.toml");
}

std::string linksOf(const fs::path& file, const toml::node& node) {
    std::string links = textOf(file, node, "links");
    if (const store::LinkSpec spec = store::parseLinkSpec(links); !spec.complaint.empty())
        refuseSetting(file, node.source().begin, "links: " + spec.complaint, "write it as --links takes it");
    return links;
}

UserConfig readConfig(const fs::path& file) {
    const std::vector<std::string> keys = {"color", "links", "view.theme"};
    UserConfig config{.file = file};
    toml::table table;
    try {
        table = toml::parse(readFile(file), file.string());
    } catch (const toml::parse_error& error) {
        refuseSetting(file, error.source().begin, std::string(error.description()), "it is TOML: color = \"never\"");
    }
    for (const auto& [name, node] : table) {
        const std::string key(name.str());
        if (key == "color") {
            config.color = choiceOf(file, node, key, {"auto", "always", "never"});
        } else if (key == "links") {
            config.links = linksOf(file, node);
        } else if (const toml::table* view = node.as_table(); key == "view" && view != nullptr) {
            for (const auto& [inner, value] : *view) {
                if (inner.str() != "theme") refuseKey(file, value, "view." + std::string(inner.str()), keys);
                config.dark = choiceOf(file, value, "view.theme", {"light", "dark"}) == "dark";
            }
        } else {
            refuseKey(file, node, key, keys);
        }
    }
    return config;
}

}  // namespace

fs::path userConfigFile() {
    const char* folder = std::getenv("XDG_CONFIG_HOME");
    // A relative one is to be ignored, says the specification.
    if (folder != nullptr && *folder == '/') return fs::path(folder) / "rankscope/config.toml";
    const char* home = std::getenv("HOME");
    return home != nullptr && *home == '/' ? fs::path(home) / ".config/rankscope/config.toml" : fs::path();
}

const UserConfig& userConfig() {
    static const UserConfig kConfig = [] {
        const fs::path file = userConfigFile();
        std::error_code ignored;
        if (file.empty() || !fs::exists(file, ignored)) return UserConfig();
        try {
            return readConfig(file);
        } catch (const VerbError& error) {
            return UserConfig{.file = file, .complaint = error.what(), .hint = error.hint()};
        }
    }();
    return kConfig;
}

}  // namespace rankscope::cli
