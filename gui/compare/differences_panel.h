// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QTreeWidget>
#include <QWidget>

#include "gui/pane/run_pane.h"
#include "gui/session/run_difference.h"
#include "gui/table/latest_task.h"

namespace rankscope::gui {

/// What `rankscope compare` says of two runs: verdict and causes, where the change is, findings that came or went,
/// other numbers, ranks, collectives and kernels. The line of a finding or kernel leads to where it can be seen, in
/// both.
class DifferencesPanel : public QWidget {
    Q_OBJECT

  public:
    DifferencesPanel(RunPane& a, RunPane& b, QWidget* parent = nullptr);

    /// Compares the two, off the GUI thread.
    void ask();
    bool isWaiting() const noexcept { return m_waiting; }

  signals:
    /// The comparison, or why there is none, is shown.
    void compared();

  private:
    void fill();
    void addAttribution();
    void addFindings();
    void addMetrics();
    void addRanks();
    void addCollectives();
    void addKernels();
    void goTo(const QTreeWidgetItem* item);

    RunPane& m_a;
    RunPane& m_b;
    RunDifference m_difference;
    bool m_waiting = true;
    QLabel* m_head;
    QTreeWidget* m_tree;
    QPushButton* m_copy;
    LatestTask m_comparing;  // the last member: nothing is answered any more when the others go
};

}  // namespace rankscope::gui
