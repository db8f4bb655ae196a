// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QWidget>

#include "gui/view/palette.h"
#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// What must be known before the picture is believed: what was lost, how exact the clocks are; and what the colours
/// mean.
class HeadBar : public QWidget {
    Q_OBJECT

  public:
    /// `letter`: of the run, where there are two; its name is shown then.
    HeadBar(TimelineModel& model, QString letter, QWidget* parent = nullptr);

    void setDark(bool dark);

  protected:
    void resizeEvent(QResizeEvent* event) override;

  private:
    void fill();
    void makeLegend();
    void fitLegend();
    void makeFilter();

    TimelineModel& m_model;
    QString m_letter;
    QLabel* m_facts;
    QLabel* m_legend;
    bool m_isDark = false;
    QString m_wholeLegend, m_shortLegend;
    int m_wholeWidth = 0;
    QLineEdit* m_filter;
};

}  // namespace rankscope::gui
