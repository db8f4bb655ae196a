// SPDX-License-Identifier: Apache-2.0
#include "gui/findings/caption_bar.h"

#include <QHBoxLayout>
#include <QToolButton>

#include "gui/session/reading_hint.h"
#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

QString captionHtml(const std::string& text) {
    return QString::fromStdString(displayText(text, 400)).toHtmlEscaped();
}

}  // namespace

CaptionBar::CaptionBar(TimelineModel& model, FindingTour& tour, QWidget* parent)
    : QWidget(parent), m_model(model), m_tour(tour), m_text(new QLabel(this)), m_steps(new QLabel(this)) {
    setObjectName("caption");
    m_text->setTextFormat(Qt::RichText);
    m_text->setWordWrap(true);
    m_text->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* close = new QToolButton(this);
    close->setText("\u00d7");
    close->setAutoRaise(true);
    close->setToolTip("Leave the finding: its marks go (Esc)");
    const auto stepButton = [this](const char* arrow, const char* tip, int direction) {
        auto* button = new QToolButton(this);
        button->setText(arrow);
        button->setAutoRaise(true);
        button->setToolTip(tip);
        connect(button, &QToolButton::clicked, this, [this, direction] { m_tour.goToStep(direction); });
        return button;
    };
    m_before = stepButton("\u25c2", "The step before that shows it", -1);
    m_next = stepButton("\u25b8", "The next step that shows it", 1);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(8, 3, 4, 4);
    layout->addWidget(m_text, 1);
    for (QWidget* part :
         {static_cast<QWidget*>(m_before), static_cast<QWidget*>(m_steps), static_cast<QWidget*>(m_next)})
        layout->addWidget(part, 0, Qt::AlignTop);
    layout->addWidget(close, 0, Qt::AlignTop);
    connect(close, &QToolButton::clicked, this, [this] { m_tour.leave(); });
    connect(&m_tour, &FindingTour::arrived, this, &CaptionBar::fill);
    connect(&m_tour, &FindingTour::moved, this, &CaptionBar::fillSteps);
    connect(&m_tour, &FindingTour::left, this, &CaptionBar::fill);
    connect(&m_model, &TimelineModel::runChanged, this, &CaptionBar::fill);
    fill();
}

void CaptionBar::fillSteps() {
    const QString text = m_tour.stepText();
    m_steps->setText(text);
    for (QWidget* part :
         {static_cast<QWidget*>(m_before), static_cast<QWidget*>(m_steps), static_cast<QWidget*>(m_next)})
        part->setVisible(!text.isEmpty());
    m_before->setEnabled(m_tour.hasStep(-1));
    m_next->setEnabled(m_tour.hasStep(1));
}

void CaptionBar::fill() {
    const FindingInfo* finding = m_tour.current();
    setVisible(finding != nullptr);
    if (!finding) return;
    fillSteps();
    const std::string hint = readingHint(finding->diagnosis);
    m_text->setText(QString("<b>%1 %2, %3 % of the step%4.</b> %5%6")
                        .arg(captionHtml(finding->diagnosis), captionHtml(finding->title))
                        .arg(100 * finding->severity, 0, 'f', 1)
                        .arg(finding->verdict == "inconclusive" ? QString(" (inconclusive)") : QString())
                        .arg(captionHtml(finding->cause),
                             hint.empty() ? QString() : "<br><i>What to look at:</i> " + captionHtml(hint)));
}

}  // namespace rankscope::gui
