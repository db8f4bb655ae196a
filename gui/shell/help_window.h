// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QDialog>

namespace rankscope::gui {

/// Keys and mouse, beside the window: it can stay open while one tries them.
class HelpWindow : public QDialog {
    Q_OBJECT

  public:
    explicit HelpWindow(QWidget* parent);
};

}  // namespace rankscope::gui
