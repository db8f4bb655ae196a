// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gui/timeline/rank_tracks.h"

namespace rankscope::gui {

struct OutlineRank {
    int32_t rank = 0;
    int64_t host = 0;
    std::string label;  ///< "rank 3", with what is special about it: "rank 3 (died)"
    /// Where it stands in the job's grid, by the grid's directions: "dp" 1, "tp" 0; empty where that is unknown.
    std::map<std::string, int> places;
};

struct OutlineHost {
    int64_t host = 0;
    std::string label;
};

/// What is known of a run before its events are loaded.
struct RunOutline {
    std::vector<OutlineHost> hosts;
    std::vector<OutlineRank> ranks;  ///< by rank
};

/// group: the line above ranks that stand together.
enum class RowKind : uint8_t { group, summary, lane };

/// A line on screen.
struct Row {
    RowKind kind = RowKind::lane;
    int64_t group = 0;  ///< a host's id, or a place in a direction of the grid
    int32_t rank = -1;  ///< -1: a group's line
    uint32_t lane = 0;  ///< index in RankTracks::lanes, for kind lane
    int top = 0;        ///< pixels from the first row of its area
    int height = 0;
    bool expanded = false;  ///< its children are shown
    bool excerpt = false;   ///< of a RankExcerpt
    std::string label;
};

/// A rank with the lanes of it that something is seen on.
struct RankExcerpt {
    int32_t rank = -1;
    std::vector<uint32_t> lanes;  ///< indices in RankTracks::lanes

    bool operator==(const RankExcerpt&) const = default;
};

/// What the user chose to see; kept per run.
struct LaneChoices {
    /// What ranks stand together by: kByHost, kByNothing, or a direction of OutlineRank::places.
    std::string grouping = kByHost;
    bool compact = false;               ///< ranks' lines are as low as brings all of them into sight, down to a pixel
    std::set<int64_t> collapsedGroups;  ///< of the grouping in force
    std::set<int32_t> expandedRanks;
    std::set<int32_t> hiddenRanks;
    std::set<std::string> hiddenLanes;  ///< by label, on all ranks
    std::vector<int32_t> pinnedRanks;   ///< in the order pinned
    std::vector<int32_t> order;         ///< ranks that were moved: shown in this order; the others follow
    std::string filter;                 ///< part of a rank's, host's or lane's label; letters' case does not matter

    static constexpr const char *kByHost = "host", *kByNothing = "";

    bool operator==(const LaneChoices&) const = default;
};

/// Lines up hosts, ranks and lanes by the user's choices. GUI thread only.
class LaneTree {
  public:
    /// `lines`: what the analysis left of each rank's GPU, to be drawn until its events are loaded.
    void setOutline(RunOutline outline, std::map<int32_t, ActivityBins> lines = {});
    void setTracks(RankTracksPtr tracks);
    const RankTracks* tracks(int32_t rank) const;
    /// Without bins where nothing is known of the rank.
    ActivityView activity(int32_t rank) const;
    /// Why a rank's events are not shown, or not all of them: "not readable: …". Empty where there is nothing to say.
    void setTrouble(int32_t rank, std::string trouble) { m_troubles[rank] = std::move(trouble); }
    const std::string& trouble(int32_t rank) const;
    const std::map<int32_t, RankTracksPtr>& loaded() const noexcept { return m_tracks; }
    const RunOutline& outline() const noexcept { return m_outline; }

    const LaneChoices& choices() const noexcept { return m_choices; }
    void setChoices(LaneChoices choices);
    void toggleGroup(int64_t group);
    void toggleRank(int32_t rank);
    void expandRank(int32_t rank);  ///< also its group, and out of hiding and filter
    void setAllExpanded(bool expanded);
    void togglePin(int32_t rank);
    void hideRank(int32_t rank);
    void showAll();  ///< nothing hidden, no filter
    void setFilter(std::string filter);
    /// Shown above pinned ranks for as long as something is said of them, whatever is hidden or filtered; not among the
    /// choices.
    void setExcerpts(std::vector<RankExcerpt> excerpts);
    const std::vector<RankExcerpt>& excerpts() const noexcept { return m_excerpts; }
    /// Moves a rank before another one; to the end when `before` is none of the run's.
    void moveRank(int32_t rank, int32_t before);
    /// Within their groups; empty: by number.
    void setOrder(std::vector<int32_t> ranks);
    /// All groups are open then.
    void setGrouping(std::string grouping);
    void setCompact(bool compact);
    /// Directions of the grid that ranks can stand together by.
    std::vector<std::string> directions() const;
    /// Ranks below a group's line that are neither hidden nor filtered, shown or collapsed.
    const std::vector<int32_t>& ranksOf(int64_t group) const;

    /// Rows that scroll, from top 0.
    const std::vector<Row>& rows() const noexcept { return m_rows; }
    int height() const noexcept { return m_rows.empty() ? 0 : m_rows.back().top + m_rows.back().height; }
    /// Rows of excerpts and pinned ranks, which stay in sight above the others.
    const std::vector<Row>& pinnedRows() const noexcept { return m_pinned; }
    int pinnedHeight() const noexcept { return m_pinned.empty() ? 0 : m_pinned.back().top + m_pinned.back().height; }
    /// Row of this lane among `rows`, or nullptr.
    static const Row* rowOf(const std::vector<Row>& rows, int32_t rank, uint32_t lane);
    static const Row* summaryRow(const std::vector<Row>& rows, int32_t rank);
    /// Row at `y` pixels, or nullptr.
    static const Row* rowAt(const std::vector<Row>& rows, int y);

  private:
    void rebuild();
    int64_t groupOf(const OutlineRank& rank) const;
    std::vector<OutlineHost> groups() const;
    int summaryHeight() const;
    void addRank(const OutlineRank& rank, int height, std::vector<Row>& rows) const;
    void addExcerpt(const OutlineRank& rank, const RankExcerpt& excerpt);
    bool matches(const std::string& label) const;
    bool matchesRank(const OutlineRank& rank) const;
    std::vector<const OutlineRank*> orderedRanks() const;

    RunOutline m_outline;
    std::map<int32_t, RankTracksPtr> m_tracks;
    std::map<int32_t, ActivityBins> m_activityLines;  // of ranks that are not loaded
    std::map<int32_t, std::string> m_troubles;
    LaneChoices m_choices;
    std::vector<RankExcerpt> m_excerpts;
    std::map<int64_t, std::vector<int32_t>> m_ranksOfGroup;
    std::vector<Row> m_rows;
    std::vector<Row> m_pinned;
};

}  // namespace rankscope::gui
