// SPDX-License-Identifier: Apache-2.0
#include "gui/table/search_panel.h"

#include <QHeaderView>
#include <QKeyEvent>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/session/column_text.h"
#include "gui/timeline/time_axis.h"

namespace rankscope::gui {
namespace {

constexpr int kMsBetweenSearches = 400;  // while ranks arrive

QString grouped(size_t value) {
    return QString::fromStdString(groupedNumber(static_cast<int64_t>(value)));
}

const char* nameOf(SearchOrder order) {
    switch (order) {
        case SearchOrder::start:
            return "start";
        case SearchOrder::duration:
            return "duration";
        case SearchOrder::name:
            return "name";
        case SearchOrder::rank:
            return "rank";
        case SearchOrder::lane:
            return "lane";
    }
    return "";
}

}  // namespace

SearchPanel::SearchPanel(TimelineModel& model, QWidget* parent) : QWidget(parent), m_model(model), m_events(model) {
    setObjectName("search");
    auto* filters = new QHBoxLayout;
    makeFilters(filters);
    makeTable();
    m_status = new QLabel(this);
    m_status->setObjectName("search-status");
    m_status->setTextFormat(Qt::PlainText);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(4, 4, 4, 2);
    layout->setSpacing(3);
    layout->addLayout(filters);
    layout->addWidget(m_table, 1);
    layout->addWidget(m_status);
    m_again.setSingleShot(true);
    m_again.setInterval(kMsBetweenSearches);
    connect(&m_again, &QTimer::timeout, this, &SearchPanel::changed);
    connect(&m_task, &LatestTask::failed, this, [this](const QString& message) {
        m_searching = false;
        tell(message, true);
    });
    connect(&m_model, &TimelineModel::runChanged, this, [this] {
        m_events.setHits({});
        changed();
    });
    connect(&m_model, &TimelineModel::lanesChanged, this, [this] {
        if (m_model.lanes().loaded().size() == m_ranksSearched) return;
        m_stale = true;
        if (!m_again.isActive()) m_again.start();
    });
    connect(&m_model, &TimelineModel::timeSelectionChanged, this, [this] {
        if (m_within->isChecked()) changed();
    });
    connect(&m_model, &TimelineModel::selectionChanged, this, [this] {
        if (const int row = m_events.rowOf(m_model.selection()); row >= 0) markRow(row);
    });
}

void SearchPanel::makeFilters(QHBoxLayout* row) {
    const auto edit = [&](const char* name, const char* hint, const char* help, int width) {
        auto* line = new QLineEdit(this);
        line->setObjectName(name);
        line->setPlaceholderText(hint);
        line->setToolTip(help);
        line->setClearButtonEnabled(true);
        if (width > 0) line->setFixedWidth(width);
        line->installEventFilter(this);
        connect(line, &QLineEdit::textChanged, this, &SearchPanel::changed);
        return line;
    };
    const auto button = [&](const char* text, const char* help) {
        auto* made = new QToolButton(this);
        made->setText(text);
        made->setToolTip(help);
        return made;
    };
    m_box = edit("search-box", "Regular expression for event names",
                 "Part of a name, or a regular expression: nccl.*(Reduce|Gather), ^void, layer\\d+\nEnter: next, "
                 "Shift+Enter: previous (F3, Shift+F3)",
                 0);
    m_case = button("Aa", "Upper and lower case differ");
    m_case->setCheckable(true);
    connect(m_case, &QToolButton::toggled, this, &SearchPanel::changed);
    m_class = new QComboBox(this);
    m_class->setObjectName("search-class");
    m_class->addItems({"All events", "Compute kernels", "Communication kernels", "Copies and sets", "NCCL calls",
                       "CUDA calls", "NVTX ranges", "Steps"});  // in order of EventClass
    connect(m_class, &QComboBox::currentIndexChanged, this, &SearchPanel::changed);
    m_duration = edit("search-duration", "any duration", "> 1 ms, < 20 us, 1 ms .. 2 ms", 130);
    m_ranks = edit("search-ranks", "all ranks", "3, or 0-7, 12", 110);
    m_within = new QCheckBox("in the selected time", this);
    connect(m_within, &QCheckBox::toggled, this, &SearchPanel::changed);
    auto* previous = button("\u25b2", "Previous (Shift+Enter, Shift+F3)");
    auto* next = button("\u25bc", "Next (Enter, F3)");
    connect(previous, &QToolButton::clicked, this, [this] { step(-1); });
    connect(next, &QToolButton::clicked, this, [this] { step(1); });
    row->addWidget(m_box, 1);
    for (QWidget* widget :
         std::initializer_list<QWidget*>{m_case, previous, next, m_class, m_duration, m_ranks, m_within})
        row->addWidget(widget);
}

void SearchPanel::makeTable() {
    m_table = new QTableView(this);
    m_table->setObjectName("events");
    m_table->setModel(&m_events);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setSelectionMode(QAbstractItemView::SingleSelection);
    m_table->setWordWrap(false);
    m_table->setShowGrid(false);
    m_table->setAlternatingRowColors(true);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(m_table->fontMetrics().height() + 4);
    QHeaderView* header = m_table->horizontalHeader();
    header->setHighlightSections(false);
    header->setSectionResizeMode(EventTableModel::nameColumn, QHeaderView::Stretch);
    const int digit = m_table->fontMetrics().horizontalAdvance('0');
    const int widths[] = {17 * digit, 12 * digit, 0, 7 * digit, 34 * digit};
    for (int column = 0; column < EventTableModel::columns; ++column)
        if (widths[column] > 0) m_table->setColumnWidth(column, widths[column]);
    header->setSortIndicator(EventTableModel::startColumn, Qt::AscendingOrder);
    m_table->setSortingEnabled(true);
    connect(&m_events, &EventTableModel::sortWanted, this, [this](SearchOrder order, bool descending) {
        m_request.order = order;
        m_request.descending = descending;
        changed();
    });
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& row) {
        if (!m_marking && row.isValid()) goTo(row.row());
    });
    connect(m_table, &QTableView::clicked, this, [this](const QModelIndex& row) { goTo(row.row()); });
}

