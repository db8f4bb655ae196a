// SPDX-License-Identifier: Apache-2.0
#include "gui/table/latest_task.h"

#include <gtest/gtest.h>

#include <QCoreApplication>
#include <future>
#include <stdexcept>

namespace rankscope::gui {
namespace {

/// Lets a test say when work on another thread goes on.
struct Gate {
    std::promise<void> begun, opened;
    std::shared_future<void> hasBegun = begun.get_future().share(), isOpen = opened.get_future().share();
};

/// Waits until the queued answer of a task was given.
template <typename Condition>
void giveAnswersUntil(Condition&& condition) {
    while (!condition()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
}

TEST(LatestTask, WorkThatRunsIsNotWaitedForAndNobodyIsAnswered) {
    const auto gate = std::make_shared<Gate>();
    const auto isCancelled = std::make_shared<std::promise<bool>>();
    bool isAnswered = false;
    {
        LatestTask task;
        task.start(
            [gate, isCancelled](const std::atomic<bool>& cancelled) {
                gate->begun.set_value();
                gate->isOpen.wait();
                isCancelled->set_value(cancelled);
                return 1;
            },
            [&](int) { isAnswered = true; });
        gate->hasBegun.wait();
    }  // a destructor that waits never comes back
    gate->opened.set_value();
    EXPECT_TRUE(isCancelled->get_future().get());
    QCoreApplication::processEvents();
    EXPECT_FALSE(isAnswered);
}

TEST(LatestTask, OnlyTheNewestIsAnsweredOrFails) {
    LatestTask task;
    std::vector<QString> failures;
    int answer = 0;
    QObject::connect(&task, &LatestTask::failed, [&](const QString& message) { failures.push_back(message); });
    const auto gate = std::make_shared<Gate>();
    task.start(
        [gate](const std::atomic<bool>&) -> int {
            gate->begun.set_value();
            gate->isOpen.wait();
            throw std::runtime_error("the old one");
        },
        [&](int) { ADD_FAILURE(); });
    gate->hasBegun.wait();
    task.start([](const std::atomic<bool>&) { return 2; }, [&](int result) { answer = result; });
    gate->opened.set_value();
    giveAnswersUntil([&] { return answer != 0; });
    EXPECT_EQ(answer, 2);
    EXPECT_TRUE(failures.empty());
    task.start([](const std::atomic<bool>&) -> int { throw std::runtime_error("the new one"); },
               [&](int) { ADD_FAILURE(); });
    giveAnswersUntil([&] { return !failures.empty(); });
    EXPECT_EQ(failures, std::vector<QString>{"the new one"});
}

}  // namespace
}  // namespace rankscope::gui
