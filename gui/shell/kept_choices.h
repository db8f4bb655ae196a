// SPDX-License-Identifier: Apache-2.0
// What the window remembers on this machine: rankscope/view.ini in the user's settings folder. Where that cannot be
// written nothing is remembered, and nothing fails.
#pragma once

#include <QMainWindow>
#include <QTimer>
#include <functional>

#include "gui/pane/run_pane.h"

namespace rankscope::gui {

/// Lanes that are pinned, hidden, collapsed or reordered, run by run, but not the filter; the last 100 runs are
/// remembered.
class KeptChoices : public QObject {
    Q_OBJECT

  public:
    /// Nothing is kept before restore() has been answered.
    explicit KeptChoices(RunPane& pane);
    ~KeptChoices() override;

    /// Brings back what was chosen for the pane's run, and calls `then`. Asks the database which run it is, off the GUI
    /// thread.
    void restore(std::function<void()> then);
    /// Back to what a run never seen before looks like; also next time.
    void forget();
    /// Writes what was changed a moment ago: the window closes.
    void finish();

  private:
    void keep();

    RunPane& m_pane;
    QString m_run;        // its identity; empty while unknown
    LaneChoices m_known;  // as kept
    QTimer m_soon;
};

/// Size, place and docks of windows of `panes` runs.
void keepLayout(const QMainWindow& window, size_t panes);
/// Where docks are; false when none was kept. The window's size only `withSize`.
bool restoreLayout(QMainWindow& window, size_t panes, bool withSize);
void forgetLayout(size_t panes);

/// Of the column of labels, in pixels; `otherwise` when none was kept.
void keepLabelWidth(int width);
int keptLabelWidth(int otherwise);
void forgetLabelWidth();

/// Runs that were shown, whole paths, the last one first.
void keepRecentFile(const QString& file);
QStringList recentFiles();

void keepDark(bool dark);
bool keptDark();

}  // namespace rankscope::gui
