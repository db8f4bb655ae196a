// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/lane_tree.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

namespace rankscope::gui {
namespace {

constexpr int kGroupHeight = 18;
constexpr int kSummaryHeight = 24;
constexpr int kMostCompactHeight = 12;  // half a line: its colours are still told apart
constexpr int kCompactGroupHeight = 2;
constexpr int kCompactRoom = 640;  // what a small screen has for all ranks
constexpr int kLaneHeight = 18;
constexpr int kCounterHeight = 36;

bool containsIgnoringCase(const std::string& text, const std::string& part) {
    const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
    return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

int heightOf(const Lane& lane) {
    return lane.kind == LaneKind::counter ? kCounterHeight : kLaneHeight;
}

void append(std::vector<Row>& rows, Row row) {
    row.top = rows.empty() ? 0 : rows.back().top + rows.back().height;
    rows.push_back(std::move(row));
}

}  // namespace

void LaneTree::setOutline(RunOutline outline, std::map<int32_t, ActivityBins> lines) {
    m_outline = std::move(outline);
    m_activityLines = std::move(lines);
    m_tracks.clear();
    m_troubles.clear();
    m_excerpts.clear();
    rebuild();
}

void LaneTree::setTracks(RankTracksPtr tracks) {
    const int32_t rank = tracks->rank;
    m_tracks[rank] = std::move(tracks);
    m_activityLines.erase(rank);
    rebuild();
}

ActivityView LaneTree::activity(int32_t rank) const {
    if (const RankTracks* loaded = tracks(rank)) return loaded->activityView();
    const auto line = m_activityLines.find(rank);
    return {line == m_activityLines.end() ? nullptr : &line->second, {}};
}

const RankTracks* LaneTree::tracks(int32_t rank) const {
    const auto found = m_tracks.find(rank);
    return found == m_tracks.end() ? nullptr : found->second.get();
}

const std::string& LaneTree::trouble(int32_t rank) const {
    static const std::string kNone;
    const auto found = m_troubles.find(rank);
    return found == m_troubles.end() ? kNone : found->second;
}

void LaneTree::setChoices(LaneChoices choices) {
    m_choices = std::move(choices);
    rebuild();
}

void LaneTree::toggleGroup(int64_t group) {
    if (m_choices.collapsedGroups.erase(group) == 0) m_choices.collapsedGroups.insert(group);
    rebuild();
}

void LaneTree::toggleRank(int32_t rank) {
    if (m_choices.expandedRanks.erase(rank) == 0) m_choices.expandedRanks.insert(rank);
    rebuild();
}

void LaneTree::expandRank(int32_t rank) {
    m_choices.expandedRanks.insert(rank);
    m_choices.hiddenRanks.erase(rank);
    for (const OutlineRank& known : m_outline.ranks) {
        if (known.rank != rank) continue;
        m_choices.collapsedGroups.erase(groupOf(known));
        if (!matchesRank(known)) m_choices.filter.clear();
    }
    rebuild();
}

void LaneTree::setAllExpanded(bool expanded) {
    m_choices.expandedRanks.clear();
    if (expanded)
        for (const OutlineRank& rank : m_outline.ranks) m_choices.expandedRanks.insert(rank.rank);
    rebuild();
}

void LaneTree::togglePin(int32_t rank) {
    auto& pinned = m_choices.pinnedRanks;
    const auto found = std::find(pinned.begin(), pinned.end(), rank);
    if (found == pinned.end())
        pinned.push_back(rank);
    else
        pinned.erase(found);
    rebuild();
}

void LaneTree::hideRank(int32_t rank) {
    m_choices.hiddenRanks.insert(rank);
    rebuild();
}

void LaneTree::showAll() {
    m_choices.hiddenRanks.clear();
    m_choices.hiddenLanes.clear();
    m_choices.filter.clear();
    rebuild();
}

void LaneTree::setFilter(std::string filter) {
    m_choices.filter = std::move(filter);
    rebuild();
}

void LaneTree::setExcerpts(std::vector<RankExcerpt> excerpts) {
    m_excerpts = std::move(excerpts);
    rebuild();
}

void LaneTree::moveRank(int32_t rank, int32_t before) {
    std::vector<int32_t> order;
    for (const OutlineRank* known : orderedRanks())
        if (known->rank != rank) order.push_back(known->rank);
    order.insert(std::find(order.begin(), order.end(), before), rank);
    setOrder(std::move(order));
}

void LaneTree::setOrder(std::vector<int32_t> ranks) {
    m_choices.order = std::move(ranks);
    rebuild();
}

void LaneTree::setGrouping(std::string grouping) {
    if (grouping == m_choices.grouping) return;
    m_choices.grouping = std::move(grouping);
    m_choices.collapsedGroups.clear();
    rebuild();
}

void LaneTree::setCompact(bool compact) {
    m_choices.compact = compact;
    rebuild();
}

std::vector<std::string> LaneTree::directions() const {
    std::set<std::string> names;
    for (const OutlineRank& rank : m_outline.ranks)
        for (const auto& [direction, place] : rank.places) names.insert(direction);
    return {names.begin(), names.end()};
}

const std::vector<int32_t>& LaneTree::ranksOf(int64_t group) const {
    static const std::vector<int32_t> kNone;
    const auto found = m_ranksOfGroup.find(group);
    return found == m_ranksOfGroup.end() ? kNone : found->second;
}

// -1: a rank without a place in that direction.
int64_t LaneTree::groupOf(const OutlineRank& rank) const {
    if (m_choices.grouping == LaneChoices::kByHost) return rank.host;
    const auto place = rank.places.find(m_choices.grouping);
    return place == rank.places.end() ? -1 : place->second;
}

std::vector<OutlineHost> LaneTree::groups() const {
    if (m_choices.grouping == LaneChoices::kByHost) return m_outline.hosts;
    std::set<int64_t> ids;
    for (const OutlineRank& rank : m_outline.ranks) ids.insert(groupOf(rank));
    std::vector<OutlineHost> groups;
    for (const int64_t id : ids)
        groups.push_back(
            {id, id < 0 ? "without a place in " + m_choices.grouping : m_choices.grouping + " " + std::to_string(id)});
    return groups;
}

int LaneTree::summaryHeight() const {
    const auto ranks = static_cast<int>(std::clamp<size_t>(m_outline.ranks.size(), 1, kCompactRoom));
    return m_choices.compact ? std::clamp(kCompactRoom / ranks, 1, kMostCompactHeight) : kSummaryHeight;
}

const Row* LaneTree::rowOf(const std::vector<Row>& rows, int32_t rank, uint32_t lane) {
    for (const Row& row : rows)
        if (row.kind == RowKind::lane && row.rank == rank && row.lane == lane) return &row;
    return nullptr;
}

const Row* LaneTree::summaryRow(const std::vector<Row>& rows, int32_t rank) {
    for (const Row& row : rows)
        if (row.kind == RowKind::summary && row.rank == rank) return &row;
    return nullptr;
}

const Row* LaneTree::rowAt(const std::vector<Row>& rows, int y) {
    const auto after =
        std::upper_bound(rows.begin(), rows.end(), y, [](int wanted, const Row& row) { return wanted < row.top; });
    if (after == rows.begin()) return nullptr;
    const Row& row = *std::prev(after);
    return y < row.top + row.height ? &row : nullptr;
}

bool LaneTree::matches(const std::string& label) const {
    return m_choices.filter.empty() || containsIgnoringCase(label, m_choices.filter);
}

bool LaneTree::matchesRank(const OutlineRank& rank) const {
    if (matches(rank.label)) return true;
    for (const OutlineHost& host : m_outline.hosts)
        if (host.host == rank.host && matches(host.label)) return true;
    if (const RankTracks* known = tracks(rank.rank))
        return std::any_of(known->lanes.begin(), known->lanes.end(),
                           [&](const Lane& lane) { return matches(lane.label); });
    return false;
}

std::vector<const OutlineRank*> LaneTree::orderedRanks() const {
    std::vector<const OutlineRank*> ranks;
    for (const OutlineRank& rank : m_outline.ranks) ranks.push_back(&rank);
    if (m_choices.order.empty()) return ranks;
    std::unordered_map<int32_t, size_t> places;
    for (size_t i = 0; i < m_choices.order.size(); ++i) places.emplace(m_choices.order[i], i);
    const auto place = [&](const OutlineRank* rank) {
        const auto found = places.find(rank->rank);
        return found == places.end() ? places.size() : found->second;
    };
    std::stable_sort(ranks.begin(), ranks.end(),
                     [&](const OutlineRank* a, const OutlineRank* b) { return place(a) < place(b); });
    return ranks;
}

void LaneTree::addRank(const OutlineRank& rank, int height, std::vector<Row>& rows) const {
    const bool expanded = m_choices.expandedRanks.count(rank.rank) > 0;
    const int64_t group = groupOf(rank);
    if (expanded) height = kSummaryHeight;
    append(rows, {RowKind::summary, group, rank.rank, 0, 0, height, expanded, false, rank.label});
    const RankTracks* known = tracks(rank.rank);
    if (!expanded || !known) return;
    // A filter that names the rank shows all of it; one that names lanes shows those.
    const bool byLane = !matches(rank.label) && std::any_of(known->lanes.begin(), known->lanes.end(),
                                                            [&](const Lane& lane) { return matches(lane.label); });
    for (uint32_t i = 0; i < known->lanes.size(); ++i) {
        const Lane& lane = known->lanes[i];
        if (m_choices.hiddenLanes.count(lane.label) > 0 || (byLane && !matches(lane.label))) continue;
        append(rows, {RowKind::lane, group, rank.rank, i, 0, heightOf(lane), false, false, lane.label});
    }
}

void LaneTree::addExcerpt(const OutlineRank& rank, const RankExcerpt& excerpt) {
    const int64_t group = groupOf(rank);
    append(m_pinned, {RowKind::summary, group, rank.rank, 0, 0, kSummaryHeight, true, true, rank.label});
    const RankTracks* known = tracks(rank.rank);
    for (const uint32_t lane : excerpt.lanes)
        if (known && lane < known->lanes.size())
            append(m_pinned, {RowKind::lane, group, rank.rank, lane, 0, heightOf(known->lanes[lane]), false, true,
                              known->lanes[lane].label});
}

void LaneTree::rebuild() {
    m_rows.clear();
    m_pinned.clear();
    const std::vector<const OutlineRank*> ranks = orderedRanks();
    const auto isExcerpt = [&](int32_t rank) {
        return std::ranges::find(m_excerpts, rank, &RankExcerpt::rank) != m_excerpts.end();
    };
    for (const RankExcerpt& excerpt : m_excerpts)
        for (const OutlineRank* rank : ranks)
            if (rank->rank == excerpt.rank) addExcerpt(*rank, excerpt);
    for (const int32_t pinned : m_choices.pinnedRanks)
        for (const OutlineRank* rank : ranks)
            if (rank->rank == pinned && !isExcerpt(pinned)) addRank(*rank, kSummaryHeight, m_pinned);
    std::map<int64_t, std::vector<const OutlineRank*>> shown;
    for (const OutlineRank* rank : ranks)
        if (m_choices.hiddenRanks.count(rank->rank) == 0 && matchesRank(*rank)) shown[groupOf(*rank)].push_back(rank);
    m_ranksOfGroup.clear();
    const bool grouped = m_choices.grouping != LaneChoices::kByNothing;
    // Above low lines a group's is a mere rule: with its own height it would take more room than its ranks.
    const int headHeight = m_choices.compact ? std::min(kCompactGroupHeight, summaryHeight()) : kGroupHeight;
    for (const OutlineHost& group : groups()) {
        const auto members = shown.find(group.host);
        if (members == shown.end()) continue;
        for (const OutlineRank* rank : members->second) m_ranksOfGroup[group.host].push_back(rank->rank);
        const bool expanded = m_choices.collapsedGroups.count(group.host) == 0;
        if (grouped)
            append(m_rows, {RowKind::group, group.host, -1, 0, 0, expanded ? headHeight : kSummaryHeight, expanded,
                            false, group.label});
        if (!expanded) continue;
        for (const OutlineRank* rank : members->second) addRank(*rank, summaryHeight(), m_rows);
    }
}

}  // namespace rankscope::gui
