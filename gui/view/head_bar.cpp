// SPDX-License-Identifier: Apache-2.0
#include "gui/view/head_bar.h"

#include <QHBoxLayout>

#include "analyzer/report/sentences.h"
#include "gui/timeline/display_text.h"
#include "gui/view/status_text.h"

namespace rankscope::gui {
namespace {

QString swatch(Rgb rgb, const char* mark, const char* text) {
    return QString("<span style='color:%1'>%2</span>&nbsp;%3&nbsp;&nbsp;")
        .arg(colour(rgb).name(), mark, QString(text).replace(' ', "&nbsp;"));
}

}  // namespace

HeadBar::HeadBar(TimelineModel& model, QString letter, QWidget* parent)
    : QWidget(parent),
      m_model(model),
      m_letter(std::move(letter)),
      m_facts(new StatusText(this)),
      m_legend(new QLabel(this)),
      m_filter(new QLineEdit(this)) {
    m_facts->setObjectName("facts");
    m_facts->setTextFormat(Qt::PlainText);
    m_facts->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_legend->setToolTip(
        "A rank's line, bottom up, as shares of its time. Communication that nothing hides waits until the last rank "
        "has come, and transfers from then on; where the others were not recorded, all of it is shown as transfer. The "
        "critical path is the chain of work that the length of the steps is made of: only what is on it makes them "
        "shorter.");
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(6, 2, 6, 2);
    if (!m_letter.isEmpty()) {
        QFont bold = m_facts->font();
        bold.setBold(true);
        m_facts->setFont(bold);
    }
    m_legend->setVisible(m_letter != "B");  // once is enough
    m_legend->setMinimumWidth(1);           // on a small screen it is cut before the docks are
    makeFilter();
    setDark(false);
    layout->addWidget(m_filter);
    layout->addWidget(m_facts, 1);
    layout->addWidget(m_legend);
    connect(&m_model, &TimelineModel::runChanged, this, &HeadBar::fill);
    connect(&m_model, &TimelineModel::problemsChanged, this, &HeadBar::fill);
}

void HeadBar::setDark(bool dark) {
    m_isDark = dark;
    makeLegend();
}

void HeadBar::makeLegend() {
    const Palette& palette = Palette::of(m_isDark);
    const auto shown = [&](Activity activity, const char* text) {
        return swatch(palette.activities[static_cast<size_t>(activity)], "\u25a0", text);
    };
    m_shortLegend = shown(Activity::compute, "compute") + shown(Activity::overlapped, "with comm.") +
                    shown(Activity::waiting, "waiting") + shown(Activity::transfer, "transfer") +
                    shown(Activity::memory, "copies");
    m_wholeLegend = shown(Activity::compute, "compute") + shown(Activity::overlapped, "with communication") +
                    shown(Activity::waiting, "waiting for ranks") + shown(Activity::transfer, "transfer") +
                    shown(Activity::memory, "copies") + "blank:&nbsp;idle&nbsp;&nbsp;";
    if (m_model.run() && !m_model.run()->path.empty())
        for (QString* legend : {&m_shortLegend, &m_wholeLegend})
            *legend += swatch(palette.text, "\u2581", "critical path");
    m_legend->setText(m_wholeLegend);
    m_wholeWidth = m_legend->sizeHint().width();
    fitLegend();
}

void HeadBar::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    fitLegend();
}

// Where there is no room for all of its words fewer of them are said, and none is cut; nor is the one sentence beside
// them on a sound run.
void HeadBar::fitLegend() {
    constexpr int kMostOfFacts = 160;
    const int room = width() - m_filter->width() - 24 -  // the margins and what lies between
                     std::min(m_facts->sizeHint().width(), kMostOfFacts);
    const QString& legend = m_wholeWidth <= room ? m_wholeLegend : m_shortLegend;
    if (m_legend->text() != legend) m_legend->setText(legend);
}

void HeadBar::makeFilter() {
    m_filter->setObjectName("lane-filter");
    m_filter->setPlaceholderText("Filter ranks, hosts, lanes");
    m_filter->setToolTip("Shows only ranks, hosts and lanes with this in their name: rank 3, node1, communication");
    m_filter->setClearButtonEnabled(true);
    m_filter->setFixedWidth(196);
    connect(m_filter, &QLineEdit::textEdited, this, [this](const QString& text) {
        m_model.changeLanes([&](LaneTree& lanes) { lanes.setFilter(text.toStdString()); });
    });
    connect(m_filter, &QLineEdit::textChanged, this, [this](const QString& text) {
        if (text.isEmpty() && !m_model.lanes().choices().filter.empty())
            m_model.changeLanes([](LaneTree& lanes) { lanes.setFilter({}); });
    });
    connect(&m_model, &TimelineModel::lanesChanged, this, [this] {
        const QString filter = QString::fromStdString(m_model.lanes().choices().filter);
        if (m_filter->text() != filter) m_filter->setText(filter);
    });
}

void HeadBar::fill() {
    const RunInfo& run = *m_model.run();
    QString text = run.clockBoundNs > 0 ? QString("times of different %1 are good to %2")
                                              .arg(run.outline.hosts.size() > 1 ? "hosts" : "ranks",
                                                   QString::fromStdString(report::boundText(run.clockBoundNs)))
                                        : QString("one clock for all ranks");
    size_t bad = 0;
    QString details;
    for (const LossInfo& loss : run.losses) {
        bad += loss.severity != "info";
        details += QString::fromStdString(displayText(loss.severity + ": " + loss.message)) + "\n";
    }
    for (const std::string& line : run.linkPeaks) details += QString::fromStdString(displayText(line)) + "\n";
    for (const QString& problem : m_model.problems()) details += problem + "\n";
    if (!m_model.problems().isEmpty())
        text = QString("\u26a0 not all of the run is shown (point here)  \u00b7  ") + text;
    if (bad > 0)
        text = QString("\u26a0 %1 %2 (point here for all)  \u00b7  ")
                   .arg(bad)
                   .arg(bad == 1 ? "gap in the recording" : "gaps in the recording") +
               text;
    if (!m_letter.isEmpty())
        text = QString("%1: %2  \u00b7  ").arg(m_letter, QString::fromStdString(displayText(run.name, 80))) + text;
    m_facts->setText(text);
    m_facts->setToolTip(details);
    makeLegend();
}

}  // namespace rankscope::gui
