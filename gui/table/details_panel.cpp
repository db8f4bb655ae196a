// SPDX-License-Identifier: Apache-2.0
#include "gui/table/details_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QVBoxLayout>

#include "gui/view/qt_text.h"

namespace rankscope::gui {
namespace {

constexpr int kSectionRole = Qt::UserRole, kRowRole = Qt::UserRole + 1;

// A C++ name may break into lines where a person would break it.
QString breakable(QString name) {
    for (const char* mark : {"::", "<", ",", "_", "("}) name.replace(mark, mark + QString(QChar(0x200B)));
    return name;
}

}  // namespace

DetailsPanel::DetailsPanel(TimelineModel& model, RunSession& session, QWidget* parent)
    : QWidget(parent),
      m_model(model),
      m_session(session),
      m_newest(std::make_shared<std::atomic<uint64_t>>(0)),
      m_title(new QLabel(this)),
      m_lines(new QTreeWidget(this)),
      m_copy(new QPushButton("Copy", this)),
      m_copySql(new QPushButton("Copy SQL", this)) {
    setObjectName("details");
    m_title->setTextFormat(Qt::PlainText);
    m_title->setWordWrap(true);
    m_title->setMaximumHeight(3 * fontMetrics().height() + 4);  // of a long name the tree shows the rest
    m_title->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_lines->setObjectName("details-lines");
    m_lines->setHeaderHidden(true);
    m_lines->setColumnCount(2);
    m_lines->setRootIsDecorated(true);
    m_lines->setIndentation(12);
    m_lines->setUniformRowHeights(true);
    m_lines->header()->setStretchLastSection(true);
    m_copySql->setToolTip("A SELECT that returns the event's row of trace.db");
    auto* buttons = new QHBoxLayout;
    buttons->addStretch();
    buttons->addWidget(m_copy);
    buttons->addWidget(m_copySql);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(4, 4, 4, 4);
    layout->addWidget(m_title);
    layout->addWidget(m_lines, 1);
    layout->addLayout(buttons);
    connect(m_copy, &QPushButton::clicked, this,
            [this] { QApplication::clipboard()->setText(shown(detailsText(m_details))); });
    connect(m_copySql, &QPushButton::clicked, this,
            [this] { QApplication::clipboard()->setText(shown(m_details.sql)); });
    connect(m_lines, &QTreeWidget::itemDoubleClicked, this, [this](QTreeWidgetItem* item) { goTo(item); });
    connect(m_lines, &QTreeWidget::itemActivated, this, [this](QTreeWidgetItem* item) { goTo(item); });
    connect(&m_model, &TimelineModel::selectionChanged, this, &DetailsPanel::ask);
    connect(&m_model, &TimelineModel::runChanged, this, &DetailsPanel::ask);
    ask();
}

void DetailsPanel::ask() {
    const uint64_t number = ++*m_newest;
    const EventRef selected = m_model.selection();
    m_copy->setEnabled(false);
    m_copySql->setEnabled(false);
    m_lines->clear();
    m_details = {};
    if (!m_model.isValid(selected)) {
        m_title->setText("Click an event to see everything that is known of it.");
        return;
    }
    m_title->setText(breakable(m_model.eventName(selected)) + "\n" + m_model.place(selected));
    const EventLink event{m_model.table(selected), m_model.rowId(selected), selected.rank};
    m_session.queries().ask(
        this,
        [newest = m_newest, number, event, run = m_model.sharedRun()](store::TraceReader& reader) {
            return *newest == number ? readEventDetails(reader, *run, event) : EventDetails{};
        },
        [this, number](EventDetails details) {
            if (*m_newest == number) show(std::move(details));
        });
}

void DetailsPanel::show(EventDetails details) {
    m_details = std::move(details);
    m_title->setText(breakable(shown(m_details.title)));
    m_title->setToolTip(shown(m_details.title).toHtmlEscaped());
    QFont bold = font();
    bold.setBold(true);
    for (size_t s = 0; s < m_details.sections.size(); ++s) {
        const DetailSection& section = m_details.sections[s];
        auto* head = new QTreeWidgetItem(m_lines, {shown(section.title)});
        head->setFont(0, bold);
        head->setFirstColumnSpanned(true);
        for (size_t r = 0; r < section.rows.size(); ++r) {
            const DetailRow& row = section.rows[r];
            auto* line = new QTreeWidgetItem(head, {shown(row.label), shown(row.value)});
            line->setToolTip(1, shown(row.value).toHtmlEscaped());
            line->setData(0, kSectionRole, static_cast<qulonglong>(s));
            line->setData(0, kRowRole, static_cast<qulonglong>(r));
            if (!row.link) continue;
            line->setForeground(1, palette().color(QPalette::Link));
            line->setToolTip(1, "Double click: go there\n" + shown(row.value).toHtmlEscaped());
        }
        head->setExpanded(true);
    }
    m_lines->resizeColumnToContents(0);
    m_copy->setEnabled(true);
    m_copySql->setEnabled(!m_details.sql.empty());
}

void DetailsPanel::goTo(const QTreeWidgetItem* item) {
    if (!item || !item->parent()) return;
    const auto section = static_cast<size_t>(item->data(0, kSectionRole).toULongLong()),
               row = static_cast<size_t>(item->data(0, kRowRole).toULongLong());
    if (section >= m_details.sections.size() || row >= m_details.sections[section].rows.size()) return;
    const std::optional<EventLink> link =
        m_details.sections[section].rows[row].link;  // kept: going there makes new details
    if (link && m_model.goToRow(link->table, link->rowId, link->rank)) emit jumped();
}

}  // namespace rankscope::gui
