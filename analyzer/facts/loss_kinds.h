// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace rankscope::facts {

/// The rank and another one compute on one device.
inline constexpr std::string_view kSharedDevice = "shared_device";

/// True for rows of the loss table, of warning or worse, that say that something was not recorded or could not be read.
/// The others are about what is all there: sources that contradict each other, numbers of ranks that nobody told,
/// clocks, ranks that share a device; or about stacks, by which no speed is judged.
constexpr bool isOfMissingRecords(std::string_view kind) {
    return kind != "link_peaks" && kind != "rank_unknown" && kind != "clock" && kind != "stacks" &&
           kind != kSharedDevice;
}

/// The ranks were never there at the same time: recordings of several runs, or clocks that nothing could tie.
inline constexpr std::string_view kRecordingsApart = "recordings_apart";

}  // namespace rankscope::facts
