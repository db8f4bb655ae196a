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
        : ImportError(file.string() + ", offset " + std::to_string(offset) + ": " + cause, hint) {}

    /// What is wrong and where; what() has the hint on a line below it.
    const std::string& problem() const noexcept { return m_problem; }
    /// Empty: nothing can be done about it.
    const std::string& hint() const noexcept { return m_hint; }

  private:
    ImportError(const std::string& problem, const std::string& hint)
        : std::runtime_error(problem + (hint.empty() ? "" : "\nhint: " + hint)), m_problem(problem), m_hint(hint) {}

    std::string m_problem, m_hint;
};

}  // namespace rankscope::collector
