// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gui/session/run_info.h"
#include "gui/timeline/rank_tracks.h"

namespace rankscope::gui {

/// What an event is called, as it stands in the file: to be shown only through displayText(). Empty when its string
/// does not exist.
std::string eventName(const RunInfo& run, EventTable table, const TrackEvent& event);

/// Numbers all names that events of a run can have, so that a name is looked at once and not with every event. Refers
/// to the run, which must live on.
class EventNames {
  public:
    explicit EventNames(const RunInfo& run);

    size_t size() const noexcept { return m_run.strings.size() + m_fixed.size(); }
    /// Name number of an event, below size().
    size_t index(EventTable table, uint32_t name, uint32_t row) const noexcept;
    std::string_view text(size_t index) const noexcept;

  private:
    const RunInfo& m_run;
    std::vector<int32_t> m_steps;      // step numbers of the run, ascending
    std::vector<std::string> m_fixed;  // nothing, memset, copies, NCCL operations, causes of idleness, steps
};

}  // namespace rankscope::gui
