// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/chart_docks.h"

#include <QGridLayout>
#include <QLabel>
#include <optional>
#include <utility>

#include "gui/charts/pipeline_panel.h"
#include "gui/charts/scatter_view.h"
#include "gui/charts/series/bandwidth_chart.h"
#include "gui/charts/series/communication_matrix.h"
#include "gui/charts/series/link_matrix.h"
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
    for (const Chart& chart : m_charts)
        for (ChartView* view : chart.views) view->setDark(dark);
}

size_t ChartDocks::add(const char* name, const char* title, QWidget* content, std::vector<ChartView*> views,
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
    m_charts.push_back({views, std::move(load), false});
    connect(dock, &QDockWidget::visibilityChanged, this, [this, index](bool) { loadIfSeen(index); });
    // Who opens a chart from the menu wants to see it, not a tab behind others.
    connect(dock->toggleViewAction(), &QAction::triggered, dock, [this, dock](bool shown) {
        if (!shown) return;
        dock->raise();
        if (dock->height() < kLowestDock) m_window.resizeDocks({dock}, {kLowestDock}, Qt::Vertical);
    });
    for (ChartView* view : views) connect(view, &ChartView::targetChosen, this, &ChartDocks::goTo);
    return index;
}

void ChartDocks::loadIfSeen(size_t index) {
    Chart& chart = m_charts[index];
    if (!m_open || chart.asked || !m_docks[index]->isVisible()) return;
    chart.asked = true;
    for (ChartView* view : chart.views) view->showText("counting \u2026");
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

// What is owed beside how fast it went: a cell is the same pair in both.
void ChartDocks::addMatrix() {
    auto* both = new QWidget(&m_window);
    auto* layout = new QGridLayout(both);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setVerticalSpacing(0);
    auto *owed = new GridView(both), *links = new GridView(both);
    int column = 0;
    for (const auto& [view, title] : {std::pair(owed, "Bytes owed"), std::pair(links, "Bandwidth measured")}) {
        auto* head = new QLabel(title, both);
        head->setMargin(4);
        layout->addWidget(head, 0, column);
        layout->addWidget(view, 1, column);
        layout->setColumnStretch(column++, 1);
    }
    layout->setRowStretch(1, 1);
    add("matrix-dock", "Communication matrix", both, {owed, links}, [this, owed, links] {
        ask(owed, communicationMatrix, [owed](GridChart chart) { owed->setChart(std::move(chart)); });
        ask(links, linkMatrix, [links](GridChart chart) { links->setChart(std::move(chart)); });
    });
}

void ChartDocks::addBandwidth() {
    auto* view = new ScatterView(&m_window);
    add("bandwidth-dock", "Bus bandwidth", view, {view},
        [this, view] { ask(view, bandwidthChart, [view](ScatterChart chart) { view->setChart(std::move(chart)); }); });
}

void ChartDocks::addRoofline() {
    auto* view = new ScatterView(&m_window);
    add("roofline-dock", "Communication roofline", view, {view},
        [this, view] { ask(view, rooflineChart, [view](ScatterChart chart) { view->setChart(std::move(chart)); }); });
}

void ChartDocks::addStragglers() {
    auto* panel = new StragglerPanel(&m_window);
    add("stragglers-dock", "Stragglers", panel, {&panel->view()}, [this, panel] {
        ask(
            &panel->view(),
            [run = m_model.sharedRun()](store::TraceReader& reader) {
                return std::make_shared<const StepTable>(readStepTable(reader, run ? run->outline : RunOutline()));
            },
            [panel](std::shared_ptr<const StepTable> steps) { panel->setSteps(std::move(steps)); });
    });
}

void ChartDocks::addHistogram() {
    auto* view = new GridView(&m_window);
    add("step-times-dock", "Step times", view, {view}, [this, view] {
        ask(
            view, [](store::TraceReader& reader) { return stepHistogram(readStepTable(reader)); },
            [view](GridChart chart) { view->setChart(std::move(chart)); });
    });
}

void ChartDocks::addPipeline() {
    struct Shown {
        std::shared_ptr<const PipelineCharts> charts;  // made by the first question; later ones only read their step
        std::pair<int32_t, int32_t> place{-1, -1};     // rank and step that the view was at
    };
    auto* panel = new PipelinePanel(&m_window);
    auto shown = std::make_shared<Shown>();
    // `rank` decides on the chain where it is known.
    const auto load = [this, panel, shown](size_t chain, int32_t rank, int step) {
        ask(
            &panel->view(),
            [known = shown->charts, chain, rank, step](store::TraceReader& reader) {
                auto source = known ? known : std::make_shared<const PipelineCharts>(reader);
                PipelineChart chart = source->chart(reader, source->chainOf(rank).value_or(chain), step);
                return std::pair(std::move(source), std::move(chart));
            },
            [panel, shown](std::pair<std::shared_ptr<const PipelineCharts>, PipelineChart> answer) {
                shown->charts = std::move(answer.first);
                panel->setChart(std::move(answer.second));
            });
    };
    const size_t index = add("pipeline-dock", "Pipeline", panel, {&panel->view()}, [this, load, shown] {
        shown->place = placeInView();
        load(0, shown->place.first, shown->place.second);
    });
    connect(panel, &PipelinePanel::wanted, this, [load](size_t chain, int step) { load(chain, -1, step); });
    constexpr int kRestMs = 150;  // shorter pauses belong to a gesture
    m_following.setSingleShot(true);
    m_following.setInterval(kRestMs);
    for (const auto moved : {&TimelineModel::viewChanged, &TimelineModel::marksChanged})
        connect(&m_model, moved, this, [this, index] {
            if (m_charts[index].asked && m_docks[index]->isVisible()) m_following.start();
        });
    connect(&m_following, &QTimer::timeout, this, [this, load, shown] {
        const auto place = placeInView();
        if (place.second < 0 || place == shown->place) return;
        shown->place = place;
        load(0, place.first, place.second);
    });
}

std::pair<int32_t, int32_t> ChartDocks::placeInView() const {
    constexpr int64_t kMostSteps = 4;  // a view of more is of no step
    if (!m_model.run()) return {-1, -1};
    const auto& excerpts = m_model.lanes().excerpts();
    const EventRef selected = m_model.selection();
    const TimeRange view = m_model.axis().visible();
    const int64_t middle = view.beginNs + view.span() / 2;
    const int32_t rank = !excerpts.empty() ? excerpts.front().rank : selected.valid() ? selected.rank : -1;
    for (const StepInfo& step : m_model.run()->steps)
        if ((rank < 0 || step.rank == rank) && step.range.contains(middle) &&
            view.span() / kMostSteps <= step.range.span())
            return {rank, step.step};
    return {-1, -1};
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
