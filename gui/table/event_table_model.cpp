// SPDX-License-Identifier: Apache-2.0
#include "gui/table/event_table_model.h"

#include <algorithm>

#include "gui/session/column_text.h"
#include "gui/timeline/display_text.h"

namespace rankscope::gui {

EventTableModel::EventTableModel(TimelineModel& timeline, QObject* parent)
    : QAbstractTableModel(parent), m_timeline(timeline) {}

void EventTableModel::setHits(std::vector<SearchHit> hits) {
    beginResetModel();
    m_hits = std::move(hits);
    endResetModel();
}

int EventTableModel::rowOf(EventRef event) const {
    const auto found =
        std::find_if(m_hits.begin(), m_hits.end(), [&](const SearchHit& hit) { return hit.ref == event; });
    return found == m_hits.end() ? -1 : static_cast<int>(found - m_hits.begin());
}

SearchOrder EventTableModel::orderOf(int column) {
    switch (column) {
        case durationColumn:
            return SearchOrder::duration;
        case nameColumn:
            return SearchOrder::name;
        case rankColumn:
            return SearchOrder::rank;
        case laneColumn:
            return SearchOrder::lane;
        default:
            return SearchOrder::start;
    }
}

int EventTableModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_hits.size());
}

int EventTableModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : columns;
}

QVariant EventTableModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() < 0 || static_cast<size_t>(index.row()) >= m_hits.size()) return {};
    const SearchHit& hit = m_hits[static_cast<size_t>(index.row())];
    if (role == Qt::DisplayRole) return text(hit, index.column());
    if (role == Qt::ToolTipRole && index.column() == durationColumn)
        return QString::fromStdString(exactDuration(hit.event.durNs));
    if (role == Qt::ToolTipRole && index.column() == nameColumn)
        return "<p>" + m_timeline.eventName(hit.table, hit.event).toHtmlEscaped() + "</p>";
    if (role == Qt::TextAlignmentRole && index.column() <= durationColumn)
        return static_cast<int>(Qt::AlignRight | Qt::AlignVCenter);
    return {};
}

QString EventTableModel::text(const SearchHit& hit, int column) const {
    switch (column) {
        case startColumn:
            return QString::fromStdString(timeText(hit.event.startNs));
        case durationColumn:
            return QString::fromStdString(durationText(hit.event.durNs));
        case nameColumn:
            return m_timeline.eventLabel(hit.table, hit.event);
        case rankColumn:
            return QString::number(hit.ref.rank);
        case laneColumn: {
            const RankTracks* tracks = m_timeline.lanes().tracks(hit.ref.rank);
            return tracks && hit.ref.lane < tracks->lanes.size()
                       ? QString::fromStdString(displayText(tracks->lanes[hit.ref.lane].label))
                       : QString();
        }
        default:
            return {};
    }
}

QVariant EventTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
    constexpr const char* kTitles[columns] = {"Start", "Duration", "Name", "Rank", "Lane"};
    return section >= 0 && section < columns ? QVariant(kTitles[section]) : QVariant();
}

void EventTableModel::sort(int column, Qt::SortOrder order) {
    emit sortWanted(orderOf(column), order == Qt::DescendingOrder);
}

}  // namespace rankscope::gui
