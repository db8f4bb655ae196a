// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QTreeWidget>
#include <QWidget>

#include "gui/pane/run_pane.h"
#include "gui/session/run_difference.h"

namespace rankscope::gui {

/// What is different between two runs: step time and its parts, findings that came or went, kernels. A line leads to
/// where it can be seen, in both.
class DifferencesPanel : public QWidget {
    Q_OBJECT

  public:
    DifferencesPanel(RunPane& a, RunPane& b, QWidget* parent = nullptr);

    /// Reads both databases, off the GUI thread.
    void ask();
    bool isWaiting() const noexcept { return m_waiting; }

  private:
    void arrived();
    void fill();
    void addTimes(QTreeWidgetItem* parent, const TimeChange& change);
    void addRoles();
    void addFindings();
    void addKernels();
    void goTo(const QTreeWidgetItem* item);

    RunPane& m_a;
    RunPane& m_b;
    std::optional<RunSummary> m_ofA, m_ofB;
    RunDifference m_difference;
    bool m_waiting = true;
    QLabel* m_head;
    QTreeWidget* m_tree;
    QPushButton* m_copy;
};

}  // namespace rankscope::gui
