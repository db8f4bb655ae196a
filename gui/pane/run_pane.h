// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>
#include <QMainWindow>
#include <QMenu>
#include <QWidget>

#include "gui/charts/chart_docks.h"
#include "gui/findings/finding_tour.h"
#include "gui/pane/link_follower.h"
#include "gui/run/run_session.h"
#include "gui/table/table_docks.h"
#include "gui/view/head_bar.h"
#include "gui/view/minimap.h"
#include "gui/view/timeline_view.h"

namespace rankscope::gui {

/// One run in the window: what is read of it, its timeline, and the docks that belong to it. A window has one, or two
/// that are compared.
class RunPane : public QWidget {
    Q_OBJECT

  public:
    /// `letter`: "A" or "B" where two runs are compared, else empty.
    RunPane(QString letter, QMainWindow& window);
    ~RunPane() override;

    /// Findings, tables and charts of this run, and their switches in `panels`.
    void addDocks(QMenu& panels);
    void setDark(bool dark);

    const QString& letter() const noexcept { return m_letter; }
    TimelineModel& model() { return m_model; }
    TimelineView& timeline() { return *m_timeline; }
    Minimap& minimap() { return *m_minimap; }
    RunSession& session() { return m_session; }
    FindingTour& tour() { return m_tour; }
    ChartDocks& charts() { return *m_charts; }
    QDockWidget* findingsDock() const { return m_findings; }
    QDockWidget* detailsDock() const { return m_tables.details; }
    /// Counts the statistics of what is in view, where no time is selected.
    void selectTimeInView();
    /// Questions to the database that are not answered yet.
    bool isBusy() const;

  signals:
    /// For the status bar.
    void said(QString message);

  private:
    QString nameOf(const char* dock) const;

    QString m_letter;
    QMainWindow& m_window;
    TimelineModel m_model;
    RunSession m_session;
    FindingTour m_tour;
    LinkFollower m_links;
    HeadBar* m_head;
    TimelineView* m_timeline;
    Minimap* m_minimap;
    ChartDocks* m_charts = nullptr;
    QDockWidget* m_findings = nullptr;
    TableDocks m_tables;
    QString m_message;
};

}  // namespace rankscope::gui