void SearchPanel::setName(const QString& name) {
    QString escaped;
    for (const QChar c : name) escaped += QString("\\^$.[]|()?*+{}").contains(c) ? QString("\\") + c : QString(c);
    m_box->setText("^" + escaped + "$");
}

void SearchPanel::focusBox() {
    m_box->setFocus(Qt::ShortcutFocusReason);
    m_box->selectAll();
}

bool SearchPanel::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() != QEvent::KeyPress) return QWidget::eventFilter(watched, event);
    const auto* key = static_cast<QKeyEvent*>(event);
    switch (key->key()) {
        case Qt::Key_Return:
        case Qt::Key_Enter:
            step(key->modifiers() & Qt::ShiftModifier ? -1 : 1);
            return true;
        case Qt::Key_Escape:
            emit left();
            return true;
        case Qt::Key_Down:
            m_table->setFocus();
            return true;
        default:
            return QWidget::eventFilter(watched, event);
    }
}

void SearchPanel::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    if (m_stale) changed();
}

void SearchPanel::changed() {
    m_task.cancel();
    m_searching = false;
    m_stale = true;
    if (isVisible() && m_model.run()) search();
}

bool SearchPanel::readRequest() {
    const auto duration = parseDuration(m_duration->text().toStdString());
    const auto ranks = parseRanks(m_ranks->text().toStdString());
    if (!duration.error.empty() || !ranks.error.empty()) {
        tell(QString::fromStdString(duration.error.empty() ? ranks.error : duration.error), true);
        return false;
    }
    m_request.pattern = m_box->text().toStdString();
    m_request.caseSensitive = m_case->isChecked();
    m_request.events = static_cast<EventClass>(m_class->currentIndex());
    m_request.duration = duration.value;
    m_request.ranks = ranks.value;
    m_request.within = m_within->isChecked() ? m_model.timeSelection() : std::nullopt;
    return true;
}

void SearchPanel::search() {
    m_stale = false;
    if (!readRequest()) return;
    m_searching = true;
    std::vector<RankTracksPtr> tracks;
    for (const auto& [rank, loaded] : m_model.lanes().loaded()) tracks.push_back(loaded);
    m_ranksSearched = tracks.size();
    m_task.start([request = m_request, run = m_model.sharedRun(), tracks = std::move(tracks)](
                     const std::atomic<bool>& cancelled) { return searchEvents(request, *run, tracks, cancelled); },
                 [this](SearchResult result) { show(std::move(result)); });
}

