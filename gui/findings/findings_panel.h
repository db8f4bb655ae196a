// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QTextBrowser>
#include <QTreeWidget>
#include <QUrl>
#include <QWidget>

#include "gui/findings/finding_tour.h"

namespace rankscope::gui {

/// Findings in the order of the report, and what the chosen one says. A click goes to its evidence.
class FindingsPanel : public QWidget {
    Q_OBJECT

  public:
    FindingsPanel(TimelineModel& model, FindingTour& tour, QWidget* parent = nullptr);

  private:
    void fill();
    void showFinding(const FindingInfo& finding);
    const FindingInfo* findingOf(const QTreeWidgetItem* item) const;
    void copyText(bool fixOnly) const;
    void follow(const QUrl& link);

    TimelineModel& m_model;
    FindingTour& m_tour;
    QLabel* m_head;
    QTreeWidget* m_list;
    QTextBrowser* m_text;
    QPushButton *m_copyAll, *m_copyFix;
};

/// A finding as plain text, for the clipboard.
QString findingText(const FindingInfo& finding);

}  // namespace rankscope::gui
