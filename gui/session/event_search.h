// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gui/session/event_filter.h"
#include "gui/session/run_info.h"
#include "gui/timeline/rank_tracks.h"

namespace rankscope::gui {

enum class SearchOrder : uint8_t { start, duration, name, rank, lane };

struct SearchRequest {
    std::string pattern;  ///< regular expression for the name (NamePattern); empty: any
    bool caseSensitive = false;
    DurationBounds duration;
    std::vector<RankInterval> ranks;  ///< empty: all
    EventClass events = EventClass::any;
    std::optional<TimeRange> within;  ///< only what overlaps it
    SearchOrder order = SearchOrder::start;
    bool descending = false;
    size_t limit = 10'000;  ///< most hits that are kept: the first ones in the order asked for
};

struct SearchHit {
    EventRef ref;
    EventTable table = EventTable::none;
    TrackEvent event;
};

struct SearchResult {
    std::vector<SearchHit> hits;  ///< in the order asked for; equal ones by start, then rank
    size_t found = 0;             ///< events that match, kept or not
    int64_t foundNs = 0;          ///< their durations added up
    std::string error;            ///< the expression is wrong, and how
    bool cancelled = false;       ///< the rest means nothing
};

/// Looks at names first, once each, then at the events. Reads immutable data only, so it may run on any thread;
/// `cancelled` ends it within milliseconds.
SearchResult searchEvents(const SearchRequest& request, const RunInfo& run, std::span<const RankTracksPtr> tracks,
                          const std::atomic<bool>& cancelled);

}  // namespace rankscope::gui
