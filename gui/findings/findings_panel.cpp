// SPDX-License-Identifier: Apache-2.0
#include "gui/findings/findings_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QFontDatabase>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QVBoxLayout>
#include <algorithm>

#include "analyzer/text/plain_text.h"
#include "gui/session/column_text.h"
#include "gui/session/reading_hint.h"
#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

constexpr size_t kLongText = 4000;

QString wholeText(const std::string& text) {
    return QString::fromStdString(displayText(text, kLongText));
}
QString wholeHtml(const std::string& text) {
    return wholeText(text).toHtmlEscaped();
}

QString percent(double share) {
    return QString("%1 %").arg(100 * share, 0, 'f', 1);
}

// "rank 3", "ranks 0-7, 12"
QString rankNames(const std::vector<int32_t>& ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ") + wholeText(ranksText(ranks));
}

// The report's own verdict; of a run that an older version analysed, what its findings tell.
QString headText(const RunInfo& run, size_t certain) {
    if (!run.analyzed) return "This run is not analysed yet: rankscope analyze " + wholeText(text::shellWord(run.name));
    const bool open = std::ranges::count(run.findings, "inconclusive", &FindingInfo::verdict) > 0;
    QString text = !run.verdict.empty() ? wholeText(run.verdict)
                   : certain > 0
                       ? QString("%1 finding%2, the costliest first.").arg(certain).arg(certain == 1 ? "" : "s")
                   : open ? QString("No certain finding: what follows is inconclusive, and says what would settle it.")
                          : QString("No finding was stored with this run.");
    if (certain > 0) text += " Click a finding to see its evidence.";
    for (const std::string& line : run.notJudged) text += "\nNot judged: " + wholeText(line);
    return text;
}

// "35.1 % of the step", and whether that is certain.
QString costText(const FindingInfo& finding) {
    return percent(finding.severity) + " of the step" + (finding.verdict == "inconclusive" ? ", inconclusive" : "");
}

QString savingText(const FindingInfo& finding) {
    if (finding.savingNs && finding.savingInterval)
        return QString("%1 per step (%2 to %3), replayed")
            .arg(QString::fromStdString(durationText(*finding.savingNs)),
                 QString::fromStdString(durationText(finding.savingInterval->first)),
                 QString::fromStdString(durationText(finding.savingInterval->second)));
    return finding.savingNs ? "about " + QString::fromStdString(durationText(*finding.savingNs)) + " per step"
                            : "unknown: the cause was seen to take " + percent(finding.severity) + " of the step";
}

// "rank 3 waits 4.1 ms", with the rank said once.
QString evidenceHtml(const EvidenceLink& link) {
    const QString note = wholeHtml(link.note), rank = QString("rank %1").arg(link.rank);
    return link.rank < 0 || note.startsWith(rank) ? note : rank + ": " + note;
}

// What plays the repair; empty where none can be played.
std::string whatIfCommand(const RunInfo& run, const FindingInfo& finding) {
    if (!finding.savingNs || finding.changes.empty()) return {};
    std::string command = "rankscope whatif " + text::shellWord(run.name);
    for (const std::string& change : finding.changes) command += " --change " + text::shellWord(change);
    return command;
}

QString listOf(const std::vector<std::string>& texts) {
    QString list = "<ul>";
    for (const std::string& text : texts) list += "<li>" + wholeHtml(text) + "</li>";
    return list + "</ul>";
}

}  // namespace

QString findingText(const FindingInfo& finding) {
    QString text =
        QString("%1 %2, %3\n").arg(wholeText(finding.diagnosis), wholeText(finding.title), costText(finding));
    if (!finding.ranks.empty()) text += "where: " + rankNames(finding.ranks) + "\n";
    text += "why: " + wholeText(finding.cause) + "\n";
    for (const std::string& fact : finding.facts) text += "shown: " + wholeText(fact) + "\n";
    for (const std::string& fix : finding.fixes) text += "fix: " + wholeText(fix) + "\n";
    return text + "saves: " + savingText(finding) + "\n";
}

FindingsPanel::FindingsPanel(TimelineModel& model, FindingTour& tour, QWidget* parent)
    : QWidget(parent),
      m_model(model),
      m_tour(tour),
      m_head(new QLabel(this)),
      m_list(new QTreeWidget(this)),
      m_text(new QTextBrowser(this)),
      m_copyAll(new QPushButton("Copy", this)),
      m_copyFix(new QPushButton("Copy fix", this)) {
    m_head->setWordWrap(true);
    m_head->setTextFormat(Qt::PlainText);
    m_list->setObjectName("findings");
    m_list->setHeaderLabels({"Costs", "Finding", "Where"});
    m_list->setRootIsDecorated(false);
    m_list->setUniformRowHeights(true);
    m_list->header()->setSectionResizeMode(1, QHeaderView::Stretch);
    m_list->header()->setStretchLastSection(false);
    m_text->setOpenLinks(false);
    connect(m_text, &QTextBrowser::anchorClicked, this, &FindingsPanel::follow);
    auto* buttons = new QHBoxLayout;
    buttons->addStretch();
    buttons->addWidget(m_copyAll);
    buttons->addWidget(m_copyFix);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(4, 4, 4, 4);
    layout->addWidget(m_head);
    layout->addWidget(m_list, 2);
    layout->addWidget(m_text, 3);
    layout->addLayout(buttons);
    connect(m_copyAll, &QPushButton::clicked, this, [this] { copyText(false); });
    connect(m_copyFix, &QPushButton::clicked, this, [this] { copyText(true); });
    connect(m_list, &QTreeWidget::itemClicked, this, [this](QTreeWidgetItem* item) {
        if (const FindingInfo* finding = findingOf(item)) m_tour.goTo(*finding);
    });
    connect(m_list, &QTreeWidget::currentItemChanged, this, [this](QTreeWidgetItem* item) {
        const FindingInfo* finding = findingOf(item);
        m_copyAll->setEnabled(finding != nullptr);
        m_copyFix->setEnabled(finding != nullptr && !finding->fixes.empty());
        if (finding) showFinding(*finding);
    });
    connect(m_list, &QTreeWidget::itemActivated, this, [this](QTreeWidgetItem* item) {
        if (const FindingInfo* finding = findingOf(item)) m_tour.goTo(*finding);
    });
    connect(&m_model, &TimelineModel::runChanged, this, &FindingsPanel::fill);
    connect(&m_tour, &FindingTour::arrived, this, [this] {
        const FindingInfo* finding = m_tour.current();
        for (int i = 0; finding && i < m_list->topLevelItemCount(); ++i)
            if (findingOf(m_list->topLevelItem(i)) == finding) m_list->setCurrentItem(m_list->topLevelItem(i));
    });
}

