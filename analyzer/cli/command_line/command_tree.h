// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace rankscope::cli {

/// An option or argument as manuals and shells need it.
struct CommandOption {
    std::vector<std::string> names;    // "-o", "--output"; an argument's own name alone
    std::string value;                 // what its value is called; empty: it takes none
    std::vector<std::string> choices;  // all values it takes, or those that are known; empty: any
    std::string fallback;              // the value when left out; empty: none
    std::string help;
    bool isArgument = false;
    bool isRequired = false;
    bool isRepeated = false;
};

/// A verb with its options and its own verbs; the first is the program itself.
struct CommandTree {
    std::vector<std::string> path;  // "rankscope", "reference", "run"
    std::string help, footer, usage;
    bool takesJob = false;
    std::vector<CommandOption> options;
    std::vector<CommandTree> verbs;
    std::string name() const { return path.back(); }
};

/// What a tree is asked of the program beside what CLI11 knows.
struct CommandFacts {
    std::function<bool(const CLI::App&)> takesJob;
    std::function<std::vector<std::string>(const CLI::Option*)> knownWords;  // of arguments that also take others
};

/// Reads the option tables. Verbs and options that --help does not show are left out.
CommandTree readCommandTree(const CLI::App& app, const CommandFacts& facts);

}  // namespace rankscope::cli
