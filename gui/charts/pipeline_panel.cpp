// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/pipeline_panel.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QSignalBlocker>
#include <QVBoxLayout>

namespace rankscope::gui {
namespace {

constexpr size_t kMostChoices = 5000;  // a list longer than this is not looked through

QString nameOf(const PipelineChain& chain) {
    constexpr size_t kShown = 8;
    QStringList ranks;
    for (size_t i = 0; i < std::min(chain.size(), kShown); ++i) ranks << QString::number(chain[i]);
    return "ranks " + ranks.join(", ") + (chain.size() > kShown ? QString(", \u2026 %1").arg(chain.back()) : QString());
}

}  // namespace

PipelinePanel::PipelinePanel(QWidget* parent)
    : QWidget(parent),
      m_choices(new QWidget(this)),
      m_chains(new QComboBox(this)),
      m_steps(new QComboBox(this)),
      m_view(new PipelineView(this)) {
    for (QComboBox* box : {m_chains, m_steps}) box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    auto* choices = new QHBoxLayout(m_choices);
    choices->setContentsMargins(6, 4, 6, 4);
    choices->addWidget(new QLabel("Pipeline", this));
    choices->addWidget(m_chains);
    choices->addSpacing(12);
    choices->addWidget(new QLabel("Step", this));
    choices->addWidget(m_steps);
    choices->addStretch();
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    m_choices->hide();
    layout->addWidget(m_choices);
    layout->addWidget(m_view, 1);
    const auto ask = [this] {
        if (m_chains->currentIndex() >= 0)
            emit wanted(static_cast<size_t>(m_chains->currentIndex()),
                        m_steps->currentIndex() < 0 ? -1 : m_steps->currentData().toInt());
    };
    connect(m_chains, &QComboBox::currentIndexChanged, this, ask);
    connect(m_steps, &QComboBox::currentIndexChanged, this, ask);
}

void PipelinePanel::setChart(PipelineChart chart) {
    const QSignalBlocker chains(m_chains), steps(m_steps);
    m_chains->clear();
    m_steps->clear();
    for (size_t i = 0; i < std::min(chart.chains.size(), kMostChoices); ++i) m_chains->addItem(nameOf(chart.chains[i]));
    m_chains->setCurrentIndex(chart.chains.empty() ? -1 : static_cast<int>(std::min(chart.chain, kMostChoices - 1)));
    for (size_t i = 0; i < std::min(chart.steps.size(), kMostChoices); ++i)
        m_steps->addItem(QString::number(chart.steps[i]), chart.steps[i]);
    m_steps->setCurrentIndex(m_steps->findData(chart.step));
    m_choices->setVisible(m_chains->count() > 1 || m_steps->count() > 1);
    m_view->setChart(std::move(chart));
}

}  // namespace rankscope::gui
