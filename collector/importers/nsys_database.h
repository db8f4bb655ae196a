// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "collector/importers/sqlite_source.h"

namespace rankscope::collector {

/// 73 years: no time is later, by a clock of the system or of the report, and sums of a few such times do not overflow.
inline constexpr int64_t kMostNsysNs = int64_t{1} << 61;
inline bool isNsysTime(std::optional<int64_t> timeNs) {
    return timeNs && *timeNs >= -kMostNsysNs && *timeNs <= kMostNsysNs;
}

/// An SQLite export of Nsight Systems ("lazy" ones leave out tables without rows).
class NsysDatabase : public SqliteSource {
  public:
    /// Throws ImportError for what is no database, or none of Nsight Systems.
    explicit NsysDatabase(const std::filesystem::path& file);

    /// The text of an id of StringIds; empty for an unknown one, and above 16 MiB. Valid until the next call.
    std::string_view string(int64_t id);
    /// Ids that string() was asked for whose text is too large.
    int64_t largeStrings() const { return static_cast<int64_t>(m_largeStrings.size()); }

    /// The value of META_DATA_CAPTURE by name; the first where there are several, empty where there is none.
    std::string captured(const std::string& name);

  private:
    std::optional<store::Statement> m_string;            // where ids are keys
    std::unordered_map<int64_t, std::string> m_strings;  // where they are none
    std::set<int64_t> m_largeStrings;
};

}  // namespace rankscope::collector
