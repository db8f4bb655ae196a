// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// When the device is done with what the host had launched by a given time.
class LaunchOrder {
  public:
    explicit LaunchOrder(const RankRecording& recording);

    /// The later of `hostNs` and the end of all device activity launched before it.
    int64_t drainedNs(int64_t hostNs) const;

  private:
    std::vector<std::pair<int64_t, int64_t>>
        m_endByLaunch;  ///< launch time, latest end of everything launched up to it
};

}  // namespace rankscope::collector
