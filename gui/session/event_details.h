// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/store/reader.h"
#include "gui/session/column_text.h"
#include "gui/session/event_links.h"
#include "gui/session/run_info.h"
#include "gui/timeline/rank_tracks.h"

namespace rankscope::gui {

struct DetailRow {
    std::string label;
    std::string value;              ///< safe to show
    std::optional<EventLink> link;  ///< the event that the line speaks of
};

struct DetailSection {
    std::string title;
    std::vector<DetailRow> rows;
};

/// Everything trace.db knows of an event.
struct EventDetails {
    std::string title;
    std::vector<DetailSection> sections;  ///< what it means first, its bare row last
    std::string sql;                      ///< returns its row
};

/// Throws store::Error where the file is damaged; what does not exist is said in the result.
EventDetails readEventDetails(store::TraceReader& reader, const RunInfo& run, const EventLink& event);

/// As plain text, for the clipboard.
std::string detailsText(const EventDetails& details);

/// SELECT that returns the event's row, with the name's text where it has one.
std::string selectOf(const EventLink& event);

/// All columns of the event's row, in the schema's order; empty when there is no such row.
std::vector<Column> readRow(store::TraceReader& reader, const EventLink& event);

/// What NCCL did in the call: its communicator, and what the members of the collective or message waited for. Nothing
/// for a call that does not exist.
std::vector<DetailSection> readCommunication(store::TraceReader& reader, int64_t callId);

}  // namespace rankscope::gui
