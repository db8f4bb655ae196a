// SPDX-License-Identifier: Apache-2.0
#include "gui/compare/differences_panel.h"

#include <fmt/format.h>

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QVBoxLayout>
#include <optional>
#include <utility>

#include "analyzer/compare/changes.h"
#include "analyzer/compare/renderers.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/text/units.h"
#include "gui/session/short_name.h"
#include "gui/timeline/display_text.h"
#include "gui/view/qt_text.h"

namespace rankscope::gui {
namespace {

using compare::BreakdownSide;

constexpr int kKindRole = Qt::UserRole, kEntryRole = Qt::UserRole + 1;
enum Kind : int { nothing, findingLine, kernelLine };
enum ColumnOf : int { what, inA, inB, changeColumn };

QString safe(const std::string& text) {
    constexpr size_t kLongest = 1000;
    return shown(displayText(text, kLongest));
}

QString durationOf(const std::optional<double>& ns) {
    return ns ? shown(text::durationText(*ns)) : QString("\u2013");
}

QString changeOf(const std::optional<double>& a, const std::optional<double>& b) {
    const double ns = b.value_or(0) - a.value_or(0);
    if (ns == 0) return "0";
    const QString change = shown(compare::signedDurationText(ns));
    return a && b && *a > 0 ? change + " (" + shown(compare::signedPercentText(*b / *a - 1)) + ")" : change;
}

template <typename Parent>
QTreeWidgetItem* addRow(Parent* parent, const QStringList& texts) {
    auto* line = new QTreeWidgetItem(parent, texts);
    for (const int column : {inA, inB, changeColumn}) line->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    return line;
}

// A line of words alone, which has the room of all columns.
template <typename Parent>
QTreeWidgetItem* addWords(Parent* parent, const QString& text) {
    auto* line = new QTreeWidgetItem(parent, {text});
    line->setFirstColumnSpanned(true);
    return line;
}

template <typename Parent>
QTreeWidgetItem* addTimes(Parent* parent, const QString& name, const std::optional<double>& a,
                          const std::optional<double>& b) {
    return addRow(parent, {name, durationOf(a), durationOf(b), changeOf(a, b)});
}

void setTip(QTreeWidgetItem* line, const QString& first, const QString& second = {}) {
    line->setToolTip(what, "<p>" + first.toHtmlEscaped() + "</p><p>" + second.toHtmlEscaped() + "</p>");
}

// What one side has of `Part`, where it is there at all.
template <typename Side>
std::optional<double> partOf(const std::optional<Side>& side, double Side::*part) {
    return side ? std::optional((*side).*part) : std::nullopt;
}

}  // namespace

DifferencesPanel::DifferencesPanel(RunPane& a, RunPane& b, QWidget* parent)
    : QWidget(parent),
      m_a(a),
      m_b(b),
      m_head(new QLabel("comparing \u2026", this)),
      m_tree(new QTreeWidget(this)),
      m_copy(new QPushButton("Copy", this)) {
    setObjectName("differences");
    m_head->setObjectName("differences-head");
    m_head->setWordWrap(true);
    m_head->setTextFormat(Qt::PlainText);
    m_tree->setObjectName("differences-lines");
    m_tree->setHeaderLabels({"Per step", "A", "B", "Change"});
    m_tree->setUniformRowHeights(true);
    m_tree->setIndentation(14);
    m_tree->setTextElideMode(Qt::ElideMiddle);
    m_tree->header()->setStretchLastSection(false);
    m_tree->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
    m_tree->header()->setSectionResizeMode(what, QHeaderView::Stretch);
    m_tree->setToolTip("A finding or kernel: click to see it in both runs.");
    auto* buttons = new QHBoxLayout;
    buttons->addStretch();
    buttons->addWidget(m_copy);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(4, 4, 4, 4);
    layout->addWidget(m_head);
    layout->addWidget(m_tree, 1);
    layout->addLayout(buttons);
    m_copy->setEnabled(false);
    connect(m_copy, &QPushButton::clicked, this, [this] {
        QApplication::clipboard()->setText(shown(compare::renderComparisonText(m_difference.comparison)));
    });
    connect(&m_comparing, &LatestTask::failed, this, [this](const QString& message) {
        m_waiting = false;
        m_head->setText("The runs cannot be compared: " + safe(message.toStdString()));
        emit compared();
    });
    connect(m_tree, &QTreeWidget::itemClicked, this, [this](QTreeWidgetItem* item) { goTo(item); });
    connect(m_tree, &QTreeWidget::itemActivated, this, [this](QTreeWidgetItem* item) { goTo(item); });
}

void DifferencesPanel::ask() {
    m_waiting = true;
    m_difference = {};  // its lines lead into the runs that were there before
    m_head->setText("comparing \u2026");
    m_tree->clear();
    m_copy->setEnabled(false);
    m_comparing.start([a = m_a.model().sharedRun(), b = m_b.model().sharedRun()](
                          const std::atomic<bool>& cancelled) { return differenceOf(*a, *b, cancelled); },
                      [this](RunDifference difference) {
                          m_waiting = false;
                          m_difference = std::move(difference);
                          m_copy->setEnabled(true);
                          fill();
                      });
}

void DifferencesPanel::fill() {
    m_head->setText(shown(headText(m_difference)));
    addAttribution();
    addFindings();
    addMetrics();
    addRanks();
    addCollectives();
    addKernels();
    emit compared();
}

void DifferencesPanel::addAttribution() {
    const compare::Comparison& comparison = m_difference.comparison;
    if (!compare::showsAttribution(comparison)) return;
    auto* head = addWords(
        m_tree, safe(fmt::format("Where the change is ({}; adds up to {})", attributionScope(comparison.attribution),
                                 compare::signedDurationText(comparison.step.changeNs()))));
    for (const compare::AttributionRow& row : comparison.attribution) {
        auto* line = addWords(head, safe(compare::signedDurationText(row.ns) + "  " + row.what));
        for (const std::string& detail : row.details) setTip(addWords(line, safe(detail)), safe(detail));
    }
    head->setExpanded(true);
}

void DifferencesPanel::addFindings() {
    const auto& findings = m_difference.comparison.findings;
    auto* head = addWords(
        m_tree, findings.empty() ? "Findings: none in either" : "Findings, what they cost or their repairs save");
    for (size_t i = 0; i < findings.size(); ++i) {
        const compare::FindingChange& finding = findings[i];
        const auto worth = [&](const compare::FindingSide& side) { return shown(compare::worthText(finding, side)); };
        auto* line = addRow(head, {safe(compare::findingName(finding)), worth(finding.base), worth(finding.now),
                                   shown(std::string(toText(finding.status)))});
        setTip(line, safe(compare::findingName(finding)), safe(finding.cause));
        line->setData(0, kKindRole, int{findingLine});
        line->setData(0, kEntryRole, static_cast<qulonglong>(i));
    }
    head->setExpanded(true);
}

void DifferencesPanel::addMetrics() {
    QTreeWidgetItem* head = nullptr;
    for (const compare::MetricChange& metric : m_difference.comparison.metrics) {
        if (!metric.base || !metric.now) continue;
        if (!head) head = addWords(m_tree, "Other numbers, means of the ranks");
        const bool isCompared = metric.refused.empty();
        auto* line = addRow(head, {safe(metric.name), shown(compare::metricText(*metric.base, metric.unit)),
                                   shown(compare::metricText(*metric.now, metric.unit)),
                                   isCompared ? shown(compare::metricChangeText(*metric.base, *metric.now, metric.unit))
                                              : "not compared"});
        setTip(line, safe(metric.name), safe(metric.refused));
    }
}

void DifferencesPanel::addRanks() {
    constexpr std::pair<const char*, double BreakdownSide::*> kParts[] = {
        {"compute", &BreakdownSide::computeNs},
        {"waiting for other ranks", &BreakdownSide::exposedWaitNs},
        {"exposed transfer", &BreakdownSide::exposedTransferNs},
        {"copies and sets", &BreakdownSide::memoryNs},
        {"idle", &BreakdownSide::idleNs}};
    const auto& ranks = m_difference.comparison.breakdown;
    if (ranks.empty()) return;
    auto* head = addWords(m_tree, "Step of each rank");
    for (const compare::BreakdownChange& rank : ranks) {
        auto* step = addTimes(head, safe(rank.role), partOf(rank.base, &BreakdownSide::stepNs),
                              partOf(rank.now, &BreakdownSide::stepNs));
        for (const auto& [name, part] : kParts) addTimes(step, name, partOf(rank.base, part), partOf(rank.now, part));
    }
}

void DifferencesPanel::addCollectives() {
    const auto& collectives = m_difference.comparison.collectives;
    if (collectives.empty()) return;
    auto* head = addWords(m_tree, "Communication, a rank's mean");
    const auto timeOf = [](const std::optional<compare::TrafficSummary>& side) {
        return side ? std::optional(side->transferNs + side->waitNs) : std::nullopt;
    };
    for (const compare::CollectiveChange& row : collectives) {
        const QString name = safe(row.op + " of " + row.role + ", " + row.sizeClass);
        setTip(addTimes(head, name, timeOf(row.base), timeOf(row.now)), name, "waiting for other ranks is in it");
    }
}

void DifferencesPanel::addKernels() {
    const auto& kernels = m_difference.comparison.kernels;
    if (kernels.empty()) return;
    auto* head = addWords(m_tree, "Kernels, a rank's mean");
    std::vector<std::string> names;
    for (const compare::KernelChange& kernel : kernels) names.push_back(displayText(kernel.name));
    names = shortNames(names);
    for (size_t i = 0; i < kernels.size(); ++i) {
        const compare::KernelChange& kernel = kernels[i];
        auto* line = addTimes(head, shown(names[i]), partOf(kernel.base, &compare::KernelSummary::ns),
                              partOf(kernel.now, &compare::KernelSummary::ns));
        line->setData(0, kKindRole, int{kernelLine});
        line->setData(0, kEntryRole, static_cast<qulonglong>(i));
        const auto count = [](const std::optional<compare::KernelSummary>& side) { return side ? side->count : 0; };
        setTip(line, safe(kernel.name),
               QString("%1 times a step in A, %2 in B")
                   .arg(count(kernel.base), 0, 'g', 4)
                   .arg(count(kernel.now), 0, 'g', 4));
    }
    head->setExpanded(true);
}

void DifferencesPanel::goTo(const QTreeWidgetItem* item) {
    const auto index = static_cast<size_t>(item->data(0, kEntryRole).toULongLong());
    if (item->data(0, kKindRole).toInt() == findingLine && index < m_difference.findings.size()) {
        const FindingPlaces& finding = m_difference.findings[index];
        // Both sides, and B last: what it shows stays in view.
        if (finding.inA) m_a.tour().goTo(m_a.model().run()->findings[*finding.inA]);
        if (finding.inB) m_b.tour().goTo(m_b.model().run()->findings[*finding.inB]);
    } else if (item->data(0, kKindRole).toInt() == kernelLine && index < m_difference.kernels.size()) {
        const KernelPlaces& kernel = m_difference.kernels[index];
        const auto show = [](RunPane& pane, const EventLink& link) {
            if (link.table != EventTable::none && pane.model().goToRow(link.table, link.rowId, link.rank))
                pane.timeline().scrollToSelection();
        };
        show(m_b, kernel.inB);
        show(m_a, kernel.inA);
    }
}

}  // namespace rankscope::gui
