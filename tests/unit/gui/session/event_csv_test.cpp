// SPDX-License-Identifier: Apache-2.0
#include "gui/session/event_csv.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

using test::kUs;
using test::SmallRun;
std::string csvOf(const SmallRun& file, const CsvScope& scope, size_t* written = nullptr) {
    const auto run = file.info();
    std::ostringstream out;
    const size_t lines = writeEventsCsv(out, *run, file.tracks(*run), scope);
    if (written) *written = lines;
    return out.str();
}

TEST(EventCsv, HoldsWhatOverlapsTheRangeWithTimesUncut) {
    size_t written = 0;
    const std::string csv = csvOf(SmallRun(), {{220 * kUs, 260 * kUs}, {0}, {}, {}}, &written);
    // The step, the NVTX range, the copy and the second GEMM.
    EXPECT_EQ(written, 4u);
    EXPECT_NE(csv.find("0,stream 7 compute,memcpy,1,copy host to device,210000,30000\r\n"), std::string::npos) << csv;
    EXPECT_NE(csv.find("0,stream 7 compute,kernel,2,ampere_sgemm_128x64_tn,250000,100000\r\n"), std::string::npos)
        << csv;
    EXPECT_LT(csv.find(",memcpy,"), csv.find(",kernel,")) << "in order of time within a lane";
}

TEST(EventCsv, MarksAtTheEndsAreInIt) {
    const std::string csv = csvOf(SmallRun("UPDATE nvtx SET start_ns = 1000000, dur_ns = 0 WHERE rank = 0; UPDATE nvtx "
                                           "SET start_ns = 0, dur_ns = 0 WHERE rank = 1"),
                                  {{0, 1000 * kUs}, {0, 1}, {}, {}});
    EXPECT_NE(csv.find(",nvtx,1,forward,1000000,0\r\n"), std::string::npos) << csv;
    EXPECT_NE(csv.find(",nvtx,2,forward,0,0\r\n"), std::string::npos) << csv;
    // The first GEMM ends where the range begins, the second begins where it ends.
    EXPECT_EQ(csvOf(SmallRun(), {{200 * kUs, 250 * kUs}, {0}, {}, {}}).find(",kernel,"), std::string::npos);
}

// 400 ranges of rank 0 within each other, before the rank's own.
const std::string kDeepRanges =
    "UPDATE nvtx SET id = id + 1000; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) "
    "INSERT INTO nvtx (id, rank, thread_id, start_ns, dur_ns, kind, name_id, depth) SELECT 600 + i, 0, 0, i, 4000 - 2 "
    "* i, 1, 5, i FROM n; UPDATE extent SET first_id = 601, last_id = 1001 WHERE table_name = 'nvtx' AND rank = 0; "
    "UPDATE extent SET first_id = 1002, last_id = 1002 WHERE table_name = 'nvtx' AND rank = 1; ";

size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

TEST(EventCsv, EventsThatAreNestedTooDeeplyToBeDrawnAreInIt) {
    const std::string csv = csvOf(SmallRun(kDeepRanges), {{0, 1000 * kUs}, {0}, {}, {}});
    EXPECT_EQ(count(csv, ",nvtx,"), 401u);
    EXPECT_NE(csv.find("\n0,NVTX main (not drawn),nvtx,1000,forward,400,3200\r\n"), std::string::npos) << csv;
    EXPECT_EQ(count(csvOf(SmallRun(kDeepRanges), {{5 * kUs, 1000 * kUs}, {0}, {}, {}}), ",nvtx,"), 1u) << "out of view";
    EXPECT_EQ(count(csvOf(SmallRun(kDeepRanges), {{0, 1000 * kUs}, {0}, {"NVTX main"}, {}}), "(not drawn)"), 0u)
        << "hidden";
}

TEST(EventCsv, EventsOfStreamsBeyondThoseDrawnAreInIt) {
    const std::string csv =
        csvOf(SmallRun("UPDATE kernel SET id = id + 2000; UPDATE extent SET first_id = 2004, last_id = 2006 WHERE "
                       "table_name = 'kernel' AND rank = 1; UPDATE extent SET first_id = 501, last_id = 2003 WHERE "
                       "table_name = 'kernel' AND rank = 0; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
                       "FROM n WHERE i < 1500) INSERT INTO kernel (id, rank, stream_id, start_ns, dur_ns, name_id, "
                       "nccl) SELECT 500 + i, 0, 100 + i, i, 10, 1, 0 FROM n"),
              {{0, 1000 * kUs}, {0}, {}, {}});
    EXPECT_EQ(count(csv, ",kernel,"), 1503u);
    EXPECT_NE(csv.find("\n0,not drawn,kernel,2000,"), std::string::npos);
}

TEST(EventCsv, ANegativeDurationIsWrittenAsRecorded) {
    const std::string csv =
        csvOf(SmallRun("UPDATE kernel SET dur_ns = -5000 WHERE id = 2"), {{0, 1000 * kUs}, {0}, {}, {}});
    EXPECT_NE(csv.find(",kernel,2,ampere_sgemm_128x64_tn,250000,-5000\r\n"), std::string::npos) << csv;
}

TEST(EventCsv, OnlyRanksAndLanesInViewAreInIt) {
    const std::string csv = csvOf(SmallRun(), {{0, 1000 * kUs}, {1}, {"stream 7 compute"}, {}});
    EXPECT_EQ(csv.find("\n0,"), std::string::npos);
    EXPECT_EQ(csv.find("stream 7"), std::string::npos);
    EXPECT_NE(csv.find("1,stream 20 communication,kernel,6,"), std::string::npos) << csv;
}

TEST(EventCsv, TwoRunsAreToldApart) {
    EXPECT_EQ(csvHeader(false), "rank,lane,table,row,name,start_ns,duration_ns\r\n");
    EXPECT_TRUE(csvHeader(true).starts_with("run,rank,"));
    EXPECT_TRUE(csvOf(SmallRun(), {{0, 1000 * kUs}, {0}, {}, "B"}).starts_with("B,0,"));
}

TEST(EventCsv, NamesAreQuotedAndStayOnOneLine) {
    EXPECT_EQ(csvField("plain"), "plain");
    EXPECT_EQ(csvField("a,b"), "\"a,b\"");
    EXPECT_EQ(csvField("say \"x\""), "\"say \"\"x\"\"\"");
    const std::string csv =
        csvOf(SmallRun({}, "gemm<float, 128>\n\u202E\"evil\""), {{100 * kUs, 110 * kUs}, {0}, {}, {}});
    EXPECT_NE(csv.find("\"gemm<float, 128>\u00B7\"\"evil\"\"\""), std::string::npos) << csv;
}

}  // namespace
}  // namespace rankscope::gui
