// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QJsonObject>
#include <QObject>
#include <QTimer>
#include <QWidget>

#include "gui/pane/run_pane.h"

namespace rankscope::gui {

/// Writes what the window shows to a JSON file whenever it changes: for tests that drive a real window, and for
/// scripts. On only where RANKSCOPE_VIEW_STATE names a file.
class StateLog : public QObject {
    Q_OBJECT

  public:
    /// `window` owns it. Positions in the file count from the window's upper left corner. Of a second run the file has
    /// the view only.
    static void attach(QWidget& window, RunPane& pane, RunPane* second);

  private:
    StateLog(QWidget& window, RunPane& pane, RunPane* second, QString file);
    void write() const;
    QJsonObject secondState() const;

    QWidget& m_window;
    RunPane& m_pane;
    RunPane* m_second;
    TimelineView& m_timeline;
    TimelineModel& m_model;
    QString m_file;
    QTimer m_soon;
    bool m_loaded = false;
};

}  // namespace rankscope::gui
