// SPDX-License-Identifier: Apache-2.0
#include "gui/pane/run_pane.h"

#include <QDockWidget>
#include <QVBoxLayout>

#include "gui/findings/caption_bar.h"
#include "gui/findings/findings_panel.h"
#include "gui/view/run_letter.h"

namespace rankscope::gui {

RunPane::RunPane(QString letter, QMainWindow& window)
    : QWidget(&window),
      m_letter(std::move(letter)),
      m_window(window),
      m_session(m_model),
      m_tour(m_model),
      m_links(m_model, m_session),
      m_head(new HeadBar(m_model, m_letter, this)),
      m_timeline(new TimelineView(m_model, this)),
      m_minimap(new Minimap(m_model, m_timeline->labelWidth(), m_timeline->scrollBarWidth(), this)) {
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_head);
    layout->addWidget(new CaptionBar(m_model, m_tour, this));
    layout->addWidget(m_minimap);
    layout->addWidget(m_timeline, 1);
    connect(m_timeline, &TimelineView::labelWidthChanged, m_minimap, &Minimap::setLeft);
    connect(&m_model, &TimelineModel::rankWanted, this, [this](int rank) { m_session.prefer({rank}); });
    connect(&m_tour, &FindingTour::arrived, this, [this] {
        if (!m_model.lanes().excerpts().empty()) m_timeline->scrollToRank(m_model.lanes().excerpts().front().rank);
    });
    connect(m_timeline, &TimelineView::flowWanted, this, [this](int direction) {
        m_links.follow(direction);
        m_timeline->scrollToSelection();
    });
    connect(m_timeline, &TimelineView::leaveWanted, this, [this] { m_tour.leave(); });
    connect(&m_session, &RunSession::loaded, this, [this] { m_tour.loadingEnded(); });
    connect(&m_model, &TimelineModel::selectionChanged, this, [this] {
        const EventRef selected = m_model.selection();
        if (!selected.valid()) {
            if (m_message.isEmpty()) return;
            m_message.clear();
            emit said({});  // what is no longer selected is not told of
            return;
        }
        const TrackEvent event = m_model.event(selected);
        m_message = QString("%1, %2, %3")
                        .arg(m_model.eventLabel(selected), QString::fromStdString(durationText(event.durNs)),
                             m_model.place(selected));
        emit said(m_message);
    });
    connect(&m_links, &LinkFollower::described, this,
            [this](const QString& sentence) { emit said(m_message + "  \u00b7  " + sentence); });
}

RunPane::~RunPane() = default;

void RunPane::addDocks(QMenu& panels) {
    m_findings = new QDockWidget(titleFor(m_letter, "Findings"), &m_window);
    m_findings->setObjectName(objectNameFor(m_letter, "findings-dock"));
    m_findings->setWidget(new FindingsPanel(m_model, m_tour, m_findings));
    m_window.addDockWidget(Qt::RightDockWidgetArea, m_findings);
    panels.addAction(m_findings->toggleViewAction());
    QWidget& keys = m_letter.isEmpty() ? static_cast<QWidget&>(m_window) : *this;
    m_tables = addTableDocks({m_window, keys, m_letter, *m_findings, panels}, *m_timeline, m_model, m_session);
    m_charts = new ChartDocks(m_window, panels, m_session, m_model, m_letter);
    connect(m_charts, &ChartDocks::jumped, m_timeline, &TimelineView::scrollToSelection);
}

void RunPane::setDark(bool dark) {
    m_head->setDark(dark);
    m_timeline->setDark(dark);
    m_minimap->setDark(dark);
    if (m_charts) m_charts->setDark(dark);
}

bool RunPane::isBusy() const {
    return m_session.isLoading() || m_session.isAsking() || (m_charts && m_charts->pending() > 0) ||
           !m_minimap->isUpToDate() || (m_tables.isBusy && m_tables.isBusy());
}

void RunPane::selectTimeInView() {
    if (!m_model.timeSelection()) m_model.selectTime(m_model.axis().visible());
}

}  // namespace rankscope::gui
