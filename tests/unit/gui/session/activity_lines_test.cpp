// SPDX-License-Identifier: Apache-2.0
#include "gui/session/activity_lines.h"

#include <gtest/gtest.h>

#include "analyzer/job/analysis.h"
#include "analyzer/report/analyze.h"
#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

using test::SmallRun;

std::map<int32_t, ActivityBins> linesOf(const SmallRun& run) {
    store::TraceReader reader(run.folder.file().string());
    return readActivityLines(reader);
}

void analyse(const SmallRun& run) {
    const job::Analysis analysis = job::readAnalysis(run.folder.file());
    report::storeResults(run.folder.file(), analysis, report::Report());
}

TEST(ActivityLines, SayWhatTheEventsSay) {
    const SmallRun run;
    EXPECT_TRUE(linesOf(run).empty()) << "nobody has analysed it";
    analyse(run);
    const std::map<int32_t, ActivityBins> lines = linesOf(run);
    ASSERT_EQ(lines.size(), 2u);
    for (const RankTracksPtr& tracks : run.tracks(*run.info())) {
        const ActivityBins& line = lines.at(tracks->rank);
        const auto device = tracks->deviceTracks();
        TimeRange whole{INT64_MAX, INT64_MIN};
        for (const Track* track : device) {
            whole.beginNs = std::min(whole.beginNs, track->extent().beginNs);
            whole.endNs = std::max(whole.endNs, track->extent().endNs);
        }
        for (int64_t fromNs = whole.beginNs; fromNs < whole.endNs; fromNs += whole.span() / 20) {
            const TimeRange part{fromNs, std::min(whole.endNs, fromNs + whole.span() / 20)};
            const auto shares = line.shares(part);
            const ActivityTimes times = activityIn(device, part);
            for (size_t a = 0; a < kActivities; ++a)  // a part is of a hundred bins
                EXPECT_NEAR(shares[a], static_cast<double>(times[a]) / static_cast<double>(part.span()), 0.02)
                    << tracks->rank << " " << fromNs << " " << a;
        }
    }
}

TEST(ActivityLines, ADeviceThatDidNothingIsKnownToHave) {
    const SmallRun run("UPDATE kernel SET dur_ns = 0 WHERE rank = 1; UPDATE memcpy SET dur_ns = 0 WHERE rank = 1");
    analyse(run);
    const std::map<int32_t, ActivityBins> lines = linesOf(run);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_FALSE(lines.at(0).empty());
    EXPECT_TRUE(lines.at(1).empty());
}

TEST(ActivityLines, WaitsThatAreNotRecordedAreTransfer) {
    const SmallRun run("UPDATE collective_member SET wait_ns = NULL; UPDATE collective SET complete = 0");
    analyse(run);
    // Rank 0 comes first, at 400 us: it waits, but nobody has written down for how long.
    const auto shares = linesOf(run).at(0).shares({400 * test::kUs, 600 * test::kUs});
    EXPECT_NEAR(shares[static_cast<size_t>(Activity::transfer)], 1, 0.01);
}

TEST(ActivityLines, WhatMakesNoSenseIsLeftOut) {
    const SmallRun run;
    analyse(run);
    store::Database db(run.folder.file().string(), store::OpenMode::readWrite);
    for (const char* damage :
         {"shares = zeroblob(17)", "shares = 'text'", "rank = 4294967296", "rank = 77", "bin_ns = 0", "bin_ns = -5",
          "bin_ns = 9223372036854775807", "start_ns = -9223372036854775807", "start_ns = 9223372036854775807"}) {
        db.execute(std::string("UPDATE rank_activity SET ") + damage + " WHERE rank = 0");
        const auto lines = linesOf(run);
        EXPECT_FALSE(lines.contains(0)) << damage;
        EXPECT_TRUE(lines.contains(1)) << damage;
        analyse(run);
    }
    db.execute("DROP TABLE rank_activity");
    EXPECT_TRUE(linesOf(run).empty()) << "a trace older than the table";
    EXPECT_NO_THROW(analyse(run));
}

}  // namespace
}  // namespace rankscope::gui
