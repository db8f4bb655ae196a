// SPDX-License-Identifier: Apache-2.0
#include "gui/table/range_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QScrollBar>
#include <QSplitter>
#include <QTabWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/session/column_text.h"
#include "gui/session/short_name.h"
#include "gui/timeline/display_text.h"
#include "gui/timeline/time_axis.h"
#include "gui/view/qt_text.h"

namespace rankscope::gui {
namespace {

constexpr int kRestMs = 120;
constexpr int kLeastForLists = 360;  // names of ten characters beside their numbers
constexpr int kIndexRole = Qt::UserRole;
constexpr int kNumberRole = Qt::UserRole + 1;  // what a column is sorted by, where that is not its text

constexpr int kFirstRole = Qt::UserRole + 2;  // the line stays above the others however they are sorted

// A line that sorts numbers as numbers.
class Line : public QTreeWidgetItem {
  public:
    using QTreeWidgetItem::QTreeWidgetItem;
    bool operator<(const QTreeWidgetItem& other) const override {
        const bool ascending = !treeWidget() || treeWidget()->header()->sortIndicatorOrder() == Qt::AscendingOrder;
        if (data(0, kFirstRole).toBool() || other.data(0, kFirstRole).toBool())
            return data(0, kFirstRole).toBool() == ascending;
        const int column = treeWidget() ? std::max(0, treeWidget()->sortColumn()) : 0;
        const QVariant mine = data(column, kNumberRole), its = other.data(column, kNumberRole);
        return mine.isValid() && its.isValid() ? mine.toDouble() < its.toDouble() : QTreeWidgetItem::operator<(other);
    }
};

struct Cell {
    QString text;
    std::optional<int64_t> number;  // what it is sorted by, and then aligned to the right
    QString tip = {};               // where the text is not all there is to say
};

QString percent(int64_t ns, double whole) {
    return whole > 0 ? QString("%1 %").arg(100 * static_cast<double>(ns) / whole, 0, 'f', 1) : QString();
}

QTreeWidget* makeList(const QStringList& titles, int stretched, QWidget* parent) {
    auto* list = new QTreeWidget(parent);
    list->setHeaderLabels(titles);
    list->setRootIsDecorated(false);
    list->setUniformRowHeights(true);
    list->setAlternatingRowColors(true);
    list->header()->setStretchLastSection(false);
    list->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
    if (stretched >= 0) list->header()->setSectionResizeMode(stretched, QHeaderView::Stretch);
    list->setTextElideMode(Qt::ElideMiddle);  // kernels of one namespace differ at the end
    list->header()->setSortIndicator(-1, Qt::AscendingOrder);
    list->setSortingEnabled(true);
    return list;
}

QTreeWidgetItem* addLine(QTreeWidget* list, const std::vector<Cell>& cells, size_t index) {
    auto* line = new Line;
    line->setData(0, kIndexRole, static_cast<qulonglong>(index));
    for (int column = 0; column < static_cast<int>(cells.size()); ++column) {
        const Cell& cell = cells[static_cast<size_t>(column)];
        line->setText(column, cell.text);
        if (cell.number) {
            line->setData(column, kNumberRole, static_cast<qlonglong>(*cell.number));
            line->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
        } else {
            line->setToolTip(column, "<p>" + (cell.tip.isEmpty() ? cell.text : cell.tip).toHtmlEscaped() + "</p>");
        }
    }
    list->addTopLevelItem(line);
    return line;
}

Cell number(size_t value) {
    return {shown(groupedNumber(static_cast<int64_t>(value))), static_cast<int64_t>(value)};
}
Cell time(int64_t ns) {
    return {duration(ns), ns};
}
Cell part(int64_t ns, double whole) {
    return {percent(ns, whole), ns};
}

}  // namespace

RangePanel::RangePanel(TimelineModel& model, RunSession& session, Layout arrangement, QWidget* parent)
    : QWidget(parent),
      m_model(model),
      m_session(session),
      m_newest(std::make_shared<std::atomic<uint64_t>>(0)),
      m_lists(new QSplitter(this)),
      m_title(new QLabel(this)),
      m_idle(new QLabel(this)),
      m_copy(new QPushButton("Copy", this)),
      m_ranks(makeList({"Rank", "Compute", "With comm.", "Waiting", "Transfer", "Memory", "Idle", "Hidden"}, -1, this)),
      m_kernels(makeList({"Kernel", "Time", "Share", "Count", "Longest"}, 0, this)),
      m_collectives(makeList({"Collective", "Count", "Transfer", "Waiting", "Worst skew"}, 0, this)),
      m_gaps(makeList({"Rank"}, -1, this)) {
    setObjectName("range");
    m_title->setObjectName("range-title");
    m_kernels->setObjectName("range-kernels");
    m_ranks->setObjectName("range-ranks");
    m_collectives->setObjectName("range-collectives");
    m_gaps->setObjectName("range-idle");
    m_gaps->setToolTip(
        "Idle time of each rank by its cause, in the steps that are analysed. Percentages are of the selected time.");
    m_title->setTextFormat(Qt::PlainText);
    m_idle->setTextFormat(Qt::PlainText);
    m_idle->setWordWrap(true);
    m_collectives->setToolTip(
        "Transfer: from the last arrival to the end. Waiting: of all members for the last one. A click goes to the "
        "worst skew.");
    m_kernels->setToolTip("Time of all ranks. A click goes to the longest one.");
    m_ranks->setToolTip(
        "With comm.: compute with communication behind it. Waiting and transfer: communication alone, until the last "
        "rank has come and from then on (of ranks that are not recorded nobody knows when they came: then waiting is "
        "at least so much, and transfer at most). Together with idle they are the whole range. Hidden: share of the "
        "communication that is behind compute.");
    auto* head = new QHBoxLayout;
    head->addWidget(m_title, 1);
    head->addWidget(m_copy);
    auto* left = new QWidget(this);
    auto* leftLayout = new QVBoxLayout(left);
    leftLayout->setContentsMargins(0, 0, 0, 0);
    leftLayout->addWidget(m_ranks, 1);
    leftLayout->addWidget(m_idle);
    auto* tops = new QTabWidget(m_lists);
    tops->setDocumentMode(true);
    if (arrangement == Layout::beside)
        m_lists->insertWidget(0, left);
    else
        tops->addTab(left, "Ranks");
    tops->addTab(m_kernels, "Kernels");
    tops->addTab(m_collectives, "Collectives");
    tops->addTab(m_gaps, "Idle by cause");
    m_lists->addWidget(tops);
    connect(m_lists, &QSplitter::splitterMoved, this, [this] { m_divided = true; });
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(4, 4, 4, 4);
    layout->addLayout(head);
    layout->addWidget(m_lists, 1);
    m_rest.setSingleShot(true);
    m_rest.setInterval(kRestMs);
    connect(&m_rest, &QTimer::timeout, this, &RangePanel::ask);
    connect(m_copy, &QPushButton::clicked, this,
            [this] { QApplication::clipboard()->setText(shown(rangeText(m_activity, m_tables))); });
    connect(&m_model, &TimelineModel::timeSelectionChanged, this, &RangePanel::selected);
    connect(&m_model, &TimelineModel::runChanged, this, &RangePanel::selected);
    connect(&m_model, &TimelineModel::lanesChanged, this, [this] {
        if (m_model.timeSelection() && m_model.lanes().loaded().size() != m_activity.ranks.size()) m_rest.start();
    });
    connect(m_kernels, &QTreeWidget::itemClicked, this, [this](QTreeWidgetItem* item) {
        const auto index = static_cast<size_t>(item->data(0, kIndexRole).toULongLong());
        if (index >= m_activity.kernels.size()) return;
        m_model.goTo(m_activity.kernels[index].longest);
        emit jumped();
    });
    connect(m_collectives, &QTreeWidget::itemClicked, this, [this](QTreeWidgetItem* item) {
        const auto index = static_cast<size_t>(item->data(0, kIndexRole).toULongLong());
        if (index >= m_tables.collectives.size() || !m_tables.collectives[index].worst) return;
        const EventLink worst = *m_tables.collectives[index].worst;
        if (m_model.goToRow(worst.table, worst.rowId, worst.rank)) emit jumped();
    });
    selected();
}

void RangePanel::selected() {
    ++*m_newest;
    m_task.cancel();
    m_asked.reset();
    if (m_model.timeSelection()) {
        m_rest.start();
        return;
    }
    m_rest.stop();
    m_activity = {};
    m_tables = {};
    for (QTreeWidget* list : {m_ranks, m_kernels, m_collectives, m_gaps}) list->clear();
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
    m_asked.emplace();
    if (m_activity.ranks.empty()) m_title->setText("counting \u2026");
    m_task.start([range, run = m_model.sharedRun(), tracks = std::move(tracks)](
                     const std::atomic<bool>& cancelled) { return rangeActivity(*run, tracks, range, cancelled); },
                 [this](RangeActivity activity) {
                     m_asked->activity = std::move(activity);
                     showIfAnswered();
                 });
    m_session.queries().ask(
        this,
        [newest = m_newest, number, range](store::TraceReader& reader) -> std::pair<RangeTables, std::string> {
            try {
                return {*newest == number ? readRangeTables(reader, range) : RangeTables{}, {}};
            } catch (const std::exception& error) {
                return {{}, error.what()};
            }
        },
        [this, number](std::pair<RangeTables, std::string> answer) {
            if (*m_newest != number) return;
            m_asked->tables = std::move(answer.first);
            m_asked->trouble = std::move(answer.second);
            showIfAnswered();
        });
}

// All at once: what the tables say of an earlier range would be read as of this one.
void RangePanel::showIfAnswered() {
    if (!m_asked->activity || !m_asked->tables) return;
    m_activity = std::move(*m_asked->activity);
    m_tables = std::move(*m_asked->tables);
    const std::string trouble = std::move(m_asked->trouble);
    m_asked.reset();
    showActivity();
    showTables();
    if (!trouble.empty())
        m_idle->setText("Idle times and collectives cannot be read from the recording: " + shown(displayText(trouble)));
    emit counted();
}

void RangePanel::showActivity() {
    const int64_t span = m_activity.range.span();
    const size_t all = m_model.run()->outline.ranks.size();
    QString title =
        QString("%1 from %2 to %3")
            .arg(duration(span), shown(timeText(m_activity.range.beginNs)), shown(timeText(m_activity.range.endNs)));
    if (m_activity.ranks.size() < all)
        title += QString("; %1 of %2 ranks are loaded").arg(m_activity.ranks.size()).arg(all);
    if (m_activity.kernelNames > m_activity.kernels.size())
        title += QString("; listed are the %1 of %2 kernels that took longest")
                     .arg(m_activity.kernels.size())
                     .arg(m_activity.kernelNames);
    m_title->setText(title);
    fillRanks();
    m_kernels->clear();
    std::vector<std::string> names;
    for (const KernelTotal& kernel : m_activity.kernels) names.push_back(kernel.name);
    names = shortNames(names);
    for (size_t i = 0; i < m_activity.kernels.size(); ++i) {
        const KernelTotal& kernel = m_activity.kernels[i];
        addLine(m_kernels,
                {{shown(names[i]), {}, shown(kernel.name)},
                 time(kernel.totalNs),
                 part(kernel.totalNs, static_cast<double>(m_activity.kernelNs)),
                 number(kernel.count),
                 time(kernel.longestNs)},
                i);
    }
    m_copy->setEnabled(true);
}

void RangePanel::fillRanks() {
    const int64_t span = m_activity.range.span();
    const auto& unknown = m_tables.ranksOfUnknownWaits;
    m_ranks->clear();
    const auto line = [&](Cell name, const RankActivity& rank, double whole, bool isUnknown) {
        std::vector<Cell> cells{std::move(name)};
        for (size_t activity = 0; activity < kActivities; ++activity) {
            cells.push_back(part(rank.times[activity], whole));
            if (!isUnknown) continue;
            if (activity == static_cast<size_t>(Activity::waiting)) cells.back().text.prepend("\u2265 ");
            if (activity == static_cast<size_t>(Activity::transfer)) cells.back().text.prepend("\u2264 ");
        }
        cells.push_back(part(rank.idleNs, whole));
        if (const auto overlap = rank.overlap())
            cells.push_back({QString("%1 %").arg(100 * *overlap, 0, 'f', 1), static_cast<int64_t>(1e6 * *overlap)});
        return addLine(m_ranks, cells, 0);
    };
    if (m_activity.ranks.size() > 1)
        line({"all", 0}, m_activity.sum(), static_cast<double>(span) * static_cast<double>(m_activity.ranks.size()),
             !unknown.empty())
            ->setData(0, kFirstRole, true);
    for (const RankActivity& rank : m_activity.ranks)
        line({QString::number(rank.rank), rank.rank}, rank, static_cast<double>(span), unknown.contains(rank.rank));
    makeRoomForRanks();
}

// All columns of the ranks in sight, but half of the room for the lists beside them.
void RangePanel::makeRoomForRanks() {
    if (m_divided || m_lists->count() < 2) return;
    int wanted = m_ranks->verticalScrollBar()->sizeHint().width() + 2 * m_ranks->frameWidth();
    for (int column = 0; column < m_ranks->columnCount(); ++column) {
        m_ranks->resizeColumnToContents(column);
        wanted += m_ranks->columnWidth(column);
    }
    const int room = m_lists->width() - m_lists->handleWidth();
    m_lists->setSizes(
        {std::min(wanted, std::max(room / 2, room - kLeastForLists)), std::max(kLeastForLists, room - wanted)});
}

void RangePanel::showTables() {
    m_collectives->clear();
    for (size_t i = 0; i < m_tables.collectives.size(); ++i) {
        const CollectiveTotal& total = m_tables.collectives[i];
        const QString size = total.bytes ? shown(bytesText(*total.bytes)).section(" (", 0, 0) : QString("size unknown");
        addLine(m_collectives,
                {{QString("%1, %2, %3").arg(shown(total.operation), size, shown(total.communicator)), {}},
                 number(static_cast<size_t>(std::max<int64_t>(0, total.count))),
                 time(total.transferNs),
                 time(total.waitNs),
                 time(total.worstSkewNs)},
                i);
    }
    fillGaps();
    fillIdle();
}

void RangePanel::fillGaps() {
    m_gaps->clear();
    QStringList titles{"Rank"};
    for (const IdleCause& cause : m_tables.idle) titles << shown(causeText(cause.cause));
    titles << "All";
    m_gaps->setColumnCount(static_cast<int>(titles.size()));
    m_gaps->setHeaderLabels(titles);
    const auto span = m_model.timeSelection() ? static_cast<double>(m_model.timeSelection()->span()) : 0.0;
    for (const RankIdle& rank : m_tables.idleOfRank) {
        std::vector<Cell> cells{{QString::number(rank.rank), rank.rank}};
        double all = 0;  // of a damaged file the sum may be anything
        for (const int64_t ns : rank.ns) {
            cells.push_back({ns > 0 ? duration(ns) + " (" + percent(ns, span) + ")" : QString("0"), ns});
            all += static_cast<double>(ns);
        }
        const auto sum = static_cast<int64_t>(std::clamp(all, -9e18, 9e18));
        cells.push_back({duration(sum) + " (" + percent(sum, span) + ")", sum});
        addLine(m_gaps, cells, 0);
    }
}

void RangePanel::fillIdle() {
    QStringList causes;
    for (const IdleCause& cause : m_tables.idle)
        causes << QString("%1 %2 in %3 %4")
                      .arg(shown(causeText(cause.cause)), duration(cause.ns))
                      .arg(cause.gaps)
                      .arg(cause.gaps == 1 ? "gap" : "gaps");
    const QString capped = m_tables.collectiveKinds > m_tables.collectives.size()
                               ? QString("\nListed are the %1 of %2 kinds of collectives that took longest.")
                                     .arg(m_tables.collectives.size())
                                     .arg(m_tables.collectiveKinds)
                               : QString();
    m_idle->setText(causes.isEmpty() ? QString(m_model.run() && m_model.run()->analyzed
                                                   ? "No idle gaps of analysed steps."
                                                   : "Idle by cause: rankscope analyze finds it.") +
                                           capped
                                     : "Idle by cause, all ranks: " + causes.join(", ") + capped);
}

}  // namespace rankscope::gui
