// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <memory>

namespace rankscope::cli {

/// Lays out what --help prints: lines of at most `columns` characters, and the job's command in the usage of verbs that
/// take one.
std::shared_ptr<CLI::Formatter> helpFormatter(size_t columns, std::function<bool(const CLI::App&)> takesJob);

}  // namespace rankscope::cli
