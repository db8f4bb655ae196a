// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "collector/store/reader.h"

namespace rankscope::gui {

/// What a question in SQL is answered with; safe to show.
struct SqlAnswer {
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows;  ///< NULL is an empty text
    bool cut = false;                            ///< there are more rows, or the time was up: `rows` are the first
    std::string wrong;                           ///< why there is no answer; empty where there is one
};

inline constexpr size_t kMostSqlRows = 10'000;
inline constexpr int64_t kMostSqlSeconds = 60;

/// Asks one SELECT. Whatever else is asked is refused: nothing of the file, nor any other, can be changed or attached.
/// Ends early once `cancelled` is set.
SqlAnswer askSql(store::TraceReader& reader, const std::string& sql, const std::atomic<bool>& cancelled);

}  // namespace rankscope::gui
