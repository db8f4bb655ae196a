// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analyzer/cli/live/live_state.h"
#include "analyzer/text/terminal_text.h"

namespace rankscope::cli {

// For people: some lines, with a newline at the end.
std::string liveText(const LiveState& state, const text::Painter& paint);

// One object, on one line with a newline at the end: schema rankscope.top/1.
std::string liveJson(const LiveState& state);

// "power cap, too hot": why NVML says that clocks are low; empty: it does not say so.
std::string clocksEventsText(int64_t events);

}  // namespace rankscope::cli
