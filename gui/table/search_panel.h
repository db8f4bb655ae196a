// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QTableView>
#include <QTimer>
#include <QToolButton>
#include <QWidget>

#include "gui/table/event_table_model.h"
#include "gui/table/latest_task.h"
#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// Search box with filters over the table of what they find. A row goes to its event; every keystroke starts the search
/// anew, off the GUI thread.
class SearchPanel : public QWidget {
    Q_OBJECT

  public:
    explicit SearchPanel(TimelineModel& model, QWidget* parent = nullptr);

    /// Into the box, with its text selected.
    void focusBox();
    /// Searches for events of exactly this name.
    void setName(const QString& name);
    /// Next or previous event of the table; begins with what is in view, and again at the other end.
    void step(int direction);
    /// No search is running or waiting to run.
    bool isSettled() const noexcept { return !m_searching && !m_stale; }

  signals:
    /// An event was gone to.
    void jumped();
    /// Escape in the box: the user wants the timeline back.
    void left();

  protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void showEvent(QShowEvent* event) override;

  private:
    void makeFilters(QHBoxLayout* row);
    void makeTable();
    void changed();  ///< something was typed or chosen
    void search();
    bool readRequest();  ///< false when a filter is wrong, which is said
    void show(SearchResult result);
    void tell(const QString& text, bool wrong = false);
    void goTo(int row);
    void markRow(int row);
    void markHits(const SearchResult& result);
    QString countText(const SearchResult& result) const;

    TimelineModel& m_model;
    LatestTask m_task;
    EventTableModel m_events;
    SearchRequest m_request;
    QTimer m_again;  // ranks that were loaded since are searched too, not each at once
    size_t m_ranksSearched = 0;
    bool m_searching = false;
    bool m_stale = true;      // not searched since the last change: the panel was hidden
    bool m_marking = false;   // the table's current row follows the selection, not the other way round
    int m_stepWhenFound = 0;  // Enter was pressed before the search had ended
    QLineEdit* m_box;
    QToolButton* m_case;
    QComboBox* m_class;
    QLineEdit* m_duration;
    QLineEdit* m_ranks;
    QCheckBox* m_within;
    QLabel* m_status;
    QTableView* m_table;
};

}  // namespace rankscope::gui
