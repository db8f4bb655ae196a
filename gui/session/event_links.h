// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/store/reader.h"
#include "gui/timeline/rank_tracks.h"

namespace rankscope::gui {

/// An event by its place in trace.db. For a step the row is its number.
struct EventLink {
    EventTable table = EventTable::none;
    int64_t rowId = 0;
    int32_t rank = -1;

    bool operator==(const EventLink&) const = default;
};

/// What an event has to do with others.
struct EventLinks {
    std::vector<EventLink> causes;   ///< the call that launched it
    std::vector<EventLink> effects;  ///< what it launched
    std::vector<EventLink>
        members;  ///< kernels of the other ranks in its collective, or of the other end of its message
    std::optional<EventLink> lastMember;  ///< the one that arrived last: the others waited for it
    std::string sentence;  ///< of the collective or message: what, how large, skew, who was last, wait, transfer; empty
                           ///< without one
};

/// Follows correlation ids, NCCL calls, collectives and messages. A row that does not exist has no links.
EventLinks findEventLinks(store::TraceReader& reader, const EventLink& row);

}  // namespace rankscope::gui
