// SPDX-License-Identifier: Apache-2.0
#include "gui/table/sql_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QFontDatabase>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QVBoxLayout>

#include "gui/view/qt_text.h"

namespace rankscope::gui {
namespace {

constexpr const char* kFirstQuestion =
    "SELECT k.rank, s.text AS kernel, count(*) AS calls, sum(k.dur_ns) / 1e6 AS ms\n"
    "FROM kernel k JOIN string s ON s.id = k.name_id\n"
    "GROUP BY k.rank, s.text ORDER BY ms DESC LIMIT 100";

}  // namespace

SqlPanel::SqlPanel(TimelineModel& model, QWidget* parent)
    : QWidget(parent),
      m_model(model),
      m_question(new QPlainTextEdit(this)),
      m_run(new QPushButton("Ask", this)),
      m_copy(new QPushButton("Copy", this)),
      m_status(new QLabel(this)),
      m_table(new QTableWidget(this)) {
    m_question->setObjectName("sql-question");
    m_question->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_question->setPlainText(kFirstQuestion);
    m_question->setToolTip(
        "One SELECT (Ctrl + Enter asks it). trace.db is only read; schema.sql describes its tables.");
    m_question->setMaximumHeight(5 * m_question->fontMetrics().lineSpacing());
    m_question->installEventFilter(this);
    m_copy->setToolTip("The answer as text with tabs, for a spreadsheet");
    m_copy->setEnabled(false);
    m_status->setTextFormat(Qt::PlainText);
    m_status->setWordWrap(true);
    m_table->setObjectName("sql-answer");
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setAlternatingRowColors(true);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(m_table->fontMetrics().height() + 4);
    auto* buttons = new QHBoxLayout;
    buttons->addWidget(m_status, 1);
    buttons->addWidget(m_copy);
    buttons->addWidget(m_run);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(4, 4, 4, 4);
    layout->addWidget(m_question);
    layout->addLayout(buttons);
    layout->addWidget(m_table, 1);
    connect(m_run, &QPushButton::clicked, this, &SqlPanel::ask);
    connect(m_copy, &QPushButton::clicked, this, &SqlPanel::copy);
}

bool SqlPanel::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        const bool isReturn = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
        if (isReturn && key->modifiers() & Qt::ControlModifier) {
            ask();
            return true;
        }
    }
    return QWidget::eventFilter(watched, event);
}

// A new question ends the one that is on its way.
void SqlPanel::ask() {
    if (!m_model.run()) return;
    m_status->setText("asking \u2026");
    m_task.start(
        [file = m_model.run()->file,
         sql = m_question->toPlainText().toStdString()](const std::atomic<bool>& cancelled) {
            try {
                store::TraceReader reader(file, {}, store::MisplacedRows::kept);
                return askSql(reader, sql, cancelled);
            } catch (const std::exception& error) {
                SqlAnswer answer;
                answer.wrong = error.what();
                return answer;
            }
        },
        [this](const SqlAnswer& answer) { showAnswer(answer); });
}

void SqlPanel::showAnswer(const SqlAnswer& answer) {
    m_table->clear();
    m_table->setColumnCount(static_cast<int>(answer.columns.size()));
    m_table->setRowCount(static_cast<int>(answer.rows.size()));
    QStringList heads;
    for (const std::string& column : answer.columns) heads << shown(column);
    m_table->setHorizontalHeaderLabels(heads);
    for (int row = 0; row < m_table->rowCount(); ++row)
        for (int column = 0; column < m_table->columnCount(); ++column)
            m_table->setItem(
                row, column,
                new QTableWidgetItem(shown(answer.rows[static_cast<size_t>(row)][static_cast<size_t>(column)])));
    m_table->resizeColumnsToContents();
    m_copy->setEnabled(!answer.rows.empty());
    m_status->setText(!answer.wrong.empty() ? shown(answer.wrong)
                      : answer.cut
                          ? QString(answer.rows.size() < kMostSqlRows ? "the time was up after %1 rows"
                                                                      : "the first %1 rows; there may be more")
                                .arg(answer.rows.size())
                          : QString("%1 row%2").arg(answer.rows.size()).arg(answer.rows.size() == 1 ? "" : "s"));
}

void SqlPanel::copy() const {
    QString text;
    for (int row = -1; row < m_table->rowCount(); ++row) {
        QStringList cells;
        for (int column = 0; column < m_table->columnCount(); ++column)
            cells << (row < 0 ? m_table->horizontalHeaderItem(column) : m_table->item(row, column))->text();
        text += cells.join('\t') + "\n";
    }
    QApplication::clipboard()->setText(text);
}

}  // namespace rankscope::gui
