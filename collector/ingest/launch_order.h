// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// Host start of the call that carries a correlation id.
class LaunchTimes {
  public:
    explicit LaunchTimes(const std::vector<store::ApiCall>& calls);

    /// `fallbackNs` when nothing launched it: a trace without correlation.
    int64_t of(const std::optional<uint32_t>& correlationId, int64_t fallbackNs) const;

  private:
    std::vector<std::pair<uint32_t, int64_t>> m_times;
};

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
