// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "collector/ingest/packed_events.h"
#include "collector/ingest/rank_summary.h"

namespace rankscope::collector {

/// The recordings of the ranks that this process reads: each is prepared and summarised, side by side with others, and
/// then taken. Meanwhile their events are packed where there are several; those that do not fit into memory even so are
/// loaded and prepared a second time.
class RankSources {
  public:
    using Load = std::function<RankRecording()>;

    /// `load` is called once or twice, on any thread, and must return the same recording each time.
    void add(int32_t rank, Load load);
    void add(RankRecording recording);

    size_t size() const { return m_sources.size(); }
    int32_t rank(size_t index) const { return m_sources[index].rank; }

    /// Sorts them by rank and returns the summaries in that order. `threads` at a time, 0: one per core; keeps up to
    /// `keepBytes` of packed events. `look` sees each prepared recording, on any thread. What a load throws is
    /// thrown here.
    std::vector<RankSummary> prepareAll(unsigned threads, uint64_t keepBytes,
                                        const std::function<void(size_t, RankRecording&)>& look = nullptr);
    /// The prepared recording; once for each, from any thread.
    std::unique_ptr<RankRecording> take(size_t index);

  private:
    struct Source {
        int32_t rank = 0;
        Load load;
        std::unique_ptr<RankRecording> kept;  ///< prepared, or not yet prepared when `ready` is false
        std::optional<PackedEvents> events;   ///< of what is prepared and kept; none: they are in `kept`
        bool ready = false;
        bool mustKeep = false;  ///< there is nothing to load it from again
    };

    std::vector<Source> m_sources;
    std::atomic<uint64_t> m_keptBytes{0};
};

}  // namespace rankscope::collector
