// SPDX-License-Identifier: Apache-2.0
#include "gui/table/range_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QSplitter>
#include <QVBoxLayout>

#include "gui/session/column_text.h"
#include "gui/timeline/time_axis.h"

namespace rankscope::gui {
namespace {

constexpr int kRestMs = 120;
constexpr int kIndexRole = Qt::UserRole;

QString shown(const std::string& text) { return QString::fromStdString(text); }
QString duration(int64_t ns) { return shown(durationText(ns)); }
QString percent(int64_t ns, double whole) { return whole > 0 ? QString("%1 %").arg(100 * static_cast<double>(ns) / whole, 0, 'f', 1) : QString(); }

QTreeWidget* makeList(const QStringList& titles, int stretched, QWidget* parent) {
    auto* list = new QTreeWidget(parent);
    list->setHeaderLabels(titles);
    list->setRootIsDecorated(false);
    list->setUniformRowHeights(true);
    list->setAlternatingRowColors(true);
    list->header()->setStretchLastSection(false);
    list->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
    if (stretched >= 0) list->header()->setSectionResizeMode(stretched, QHeaderView::Stretch);
    return list;
}

void addRow(QTreeWidget* list, const QStringList& texts, size_t index, int leftAligned) {
    auto* item = new QTreeWidgetItem(list, texts);
    item->setData(0, kIndexRole, static_cast<qulonglong>(index));
    for (int column = 0; column < texts.size(); ++column)
        if (column != leftAligned) item->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    if (leftAligned >= 0) item->setToolTip(leftAligned, texts[leftAligned].toHtmlEscaped());
}

}  // namespace

RangePanel::RangePanel(TimelineModel& model, RunSession& session, QWidget* parent)
    : QWidget(parent),
      m_model(model),
      m_session(session),
      m_newest(std::make_shared<std::atomic<uint64_t>>(0)),
      m_title(new QLabel(this)),
      m_idle(new QLabel(this)),
      m_copy(new QPushButton("Copy", this)),
      m_ranks(makeList({"Rank", "Compute", "Overlapped", "Exposed", "Memory", "Idle"}, -1, this)),
      m_kernels(makeList({"Kernel", "Time", "Share", "Count", "Longest"}, 0, this)),
      m_collectives(makeList({"Collective", "Count", "Transfer", "Waiting", "Worst skew"}, 0, this)) {
    setObjectName("range");
    m_kernels->setObjectName("range-kernels");
    m_ranks->setObjectName("range-ranks");
    m_collectives->setObjectName("range-collectives");
    m_title->setTextFormat(Qt::PlainText);
    m_idle->setTextFormat(Qt::PlainText);
    m_idle->setWordWrap(true);
    m_ranks->setToolTip("Overlapped: communication behind compute. Exposed: communication alone. Together with idle they are the whole range.");
    auto* head = new QHBoxLayout;
    head->addWidget(m_title, 1);
    head->addWidget(m_copy);
    auto* left = new QWidget(this);
    auto* leftLayout = new QVBoxLayout(left);
    leftLayout->setContentsMargins(0, 0, 0, 0);
    leftLayout->addWidget(m_ranks, 1);
    leftLayout->addWidget(m_idle);
    auto* lists = new QSplitter(this);
    lists->addWidget(left);
    lists->addWidget(m_kernels);
    lists->addWidget(m_collectives);
    lists->setSizes({360, 430, 430});
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(4, 4, 4, 4);
    layout->addLayout(head);
    layout->addWidget(lists, 1);
    m_rest.setSingleShot(true);
    m_rest.setInterval(kRestMs);
    connect(&m_rest, &QTimer::timeout, this, &RangePanel::ask);
    connect(m_copy, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(shown(rangeText(m_activity, m_tables))); });
    connect(&m_model, &TimelineModel::timeSelectionChanged, this, &RangePanel::selected);
    connect(&m_model, &TimelineModel::runChanged, this, &RangePanel::selected);
    connect(&m_model, &TimelineModel::lanesChanged, this, [this] {
        if (m_model.timeSelection() && m_model.lanes().loaded().size() != m_activity.ranks.size()) m_rest.start();
    });
    connect(m_kernels, &QTreeWidget::itemClicked, this, [this](QTreeWidgetItem* item) {
        const auto index = static_cast<size_t>(item->data(0, kIndexRole).toULongLong());
        if (index < m_activity.kernels.size()) m_model.goTo(m_activity.kernels[index].longest);
    });
    connect(m_collectives, &QTreeWidget::itemClicked, this, [this](QTreeWidgetItem* item) {
        const auto index = static_cast<size_t>(item->data(0, kIndexRole).toULongLong());
        if (index >= m_tables.collectives.size() || !m_tables.collectives[index].worst) return;
        const EventLink worst = *m_tables.collectives[index].worst;
        m_model.goToRow(worst.table, worst.rowId, worst.rank);
    });
    selected();
}

