// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QMenu>
#include <functional>
#include <vector>

#include "gui/pane/run_pane.h"

namespace rankscope::gui {

/// How the ranks' lines stand: their height, what they stand together by, and their order. For all runs of the window.
class RanksMenu : public QObject {
    Q_OBJECT

  public:
    /// Adds its entries to `menu`.
    RanksMenu(QMenu& menu, const std::vector<RunPane*>& panes);

  private:
    void fillGroups();
    void changeAll(const std::function<void(LaneTree&)>& change);

    const std::vector<RunPane*>& m_panes;
    QMenu* m_groups;
};

}  // namespace rankscope::gui
