// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/straggler_panel.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

namespace rankscope::gui {

StragglerPanel::StragglerPanel(QWidget* parent)
    : QWidget(parent), m_measure(new QComboBox(this)), m_view(new GridView(this)) {
    m_measure->addItem("Own time against the median rank", static_cast<int>(StepMeasure::own));
    m_measure->addItem("Compute time against the median rank", static_cast<int>(StepMeasure::compute));
    m_measure->addItem("Waiting for other ranks", static_cast<int>(StepMeasure::waiting));
    m_measure->addItem("Step time", static_cast<int>(StepMeasure::duration));
    auto* choices = new QHBoxLayout;
    choices->setContentsMargins(6, 4, 6, 4);
    choices->addWidget(new QLabel("Show", this));
    choices->addWidget(m_measure);
    choices->addStretch();
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(choices);
    layout->addWidget(m_view, 1);
    connect(m_measure, &QComboBox::currentIndexChanged, this, &StragglerPanel::fill);
}

void StragglerPanel::setSteps(std::shared_ptr<const StepTable> steps) {
    m_steps = std::move(steps);
    fill();
}

void StragglerPanel::fill() {
    if (m_steps) m_view->setChart(stragglerMap(*m_steps, static_cast<StepMeasure>(m_measure->currentData().toInt())));
}

}  // namespace rankscope::gui
