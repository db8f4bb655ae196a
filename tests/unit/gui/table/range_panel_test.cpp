// SPDX-License-Identifier: Apache-2.0
#include "gui/table/range_panel.h"

#include <gtest/gtest.h>

#include <QCoreApplication>
#include <future>

#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

using test::kUs;
using test::SmallRun;

template <typename Condition>
void processUntil(Condition&& condition) {
    while (!condition()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
}

class RangePanelTest : public testing::Test {
  protected:
    void open(const SmallRun& file) {
        bool loaded = false;
        QObject::connect(&m_session, &RunSession::loaded, [&](bool) { loaded = true; });
        m_session.open(file.folder.file().string(), std::nullopt);
        processUntil([&] { return loaded; });
    }
    void select(TimeRange range) {
        m_model.selectTime(range);
        processUntil([this] { return m_panel.isSettled(); });
    }
    QString title() const { return m_panel.findChild<QLabel*>("range-title")->text(); }
    QString all() const {
        QString text;
        for (const char* name : {"range-ranks", "range-kernels", "range-collectives", "range-idle"})
            for (const auto* list = m_panel.findChild<QTreeWidget*>(name); const int line : linesOf(*list))
                for (int column = 0; column < list->columnCount(); ++column)
                    text += list->topLevelItem(line)->text(column) + "|";
        return text;
    }

    TimelineModel m_model;
    RunSession m_session{m_model};
    RangePanel m_panel{m_model, m_session, RangePanel::Layout::beside};

  private:
    static std::vector<int> linesOf(const QTreeWidget& list) {
        std::vector<int> lines;
        for (int line = 0; line < list.topLevelItemCount(); ++line) lines.push_back(line);
        return lines;
    }
};

// When rank 0 came is known of nobody, so that its waiting is told as a bound wherever it communicates.
constexpr const char* kUnknownWait = "UPDATE collective_member SET wait_ns = NULL, transfer_ns = NULL WHERE rank = 0;";
constexpr TimeRange kWithCommunication{0, 1000 * kUs}, kWithout{100 * kUs, 200 * kUs};

TEST_F(RangePanelTest, WhatTheTablesSayOfARangeIsNeverShownAsOfTheNext) {
    const SmallRun file(kUnknownWait);
    open(file);
    select(kWithCommunication);
    const QString before = all();
    ASSERT_TRUE(before.contains(QString("\u2265"))) << before.toStdString();

    // The database answers late; what the tracks say is counted meanwhile.
    std::promise<void> opened;
    m_session.queries().ask(
        &m_panel, [isOpen = opened.get_future().share()](store::TraceReader&) { return isOpen.wait(), 0; }, [](int) {});
    QTimer::singleShot(600, &m_panel, [&] { opened.set_value(); });
    m_model.selectTime(kWithout);
    const QString titleBefore = title();
    processUntil([&] {
        EXPECT_TRUE(title() == titleBefore ? all() == before : !all().contains(QString("\u2265")))
            << title().toStdString() << ": " << all().toStdString();
        return m_panel.isSettled();
    });
    EXPECT_NE(title(), titleBefore);
}

TEST_F(RangePanelTest, TablesThatCannotBeReadAreToldAndTheTracksAreShown) {
    const SmallRun file;
    open(file);
    select(kWithout);  // the file is open by then, and is not looked through again
    store::Database(file.folder.file().string(), store::OpenMode::readWrite).execute("DROP TABLE collective_member");
    select(kWithCommunication);
    EXPECT_TRUE(all().contains("20.0 %")) << all().toStdString();
    bool isTold = false;
    for (const QLabel* label : m_panel.findChildren<QLabel*>())
        isTold = isTold || label->text().contains("cannot be read from the recording");
    EXPECT_TRUE(isTold);
}

}  // namespace
}  // namespace rankscope::gui
