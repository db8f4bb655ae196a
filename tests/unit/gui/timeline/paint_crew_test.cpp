// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/paint_crew.h"

#include <gtest/gtest.h>

namespace rankscope::gui {
namespace {

TEST(PaintCrew, PaintsEachItemOnceWhateverTheNumberOfWorkers) {
    for (const size_t workers : {1, 2, 5}) {
        PaintCrew crew(workers);
        for (size_t picture = 0; picture < 500; ++picture) {
            const size_t items = picture % 40;
            std::vector<int> painted(items, 0);  // no atomics: an item is one worker's alone
            crew.paint(items, [&](size_t worker, size_t item) {
                ASSERT_LT(worker, workers);
                ++painted[item];
            });
            EXPECT_EQ(painted, std::vector<int>(items, 1)) << workers << " " << picture;
        }
    }
}

TEST(PaintCrew, AWorkerPaintsOneItemAtATime) {
    PaintCrew crew(4);
    std::vector<std::atomic<int>> inside(4);
    std::atomic<bool> together{false};
    crew.paint(2'000, [&](size_t worker, size_t) {
        if (inside[worker]++ != 0) together = true;
        --inside[worker];
    });
    EXPECT_FALSE(together);
}

}  // namespace
}  // namespace rankscope::gui
