// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace rankscope::collector {

/// Ends an import: tells the file, where in it (byte offset in the uncompressed text), why, and what to do about it.
class ImportError : public std::runtime_error {
  public:
    ImportError(const std::filesystem::path& file, uint64_t offset, const std::string& cause, const std::string& hint)
        : std::runtime_error(file.string() + ", offset " + std::to_string(offset) + ": " + cause +
                             (hint.empty() ? "" : "\nhint: " + hint)) {}
};

}  // namespace rankscope::collector
