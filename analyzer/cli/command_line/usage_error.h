// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace rankscope::cli {

/// What was wrong with a command line.
struct UsageError {
    std::string what, hint;
};

/// The first word that is no option of the program as a whole: the verb. Empty: there is none.
std::string verbWord(const std::vector<std::string>& words);

/// Names of the verbs that --help shows.
std::vector<std::string> verbNames(const CLI::App& app);

/// Says what is wrong in words of the command line: a word that was mistyped with the one that was meant, a forgotten
/// `--` with the command line that has it. `words`: as they were typed; `takesJob`: the verb runs a command behind
/// `--`, `hasMark`: one was given.
UsageError explainUsage(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words,
                        bool takesJob, bool hasMark);

/// The verb that was named, with the verbs inside it; the program itself where none was.
const CLI::App& chosenVerb(const CLI::App& app);

}  // namespace rankscope::cli
