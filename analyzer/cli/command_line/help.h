// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace rankscope::cli {

/// Lays out what --help prints: lines of at most `columns` characters. `jobWords`: what the usage of a verb says of a
/// job's command, behind its own options; empty: the verb takes none.
std::shared_ptr<CLI::Formatter> helpFormatter(size_t columns, std::function<std::string(const CLI::App&)> jobWords);

}  // namespace rankscope::cli
