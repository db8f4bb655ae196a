// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gui/session/run_info.h"

namespace rankscope::gui {

/// One value of a row of trace.db.
struct Column {
    std::string name;
    bool null = false;
    int64_t integer = 0;
    std::string text;
};

/// What a value means, with its unit: ids by the names they stand for, codes by their words, NULL by what the schema
/// says it means. Safe to show.
std::string columnText(const RunInfo& run, std::string_view table, const Column& column);

std::string bytesText(int64_t bytes);                      ///< "16.0 MiB (16 777 216 bytes)"
std::string exactDuration(int64_t ns);                     ///< "1.25 ms (1 250 000 ns)"
std::string timeText(int64_t ns);                          ///< on the job clock: "1.234567890 s"
std::string groupedNumber(int64_t number);                 ///< "1 250 000"
std::string ranksText(const std::vector<int32_t>& ranks);  ///< "0-7, 12"

/// Text of a string id, safe to show; says so when there is none.
std::string stringText(const RunInfo& run, int64_t id);

}  // namespace rankscope::gui
