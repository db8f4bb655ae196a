// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTableWidget>
#include <QWidget>

#include "gui/session/sql_question.h"
#include "gui/table/latest_task.h"
#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// A question in SQL to trace.db, and its answer as a table. It is asked on a thread of its own and can change nothing.
class SqlPanel : public QWidget {
    Q_OBJECT

  public:
    explicit SqlPanel(TimelineModel& model, QWidget* parent = nullptr);

  protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    void ask();
    void showAnswer(const SqlAnswer& answer);
    void copy() const;

    TimelineModel& m_model;
    LatestTask m_task;
    QPlainTextEdit* m_question;
    QPushButton* m_run;
    QPushButton* m_copy;
    QLabel* m_status;
    QTableWidget* m_table;
};

}  // namespace rankscope::gui
