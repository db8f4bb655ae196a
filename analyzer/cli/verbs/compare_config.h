// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rankscope::cli {

/// Holds what a project wants of `rankscope compare`: table [compare] of rankscope.toml. The command line has the last
/// word.
struct CompareConfig {
    std::optional<std::string> baseline;  // folder; relative to the file
    std::optional<double> stepThreshold;  // share
    std::optional<double> resolution;     // share
    std::optional<std::vector<std::string>> failOn, allow, across;
};

/// Throws VerbError (exit code 3) that names file, line and key: for what is no TOML, for unknown keys, for values that
/// mean nothing.
CompareConfig readCompareConfig(const std::filesystem::path& file);

inline constexpr const char* kProjectConfig = "rankscope.toml";

/// Reads `asked`, or where that is empty kProjectConfig of the present folder; nothing is set where that is not there.
/// Throws VerbError as above, and for what is there and cannot be read: without it the gate would be another.
CompareConfig projectConfig(const std::string& asked = {});

/// "3%", "3 %" or "0.03": a share. Empty: it is none.
std::optional<double> parseShare(const std::string& text);

}  // namespace rankscope::cli
