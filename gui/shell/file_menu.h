// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QMainWindow>
#include <QMenu>

namespace rankscope::gui {

/// Opening runs from a window: by a dialog, from those opened last, beside the one that is shown, and by dropping them
/// onto the window. Each opens in a window of its own.
class FileMenu : public QObject {
    Q_OBJECT

  public:
    /// Fills the top of `menu`. `runs`: those that the window shows, as their user named them.
    FileMenu(QMainWindow& window, QMenu& menu, const QStringList& runs);

  protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    void open(const QStringList& runs);
    void fillRecent();

    QMainWindow& m_window;
    QMenu* m_recent;
    QStringList m_runs;  // whole paths
};

}  // namespace rankscope::gui