void SearchPanel::show(SearchResult result) {
    m_searching = false;
    if (!result.error.empty()) {
        m_stepWhenFound = 0;
        tell("Regular expression: " + QString::fromStdString(result.error), true);
        return;
    }
    tell(countText(result));
    m_marking = true;
    markHits(result);
    m_events.setHits(std::move(result.hits));
    m_marking = false;
    if (const int row = m_events.rowOf(m_model.selection()); row >= 0) markRow(row);
    if (const int direction = std::exchange(m_stepWhenFound, 0); direction != 0) step(direction);
}

// What was asked for is marked in the timeline; all events are not.
void SearchPanel::markHits(const SearchResult& result) {
    std::vector<EventRef> marked;
    const bool asked =
        !m_request.pattern.empty() || m_request.events != EventClass::any || !(m_request.duration == DurationBounds{});
    for (size_t i = 0; asked && i < result.hits.size(); ++i) marked.push_back(result.hits[i].ref);
    m_model.setHits(std::move(marked));
}

QString SearchPanel::countText(const SearchResult& result) const {
    QString text = QString("%1 %2").arg(grouped(result.found), result.found == 1 ? "event" : "events");
    if (result.found > 0) text += ", " + QString::fromStdString(durationText(result.foundNs)) + " together";
    if (result.found > result.hits.size())
        text += QString("; listed are the first %1 by %2%3: narrow the search to see others")
                    .arg(grouped(result.hits.size()), nameOf(m_request.order),
                         m_request.descending ? ", the largest first" : "");
    const size_t ranks = m_model.run()->outline.ranks.size();
    if (m_ranksSearched < ranks) text += QString("; %1 of %2 ranks are loaded").arg(m_ranksSearched).arg(ranks);
    size_t leftOut = 0;
    for (const auto& [rank, tracks] : m_model.lanes().loaded()) leftOut += tracks->leftOut();
    if (leftOut > 0)
        text +=
            QString("; %1 events are nested too deeply to be shown or found; a .csv has them").arg(grouped(leftOut));
    if (m_within->isChecked() && !m_model.timeSelection())
        text += "; no time is selected, so all of the run is searched";
    return text;
}

void SearchPanel::tell(const QString& text, bool wrong) {
    QPalette colours;
    if (wrong)
        colours.setColor(QPalette::WindowText, palette().color(QPalette::Window).lightness() < 128
                                                   ? QColor(0xff, 0x8a, 0x70)
                                                   : QColor(0xc0, 0x30, 0x20));
    m_status->setPalette(colours);
    m_status->setText(text);
}

void SearchPanel::step(int direction) {
    if (!isSettled()) {
        m_stepWhenFound = direction;
        if (m_stale && m_model.run() && !m_again.isActive()) search();
        if (m_searching) return;
    }
    const auto& hits = m_events.hits();
    if (hits.empty()) return;
    const int last = static_cast<int>(hits.size()) - 1;
    int row = m_table->currentIndex().isValid() ? m_table->currentIndex().row() + direction : -1;
    if (!m_table->currentIndex().isValid()) {
        const bool byTime = m_request.order == SearchOrder::start && !m_request.descending;
        const auto inView = std::find_if(hits.begin(), hits.end(), [&](const SearchHit& hit) {
            return hit.event.startNs >= m_model.axis().visible().beginNs;
        });
        row = direction < 0 ? last : byTime && inView != hits.end() ? static_cast<int>(inView - hits.begin()) : 0;
    }
    goTo(row < 0 ? last : row > last ? 0 : row);
}

void SearchPanel::markRow(int row) {
    m_marking = true;
    m_table->setCurrentIndex(m_events.index(row, 0));
    m_table->scrollTo(m_events.index(row, 0));
    m_marking = false;
}

void SearchPanel::goTo(int row) {
    if (row < 0 || static_cast<size_t>(row) >= m_events.hits().size()) return;
    markRow(row);
    m_model.goTo(m_events.hits()[static_cast<size_t>(row)].ref);
    emit jumped();
}

}  // namespace rankscope::gui
