// SPDX-License-Identifier: Apache-2.0
// What a person likes, on every machine that shares the home: config.toml. What a project holds its runs to stands in
// the project's rankscope.toml, which `compare` reads; no key is in both.
#pragma once

#include <filesystem>
#include <string>

namespace rankscope::cli {

struct UserConfig {
    std::filesystem::path file;  // empty: there is none
    std::string color;           // as --color takes it; empty: not told
    std::string links;           // of the machines here, as run --links takes it; empty: not told
    bool dark = false;           // view.theme = "dark"
    // Why the file cannot be used, with its line, and what to do: all above but its name is as if there were none.
    std::string complaint, hint;
};

/// Returns $XDG_CONFIG_HOME/rankscope/config.toml, by default ~/.config/rankscope/config.toml (XDG Base Directory
/// Specification 0.8); empty where there is no home.
std::filesystem::path userConfigFile();

/// Reads that file, once.
const UserConfig& userConfig();

}  // namespace rankscope::cli
