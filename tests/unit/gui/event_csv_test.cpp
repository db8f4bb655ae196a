// SPDX-License-Identifier: Apache-2.0
#include "gui/session/event_csv.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

using test::SmallRun;
constexpr int64_t kUs = SmallRun::kUs;

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
    EXPECT_NE(csv.find("0,stream 7 compute,kernel,2,ampere_sgemm_128x64_tn,250000,100000\r\n"), std::string::npos) << csv;
    EXPECT_LT(csv.find(",memcpy,"), csv.find(",kernel,")) << "in order of time within a lane";
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
    const std::string csv = csvOf(SmallRun({}, "gemm<float, 128>\n\u202E\"evil\""), {{100 * kUs, 110 * kUs}, {0}, {}, {}});
    EXPECT_NE(csv.find("\"gemm<float, 128>\u00B7\"\"evil\"\"\""), std::string::npos) << csv;
}

}  // namespace
}  // namespace rankscope::gui
