// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/chart_docks.h"

#include <optional>
#include <utility>

#include "gui/charts/pipeline_panel.h"
#include "gui/charts/scatter_view.h"
#include "gui/charts/series/bandwidth_chart.h"
#include "gui/charts/series/communication_matrix.h"
#include "gui/charts/series/roofline_chart.h"
#include "gui/charts/straggler_panel.h"
#include "gui/view/run_letter.h"

namespace rankscope::gui {
namespace {

constexpr int kLowestDock = 300;  // pixels: eight ranks with their axis

}  // namespace

ChartDocks::ChartDocks(QMainWindow& window, QMenu& menu, RunSession& session, TimelineModel& model, QString letter)
    : QObject(&window),
      m_window(window),
      m_menu(menu),
      m_session(session),
      m_model(model),
      m_letter(std::move(letter)) {
    m_menu.addSeparator();
    addStragglers();
    addHistogram();
    addMatrix();
    addBandwidth();
    addRoofline();
    addPipeline();
    connect(&m_session, &RunSession::opened, this, [this] {
        m_open = true;
        for (size_t i = 0; i < m_charts.size(); ++i) {
            m_charts[i].asked = false;
            loadIfSeen(i);
        }
    });
}

void ChartDocks::setDark(bool dark) {
    for (const Chart& chart : m_charts) chart.view->setDark(dark);
}

void ChartDocks::add(const char* name, const char* title, QWidget* content, ChartView* view,
                     std::function<void()> load) {
    auto* dock = new QDockWidget(titleFor(m_letter, title), &m_window);
    dock->setObjectName(objectNameFor(m_letter, name));
    dock->setWidget(content);
    m_window.addDockWidget(Qt::BottomDockWidgetArea, dock);
    if (!m_docks.empty()) m_window.tabifyDockWidget(m_docks.back(), dock);
    dock->hide();
    m_menu.addAction(dock->toggleViewAction());
    const size_t index = m_charts.size();
    m_docks.push_back(dock);
    m_charts.push_back({view, std::move(load), false});
    connect(dock, &QDockWidget::visibilityChanged, this, [this, index](bool) { loadIfSeen(index); });
    // Who opens a chart from the menu wants to see it, not a tab behind others.
    connect(dock->toggleViewAction(), &QAction::triggered, dock, [this, dock](bool shown) {
        if (!shown) return;
        dock->raise();
        if (dock->height() < kLowestDock) m_window.resizeDocks({dock}, {kLowestDock}, Qt::Vertical);
    });
    connect(view, &ChartView::targetChosen, this, &ChartDocks::goTo);
}

void ChartDocks::loadIfSeen(size_t index) {
    Chart& chart = m_charts[index];
    if (!m_open || chart.asked || !m_docks[index]->isVisible()) return;
    chart.asked = true;
    chart.view->showText("counting \u2026");
    chart.load();
}

template <typename Ask, typename Show>
void ChartDocks::ask(ChartView* view, Ask question, Show show) {
    ++m_pending;
    using Result = decltype(question(std::declval<store::TraceReader&>()));
    m_session.queries().ask(
        view,
        [question = std::move(question)](store::TraceReader& reader) -> std::pair<std::optional<Result>, std::string> {
            try {
                return {question(reader), {}};
            } catch (const std::exception& error) {
                return {std::nullopt, error.what()};
            }
        },
        [this, view, show = std::move(show)](std::pair<std::optional<Result>, std::string> answer) {
            --m_pending;
            if (answer.first)
                show(std::move(*answer.first));
            else
                view->showText("These numbers cannot be read from the recording: " + chartText(answer.second));
            emit chartReady();
        });
}

void ChartDocks::addMatrix() {
    auto* view = new GridView(&m_window);
    add("matrix-dock", "Communication matrix", view, view, [this, view] {
        ask(view, communicationMatrix, [view](GridChart chart) { view->setChart(std::move(chart)); });
    });
}

void ChartDocks::addBandwidth() {
    auto* view = new ScatterView(&m_window);
    add("bandwidth-dock", "Bus bandwidth", view, view,
        [this, view] { ask(view, bandwidthChart, [view](ScatterChart chart) { view->setChart(std::move(chart)); }); });
}

void ChartDocks::addRoofline() {
    auto* view = new ScatterView(&m_window);
    add("roofline-dock", "Communication roofline", view, view,
        [this, view] { ask(view, rooflineChart, [view](ScatterChart chart) { view->setChart(std::move(chart)); }); });
}

void ChartDocks::addStragglers() {
    auto* panel = new StragglerPanel(&m_window);
    add("stragglers-dock", "Stragglers", panel, &panel->view(), [this, panel] {
        ask(
            &panel->view(),
            [](store::TraceReader& reader) { return std::make_shared<const StepTable>(readStepTable(reader)); },
            [panel](std::shared_ptr<const StepTable> steps) { panel->setSteps(std::move(steps)); });
    });
}

void ChartDocks::addHistogram() {
    auto* view = new GridView(&m_window);
    add("step-times-dock", "Step times", view, view, [this, view] {
        ask(
            view, [](store::TraceReader& reader) { return stepHistogram(readStepTable(reader)); },
            [view](GridChart chart) { view->setChart(std::move(chart)); });
    });
}

void ChartDocks::addPipeline() {
    auto* panel = new PipelinePanel(&m_window);
    // Made by the first question; later ones only read their step.
    auto charts = std::make_shared<std::shared_ptr<const PipelineCharts>>();
    const auto load = [this, panel, charts](size_t chain, int step) {
        ask(
            &panel->view(),
            [known = *charts, chain, step](store::TraceReader& reader) {
                auto source = known ? known : std::make_shared<const PipelineCharts>(reader);
                PipelineChart chart = source->chart(reader, chain, step);
                return std::pair(std::move(source), std::move(chart));
            },
            [panel, charts](std::pair<std::shared_ptr<const PipelineCharts>, PipelineChart> answer) {
                *charts = std::move(answer.first);
                panel->setChart(std::move(answer.second));
            });
    };
    add("pipeline-dock", "Pipeline", panel, &panel->view(), [load] { load(0, -1); });
    connect(panel, &PipelinePanel::wanted, this, load);
}

void ChartDocks::goTo(const ChartTarget& target) {
    if (!m_model.goToRow(target.table, target.rowId, target.rank)) {
        m_model.changeLanes([&](LaneTree& lanes) { lanes.expandRank(target.rank); });
        if (target.range.span() > 0) {
            const int64_t margin = std::max<int64_t>(target.range.span() / 10, 10);
            m_model.show({target.range.beginNs - margin, target.range.endNs + margin});
        }
    }
    emit jumped();
}

}  // namespace rankscope::gui