const FindingInfo* FindingsPanel::findingOf(const QTreeWidgetItem* item) const {
    if (!item || !m_model.run()) return nullptr;
    const auto index = static_cast<size_t>(item->data(0, Qt::UserRole).toULongLong());
    return index < m_model.run()->findings.size() ? &m_model.run()->findings[index] : nullptr;
}

void FindingsPanel::fill() {
    m_list->clear();
    m_text->clear();
    const RunInfo& run = *m_model.run();
    size_t certain = 0;
    for (size_t i = 0; i < run.findings.size(); ++i) {
        const FindingInfo& finding = run.findings[i];
        certain += finding.verdict == "found";
        const QString title = wholeText(finding.diagnosis) + " " + wholeText(finding.title);
        auto* item = new QTreeWidgetItem(
            m_list, {percent(finding.severity),
                     finding.verdict == "found" ? title : title + " (" + wholeText(finding.verdict) + ")",
                     finding.ranks.empty() ? QString() : rankNames(finding.ranks)});
        item->setData(0, Qt::UserRole, static_cast<qulonglong>(i));
        item->setTextAlignment(0, Qt::AlignRight | Qt::AlignVCenter);
        if (finding.verdict != "found")
            for (int column = 0; column < 3; ++column)
                item->setForeground(column, palette().color(QPalette::PlaceholderText));
    }
    m_list->resizeColumnToContents(0);
    m_list->resizeColumnToContents(2);
    m_head->setText(headText(run, certain));
    m_copyAll->setEnabled(false);
    m_copyFix->setEnabled(false);
    m_list->setCurrentItem(m_list->topLevelItem(0));  // read at once; the timeline moves when it is clicked
}

void FindingsPanel::showFinding(const FindingInfo& finding) {
    QString text = QString("<h3>%1 %2</h3>").arg(wholeHtml(finding.diagnosis), wholeHtml(finding.title));
    text += QString("<p><b>%1</b>").arg(costText(finding));
    if (!finding.ranks.empty()) text += ", " + rankNames(finding.ranks);
    text += "</p><p>" + wholeHtml(finding.cause) + "</p>";
    if (!finding.whyInconclusive.empty()) text += "<p>Inconclusive: " + wholeHtml(finding.whyInconclusive) + "</p>";
    if (!finding.facts.empty()) text += "<b>Shown by</b>" + listOf(finding.facts);
    if (!finding.evidence.empty()) {
        text += "<b>Marked in the timeline</b><ul>";
        for (size_t i = 0; i < finding.evidence.size(); ++i)
            text += QString("<li><a href='evidence:%1'>%2</a></li>").arg(i).arg(evidenceHtml(finding.evidence[i]));
        text += "</ul>";
    }
    if (!finding.fixes.empty()) text += "<b>Fix</b>" + listOf(finding.fixes);
    text += "<p>Saves " + savingText(finding) + "</p>";
    if (const std::string command = whatIfCommand(*m_model.run(), finding); !command.empty())
        text += "<p>What if: <code>" + wholeHtml(command) + "</code></p>";
    if (!explanationOf(finding.diagnosis).empty())
        text +=
            QString("<p><a href='explain:'>What %1 is, and when it is wrong</a></p>").arg(wholeHtml(finding.diagnosis));
    m_text->setHtml(text);
}

void FindingsPanel::follow(const QUrl& link) {
    const FindingInfo* finding = findingOf(m_list->currentItem());
    if (!finding) return;
    if (link.scheme() == "explain") {
        auto* window = new QTextBrowser(this);
        window->setWindowFlags(Qt::Dialog);
        window->setAttribute(Qt::WA_DeleteOnClose);
        window->setWindowTitle(wholeText(finding->diagnosis));
        window->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
        window->setPlainText(QString::fromStdString(explanationOf(finding->diagnosis)));
        window->resize(fontMetrics().averageCharWidth() * 110, 480);
        window->show();
        return;
    }
    if (m_tour.current() != finding) m_tour.goTo(*finding);
    m_tour.goToEvidence(link.path().toULongLong());
}

void FindingsPanel::copyText(bool fixOnly) const {
    const FindingInfo* finding = findingOf(m_list->currentItem());
    if (!finding) return;
    QString text = findingText(*finding);
    if (fixOnly) {
        text.clear();
        for (const std::string& fix : finding->fixes) text += wholeText(fix) + "\n";
    }
    QApplication::clipboard()->setText(text);
}

}  // namespace rankscope::gui
