// SPDX-License-Identifier: Apache-2.0
#include "gui/shell/state_log.h"

#include <QDockWidget>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QSaveFile>
#include <QTreeWidget>

#include "gui/compare/differences_panel.h"
#include "gui/table/range_panel.h"

namespace rankscope::gui {
namespace {

QJsonArray range(TimeRange time) {
    return {static_cast<double>(time.beginNs), static_cast<double>(time.endNs)};
}

QJsonArray area(const QWidget& widget, const QRectF& local, const QWidget& window) {
    const QPoint corner = widget.mapTo(&window, local.topLeft().toPoint());
    return {corner.x(), corner.y(), static_cast<int>(local.width()), static_cast<int>(local.height())};
}

QString dockOf(const QWidget& widget) {
    const QWidget* dock = &widget;
    while (dock && !qobject_cast<const QDockWidget*>(dock)) dock = dock->parentWidget();
    return dock ? dock->objectName() : QString();
}

}  // namespace

void StateLog::attach(QWidget& window, RunPane& pane, RunPane* second) {
    const QString file = qEnvironmentVariable("RANKSCOPE_VIEW_STATE");
    if (file.isEmpty()) return;
    auto* log = new StateLog(window, pane, second, file);
    connect(&pane.session(), &RunSession::waiting, &log->m_soon, qOverload<>(&QTimer::start));
    connect(&pane.session(), &RunSession::loaded, log, [log] {
        log->m_loaded = true;
        log->m_soon.start();
    });
}

StateLog::StateLog(QWidget& window, RunPane& pane, RunPane* second, QString file)
    : QObject(&window),
      m_window(window),
      m_pane(pane),
      m_second(second),
      m_timeline(pane.timeline()),
      m_model(pane.model()),
      m_file(std::move(file)) {
    m_soon.setSingleShot(true);
    for (const RangePanel* panel : window.findChildren<RangePanel*>())
        connect(panel, &RangePanel::counted, &m_soon, qOverload<>(&QTimer::start));
    for (const DifferencesPanel* panel : window.findChildren<DifferencesPanel*>())
        connect(panel, &DifferencesPanel::compared, &m_soon, qOverload<>(&QTimer::start));
    connect(&pane.charts(), &ChartDocks::chartReady, &m_soon, qOverload<>(&QTimer::start));
    m_soon.setInterval(30);
    connect(&m_soon, &QTimer::timeout, this, &StateLog::write);
    for (const auto changed : {&TimelineModel::viewChanged, &TimelineModel::timeSelectionChanged})
        if (m_second) connect(&m_second->model(), changed, &m_soon, qOverload<>(&QTimer::start));
    for (const auto changed :
         {&TimelineModel::viewChanged, &TimelineModel::lanesChanged, &TimelineModel::selectionChanged,
          &TimelineModel::timeSelectionChanged, &TimelineModel::marksChanged})
        connect(&m_model, changed, &m_soon, qOverload<>(&QTimer::start));
}

QJsonObject StateLog::secondState() const {
    const TimelineModel& model = m_second->model();
    QJsonObject state{{"loaded", !m_second->session().isLoading()},
                      {"visible", range(model.axis().visible())},
                      {"whole", range(model.axis().whole())},
                      {"lanes", area(m_second->timeline(),
                                     QRectF(m_second->timeline().labelWidth(), 0, model.axis().width(),
                                            m_second->timeline().height()),
                                     m_window)}};
    if (const auto time = model.timeSelection()) state["time_selection"] = range(*time);
    if (model.anchor() && m_model.anchor())
        state["anchor"] = QJsonArray{static_cast<double>(m_model.anchor()->ns), static_cast<double>(model.anchor()->ns),
                                     model.anchor()->label};
    if (const auto* head = m_window.findChild<QLabel*>("differences-head")) state["differences_head"] = head->text();
    QJsonArray lines;
    if (const auto* tree = m_window.findChild<QTreeWidget*>("differences-lines"))
        for (int i = 0; i < tree->topLevelItemCount(); ++i) {
            const QTreeWidgetItem* head = tree->topLevelItem(i);
            lines.append(head->text(0));
            for (int k = 0; head->isExpanded() && k < head->childCount(); ++k) {
                const QTreeWidgetItem* line = head->child(k);
                lines.append(QJsonObject{{"what", line->text(0)},
                                         {"a", line->text(1)},
                                         {"b", line->text(2)},
                                         {"change", line->text(3)},
                                         {"area", area(*tree->viewport(), tree->visualItemRect(line), m_window)}});
            }
        }
    state["differences"] = lines;
    return state;
}

void StateLog::write() const {
    QJsonObject state{
        {"loaded", m_loaded}, {"visible", range(m_model.axis().visible())}, {"whole", range(m_model.axis().whole())}};
    if (const EventRef selected = m_model.selection(); selected.valid()) {
        const TrackEvent event = m_model.event(selected);
        state["selected"] = QJsonObject{{"table", tableName(m_model.table(selected))},
                                        {"row", static_cast<double>(m_model.rowId(selected))},
                                        {"rank", selected.rank},
                                        {"name", m_model.eventName(selected)},
                                        {"time", range({event.startNs, event.startNs + event.durNs})},
                                        {"area", area(m_timeline, m_timeline.areaOf(selected), m_window)}};
    }
    if (const auto time = m_model.timeSelection()) state["time_selection"] = range(*time);
    QJsonObject statistics;  // those in sight
    for (const QLabel* title : m_window.findChildren<QLabel*>("range-title"))
        if (title->isVisible() && !title->visibleRegion().isEmpty()) statistics[dockOf(*title)] = title->text();
    state["statistics"] = statistics;
    if (const auto* message = m_window.findChild<QLabel*>("message")) state["message"] = message->text();
    state["problems"] = QJsonArray::fromStringList(m_model.problems());
    state["label_width"] = m_timeline.labelWidth();
    state["device_pixel_ratio"] = m_timeline.devicePixelRatioF();
    state["marks"] = static_cast<int>(m_model.marks().size());
    state["flows"] = static_cast<int>(m_model.flows().size());
    state["hits"] = static_cast<int>(m_model.hits().size());
    const LaneChoices& choices = m_model.lanes().choices();
    if (const auto* box = m_pane.findChild<QLineEdit*>("lane-filter"))
        state["filter_box"] = area(*box, box->rect(), m_window);
    state["filter"] = QString::fromStdString(choices.filter);
    state["hidden"] = static_cast<int>(choices.hiddenRanks.size() + choices.hiddenLanes.size());
    state["expanded"] = static_cast<int>(choices.expandedRanks.size());
    if (const auto* caption = m_window.findChild<QWidget*>("caption"); caption && caption->isVisible())
        state["caption"] = caption->findChild<QLabel*>()->text();
    QJsonObject charts;
    for (const ChartView* chart : m_window.findChildren<ChartView*>())
        if (const QPoint there = chart->isVisible() ? chart->somewhere() : QPoint(-1, -1); there.x() >= 0) {
            const QPoint place = chart->mapTo(&m_window, there);
            charts[dockOf(*chart)] = QJsonArray{place.x(), place.y()};
        }
    state["charts"] = charts;
    state["pinned"] = QJsonArray::fromVariantList([&] {
        QVariantList ranks;
        for (const int32_t rank : m_model.lanes().choices().pinnedRanks) ranks.push_back(rank);
        return ranks;
    }());
    QJsonArray rows;
    for (const Row& row : m_model.lanes().rows()) {
        const int top = m_timeline.rowsTop() + row.top - m_timeline.scrollTop();
        if (top + row.height < 0 || top > m_timeline.height()) continue;
        rows.append(QJsonObject{{"label", QString::fromStdString(row.label)},
                                {"rank", row.rank},
                                {"trouble", QString::fromStdString(m_model.lanes().trouble(row.rank))},
                                {"y", m_timeline.mapTo(&m_window, QPoint(0, top + row.height / 2)).y()}});
    }
    state["rows"] = rows;
    state["lanes"] =
        area(m_timeline, QRectF(m_timeline.labelWidth(), 0, m_model.axis().width(), m_timeline.height()), m_window);
    const Minimap& minimap = m_pane.minimap();
    state["minimap"] = QJsonObject{{"picture", area(minimap, minimap.pictureArea(), m_window)},
                                   {"frame", area(minimap, minimap.frameArea(), m_window)}};
    QJsonObject findings;
    if (const auto* list = m_pane.findingsDock()->findChild<QTreeWidget*>("findings"))
        for (int i = 0; i < list->topLevelItemCount(); ++i)
            findings[list->topLevelItem(i)->text(1)] =
                area(*list->viewport(), list->visualItemRect(list->topLevelItem(i)), m_window);
    state["findings"] = findings;
    if (m_second) state["second"] = secondState();
    QSaveFile out(m_file);
    if (!out.open(QIODevice::WriteOnly)) return;
    out.write(QJsonDocument(state).toJson());
    out.commit();
}

}  // namespace rankscope::gui
