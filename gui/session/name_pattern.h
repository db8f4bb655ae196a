// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace rankscope::gui {

/// A regular expression that names are searched for: POSIX extended (man 7 regex) with \d, \w, \s and \b. Its time is
/// bounded (at worst the square of the length that is looked at) and it does not recurse, so that neither a name of a
/// hostile file nor a half-typed expression can hang or crash the search. Used by one thread at a time.
class NamePattern {
  public:
    static constexpr size_t kMaxName = 8192;  ///< bytes of a name that are looked at

    /// An empty expression matches every name. Never throws: see error().
    NamePattern(const std::string& expression, bool caseSensitive);
    ~NamePattern();

    /// What is wrong with the expression, for people; empty when nothing is.
    const std::string& error() const noexcept { return m_error; }
    bool matchesAll() const noexcept { return !m_compiled && m_error.empty(); }
    /// True when a part of `name` matches; false while error().
    bool matches(std::string_view name) const;

  private:
    struct Compiled;
    std::unique_ptr<Compiled> m_compiled;
    std::string m_error;
};

}  // namespace rankscope::gui
