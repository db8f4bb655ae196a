// SPDX-License-Identifier: Apache-2.0
#include "gui/compare/differences_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gui/session/short_name.h"
#include "gui/timeline/time_axis.h"
#include "gui/view/qt_text.h"

namespace rankscope::gui {
namespace {

constexpr int kKindRole = Qt::UserRole, kEntryRole = Qt::UserRole + 1;
enum Kind : int { nothing, findingLine, kernelLine };
enum ColumnOf : int { what, inA, inB, changeColumn };

QString change(int64_t ns) {
    return ns == 0 ? QString("0") : (ns > 0 ? QString("+") : QString()) + duration(ns);
}
QString share(const std::optional<double>& value) {
    return value ? QString("%1 %").arg(100 * *value, 0, 'f', 1) : QString("\u2013");
}

QString percent(int64_t ns, int64_t of) {
    if (of <= 0) return {};
    const double share = 100.0 * static_cast<double>(ns) / static_cast<double>(of);
    return QString(" (%1%2 %)").arg(ns > 0 ? "+" : "").arg(share, 0, 'f', std::abs(share) < 99.95 ? 1 : 0);
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
    m_head->setWordWrap(true);
    m_head->setTextFormat(Qt::PlainText);
    m_tree->setObjectName("differences-lines");
    m_tree->setHeaderLabels({"Per step", "A", "B", "Change, of A"});
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
    connect(m_copy, &QPushButton::clicked, this,
            [this] { QApplication::clipboard()->setText(shown(differenceText(m_difference))); });
    connect(m_tree, &QTreeWidget::itemClicked, this, [this](QTreeWidgetItem* item) { goTo(item); });
    connect(m_tree, &QTreeWidget::itemActivated, this, [this](QTreeWidgetItem* item) { goTo(item); });
}

void DifferencesPanel::ask() {
    m_waiting = true;
    m_ofA.reset();
    m_ofB.reset();
    const auto read = [this](RunPane& pane, std::optional<RunSummary>& into) {
        pane.session().queries().ask(
            this,
            [run = pane.model().sharedRun()](store::TraceReader& reader) -> std::pair<RunSummary, std::string> {
                try {
                    return {readRunSummary(reader, *run), {}};
                } catch (const std::exception& error) {
                    return {RunSummary{}, error.what()};
                }
            },
            [this, &into](std::pair<RunSummary, std::string> answer) {
                if (!answer.second.empty()) {
                    m_waiting = false;
                    m_head->setText("The runs cannot be compared: " + shown(answer.second));
                    return;
                }
                into = std::move(answer.first);
                arrived();
            });
    };
    read(m_a, m_ofA);
    read(m_b, m_ofB);
}

void DifferencesPanel::arrived() {
    if (!m_ofA || !m_ofB) return;
    m_waiting = false;
    m_difference = compareRuns(*m_ofA, *m_a.model().run(), *m_ofB, *m_b.model().run());
    m_copy->setEnabled(true);
    fill();
}

void DifferencesPanel::fill() {
    const TimeChange& step = m_difference.step;
    QString head = step.aNs > 0 && step.bNs > 0 ? QString("Step %1 in A, %2 in B: %3%4, medians of %5 and %6 steps.")
                                                      .arg(duration(step.aNs), duration(step.bNs),
                                                           change(step.changeNs()), percent(step.changeNs(), step.aNs))
                                                      .arg(m_difference.aSteps)
                                                      .arg(m_difference.bSteps)
                                                : QString("The steps cannot be compared.");
    for (const std::string& remark : m_difference.remarks) head += "\n" + shown(remark) + ".";
    m_head->setText(head);
    m_tree->clear();
    addFindings();
    addRoles();
    addKernels();
}

void DifferencesPanel::addTimes(QTreeWidgetItem* parent, const TimeChange& time) {
    // A share of the row's own time in A, whatever the row is: as `rankscope compare` tells it.
    auto* line = new QTreeWidgetItem(parent, {shown(time.what), duration(time.aNs), duration(time.bNs),
                                              change(time.changeNs()) + percent(time.changeNs(), time.aNs)});
    for (const int column : {inA, inB, changeColumn}) line->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
}

void DifferencesPanel::addRoles() {
    QTreeWidgetItem* each = nullptr;  // single ranks fold into one line
    for (const RoleChange& role : m_difference.roles) {
        const bool single = role.role.starts_with("rank ");
        if (single && !each) each = new QTreeWidgetItem(m_tree, {"Time of each rank"});
        const QStringList texts{single ? shown(role.role) : "Time of " + shown(role.role), duration(role.step.aNs),
                                duration(role.step.bNs),
                                change(role.step.changeNs()) + percent(role.step.changeNs(), role.step.aNs)};
        auto* head = single ? new QTreeWidgetItem(each, texts) : new QTreeWidgetItem(m_tree, texts);
        for (const int column : {inA, inB, changeColumn})
            head->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
        for (const TimeChange& part : role.parts) addTimes(head, part);
        for (const TimeChange& cause : role.idleCauses) addTimes(head, cause);
        head->setExpanded(&role == &m_difference.roles.front());
    }
}

void DifferencesPanel::addFindings() {
    auto* head = new QTreeWidgetItem(m_tree, {m_difference.findings.empty() ? "Findings: none in either" : "Findings"});
    for (size_t i = 0; i < m_difference.findings.size(); ++i) {
        const FindingChange& finding = m_difference.findings[i];
        auto* line = new QTreeWidgetItem(head, {shown(finding.diagnosis + " " + finding.title), share(finding.aShare),
                                                share(finding.bShare), nameOf(finding.state)});
        for (const int column : {inA, inB, changeColumn})
            line->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
        line->setToolTip(what, "<p>" + shown(finding.diagnosis + " " + finding.title).toHtmlEscaped() + "</p>");
        line->setData(0, kKindRole, int{findingLine});
        line->setData(0, kEntryRole, static_cast<qulonglong>(i));
    }
    head->setExpanded(true);
}

void DifferencesPanel::addKernels() {
    if (m_difference.kernels.empty()) return;
    auto* head = new QTreeWidgetItem(m_tree, {m_difference.kernelNames > m_difference.kernels.size()
                                                  ? QString("Kernels, a rank's mean: the %1 of %2 that changed most")
                                                        .arg(m_difference.kernels.size())
                                                        .arg(m_difference.kernelNames)
                                                  : QString("Kernels, a rank's mean")});
    std::vector<std::string> names;
    for (const KernelChange& kernel : m_difference.kernels) names.push_back(kernel.time.what);
    names = shortNames(names);
    for (size_t i = 0; i < m_difference.kernels.size(); ++i) {
        const KernelChange& kernel = m_difference.kernels[i];
        addTimes(head, kernel.time);
        QTreeWidgetItem* line = head->child(static_cast<int>(i));
        line->setText(what, shown(names[i]));
        line->setData(0, kKindRole, int{kernelLine});
        line->setData(0, kEntryRole, static_cast<qulonglong>(i));
        const QString times =
            QString("%1 times a step in A, %2 in B").arg(kernel.aCount, 0, 'g', 4).arg(kernel.bCount, 0, 'g', 4);
        line->setToolTip(what, QString("<p>%1</p><p>%2%3</p>")
                                   .arg(shown(kernel.time.what).toHtmlEscaped(), times,
                                        kernel.communication ? "; waiting for other ranks is in it" : ""));
    }
    head->setExpanded(true);
}

void DifferencesPanel::goTo(const QTreeWidgetItem* item) {
    const auto index = static_cast<size_t>(item->data(0, kEntryRole).toULongLong());
    if (item->data(0, kKindRole).toInt() == findingLine && index < m_difference.findings.size()) {
        const FindingChange& finding = m_difference.findings[index];
        // Both sides, and B last: what it shows stays in view.
        if (finding.inA) m_a.tour().goTo(m_a.model().run()->findings[*finding.inA]);
        if (finding.inB) m_b.tour().goTo(m_b.model().run()->findings[*finding.inB]);
    } else if (item->data(0, kKindRole).toInt() == kernelLine && index < m_difference.kernels.size()) {
        const KernelChange& kernel = m_difference.kernels[index];
        const auto show = [](RunPane& pane, const EventLink& link) {
            if (link.table != EventTable::none && pane.model().goToRow(link.table, link.rowId, link.rank))
                pane.timeline().scrollToSelection();
        };
        show(m_b, kernel.bLongest);
        show(m_a, kernel.aLongest);
    }
}

}  // namespace rankscope::gui
