// SPDX-License-Identifier: Apache-2.0
#include "gui/shell/ranks_menu.h"

#include <QActionGroup>
#include <set>
#include <string>

#include "gui/timeline/display_text.h"
#include "gui/timeline/rank_order.h"

namespace rankscope::gui {
namespace {

// The parallelism that a direction of the grid is known by, where it is one of those that analyses tell.
QString nameOf(const std::string& direction) {
    constexpr std::pair<const char*, const char*> kNames[] = {{"dp", "Data-parallel place (dp)"},
                                                              {"ep", "Expert-parallel place (ep)"},
                                                              {"pp", "Pipeline stage (pp)"},
                                                              {"tp", "Tensor-parallel place (tp)"}};
    for (const auto& [known, name] : kNames)
        if (direction == known) return name;
    return QString::fromStdString(displayText(direction)).replace('&', "&&");
}

}  // namespace

RanksMenu::RanksMenu(QMenu& menu, const std::vector<RunPane*>& panes) : QObject(&menu), m_panes(panes) {
    QAction* compact = menu.addAction("Low lines for ran&ks");
    compact->setCheckable(true);
    compact->setToolTip("As low as brings all ranks into sight");
    connect(compact, &QAction::triggered, this,
            [this](bool on) { changeAll([on](LaneTree& lanes) { lanes.setCompact(on); }); });
    connect(&menu, &QMenu::aboutToShow, this,
            [this, compact] { compact->setChecked(m_panes.front()->model().lanes().choices().compact); });
    m_groups = menu.addMenu("Group ranks &by");
    connect(m_groups, &QMenu::aboutToShow, this, &RanksMenu::fillGroups);
    QMenu* sort = menu.addMenu("S&ort ranks by");
    sort->addAction("Number", this, [this] { changeAll([](LaneTree& lanes) { lanes.setOrder({}); }); });
    sort->addAction("Waiting for others in view, least first", this, [this] {
        for (RunPane* pane : m_panes) {
            TimelineModel& model = pane->model();
            model.changeLanes([&](LaneTree& lanes) { lanes.setOrder(ranksByWaiting(lanes, model.axis().visible())); });
        }
    });
}

void RanksMenu::changeAll(const std::function<void(LaneTree&)>& change) {
    for (RunPane* pane : m_panes) pane->model().changeLanes(change);
}

void RanksMenu::fillGroups() {
    m_groups->clear();
    auto* only = new QActionGroup(m_groups);
    const std::string inForce = m_panes.front()->model().lanes().choices().grouping;
    const auto add = [&](const QString& name, const std::string& grouping) {
        QAction* action = m_groups->addAction(
            name, this, [this, grouping] { changeAll([&](LaneTree& lanes) { lanes.setGrouping(grouping); }); });
        action->setCheckable(true);
        action->setChecked(grouping == inForce);
        only->addAction(action);
    };
    add("Host", LaneChoices::kByHost);
    std::set<std::string> directions;
    for (RunPane* pane : m_panes)
        for (std::string& direction : pane->model().lanes().directions()) directions.insert(std::move(direction));
    for (const std::string& direction : directions) add(nameOf(direction), direction);
    add("Nothing", LaneChoices::kByNothing);
}

}  // namespace rankscope::gui
