// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QAbstractTableModel>

#include "gui/session/event_search.h"
#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// The hits of a search as rows. Sorting is left to the search, which also knows the hits that are not kept.
class EventTableModel : public QAbstractTableModel {
    Q_OBJECT

  public:
    enum Column { startColumn, durationColumn, nameColumn, rankColumn, laneColumn, columns };

    explicit EventTableModel(TimelineModel& timeline, QObject* parent = nullptr);

    void setHits(std::vector<SearchHit> hits);
    const std::vector<SearchHit>& hits() const noexcept { return m_hits; }
    /// Row of an event, or -1.
    int rowOf(EventRef event) const;
    static SearchOrder orderOf(int column);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    void sort(int column, Qt::SortOrder order) override;

  signals:
    void sortWanted(rankscope::gui::SearchOrder order, bool descending);

  private:
    QString text(const SearchHit& hit, int column) const;

    TimelineModel& m_timeline;
    std::vector<SearchHit> m_hits;
};

}  // namespace rankscope::gui
