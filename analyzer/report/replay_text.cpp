// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/replay_text.h"

#include <fmt/format.h>

#include "analyzer/report/units.h"

namespace rankscope::analyzer {

std::string replayText(const ReplaySection& replay) {
    if (!replay.error) return "no replay: " + replay.unavailable;
    return fmt::format("replay of the unchanged step: {} against {} measured (start to start), {:.2f} % off", durationText(*replay.predictedStepNs),
                       durationText(*replay.measuredStepNs), 100 * *replay.error);
}

}  // namespace rankscope::analyzer