void RangePanel::selected() {
    ++*m_newest;
    m_task.cancel();
    if (m_model.timeSelection()) {
        m_rest.start();
        return;
    }
    m_rest.stop();
    m_activity = {};
    m_tables = {};
    for (QTreeWidget* list : {m_ranks, m_kernels, m_collectives}) list->clear();
    m_idle->clear();
    m_copy->setEnabled(false);
    m_title->setText("Drag over the timeline to select a range of time.");
}

void RangePanel::ask() {
    if (!m_model.timeSelection() || !m_model.run()) return;
    const TimeRange range = *m_model.timeSelection();
    const uint64_t number = ++*m_newest;
    std::vector<RankTracksPtr> tracks;
    for (const auto& [rank, loaded] : m_model.lanes().loaded()) tracks.push_back(loaded);
    m_task.start([range, run = m_model.sharedRun(),
                  tracks = std::move(tracks)](const std::atomic<bool>& cancelled) { return rangeActivity(*run, tracks, range, cancelled); },
                 [this](RangeActivity activity) { showActivity(std::move(activity)); });
    m_session.queries().ask(
        this,
        [newest = m_newest, number, range](store::TraceReader& reader) { return *newest == number ? readRangeTables(reader, range) : RangeTables{}; },
        [this, number](RangeTables tables) {
            if (*m_newest == number) showTables(std::move(tables));
        });
}

void RangePanel::showActivity(RangeActivity activity) {
    m_activity = std::move(activity);
    const int64_t span = m_activity.range.span();
    const size_t all = m_model.run()->outline.ranks.size();
    m_title->setText(
        QString("%1 from %2 to %3%4")
            .arg(duration(span), shown(timeText(m_activity.range.beginNs)), shown(timeText(m_activity.range.endNs)),
                 m_activity.ranks.size() < all ? QString("; %1 of %2 ranks are loaded").arg(m_activity.ranks.size()).arg(all) : QString()));
    m_ranks->clear();
    const auto row = [&](const QString& name, const RankActivity& rank, double whole) {
        QStringList texts{name};
        for (const int64_t ns : rank.times) texts << percent(ns, whole);
        addRow(m_ranks, texts << percent(rank.idleNs, whole), 0, -1);
    };
    if (m_activity.ranks.size() > 1) row("all", m_activity.sum(), static_cast<double>(span) * static_cast<double>(m_activity.ranks.size()));
    for (const RankActivity& rank : m_activity.ranks) row(QString::number(rank.rank), rank, static_cast<double>(span));
    m_kernels->clear();
    for (size_t i = 0; i < m_activity.kernels.size(); ++i) {
        const KernelTotal& kernel = m_activity.kernels[i];
        addRow(m_kernels,
               {shown(kernel.name), duration(kernel.totalNs), percent(kernel.totalNs, static_cast<double>(m_activity.kernelNs)),
                QString::number(kernel.count), duration(kernel.longestNs)},
               i, 0);
    }
    if (m_activity.kernelNames > m_activity.kernels.size())
        addRow(m_kernels, {QString("and %1 further names, which took less").arg(m_activity.kernelNames - m_activity.kernels.size())}, SIZE_MAX, 0);
    m_copy->setEnabled(true);
    fillIdle();
}

void RangePanel::showTables(RangeTables tables) {
    m_tables = std::move(tables);
    m_collectives->clear();
    for (size_t i = 0; i < m_tables.collectives.size(); ++i) {
        const CollectiveTotal& total = m_tables.collectives[i];
        const QString size = total.bytes ? shown(bytesText(*total.bytes)).section(" (", 0, 0) : QString("size unknown");
        addRow(m_collectives,
               {QString("%1, %2, %3").arg(shown(total.operation), size, shown(total.communicator)), QString::number(total.count),
                duration(total.transferNs), duration(total.waitNs), duration(total.worstSkewNs)},
               i, 0);
    }
    if (m_tables.collectiveKinds > m_tables.collectives.size())
        addRow(m_collectives, {QString("and %1 further kinds, which took less").arg(m_tables.collectiveKinds - m_tables.collectives.size())},
               SIZE_MAX, 0);
    fillIdle();
}

void RangePanel::fillIdle() {
    QStringList causes;
    for (const IdleCause& cause : m_tables.idle)
        causes
            << QString("%1 %2 in %3 %4").arg(shown(causeText(cause.cause)), duration(cause.ns)).arg(cause.gaps).arg(cause.gaps == 1 ? "gap" : "gaps");
    m_idle->setText(causes.isEmpty() ? QString(m_model.run() && m_model.run()->analyzed ? "No idle gaps of analysed steps."
                                                                                        : "Idle by cause: rankscope analyze finds it.")
                                     : "Idle by cause, all ranks: " + causes.join(", "));
}

}  // namespace rankscope::gui
