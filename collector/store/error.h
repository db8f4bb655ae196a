// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace rankscope::store {

/// Ends a verb: which file, what went wrong, what the user can do about it. what() holds the three in one line.
class Error : public std::runtime_error {
  public:
    Error(std::string file, std::string cause, std::string hint)
        : std::runtime_error(file + ": " + cause + (hint.empty() ? "" : " (" + hint + ")")),
          m_file(std::move(file)),
          m_cause(std::move(cause)),
          m_hint(std::move(hint)) {}

    const std::string& file() const noexcept { return m_file; }
    const std::string& cause() const noexcept { return m_cause; }
    const std::string& hint() const noexcept { return m_hint; }

  private:
    std::string m_file;
    std::string m_cause;
    std::string m_hint;
};

/// Another program holds the file.
class LockedFile : public Error {
  public:
    using Error::Error;
};

/// SQLite cannot make sense of the file.
class DamagedFile : public Error {
  public:
    using Error::Error;
};

}  // namespace rankscope::store
