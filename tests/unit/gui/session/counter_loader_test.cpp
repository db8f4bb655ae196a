// SPDX-License-Identifier: Apache-2.0
#include "gui/session/counter_loader.h"

#include <gtest/gtest.h>

#include "gui/session/curve_text.h"
#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

using test::kUs;
using test::SmallRun;

std::vector<Lane> lanesOf(const SmallRun& file, int32_t rank) {
    auto reader = file.reader();
    return loadCounters(reader, *file.info(), rank);
}

// Strings 6 to 9: what SmallRun does not name.
constexpr const char* kNames =
    "INSERT INTO string (id, text) VALUES (6, 'cudaMalloc'), (7, 'cudaFree'), (8, 'cudaMallocHost'), (9, 'SMs Active "
    "[Throughput %]');";

TEST(CounterLoader, MemoryIsTheSumOfWhatIsHeldOnTheDevice) {
    const SmallRun file(
        std::string(kNames) +
        "INSERT INTO device (id, host_id, ordinal, memory_bytes) VALUES (0, 0, 0, 8000); UPDATE rank SET device_id = 0 "
        "WHERE rank = 0; INSERT INTO allocation (id, rank, start_ns, dur_ns, free, bytes, name_id) VALUES "
        "(1, 0, 100, 1, 0, 1000, 6), (2, 0, 200, 1, 0, 500000, 8), (3, 0, 300, 1, 0, 4000, 6), (4, 0, 400, 1, 1, 1000, "
        "7), (5, 0, 500, 1, 1, NULL, 7); INSERT INTO extent (table_name, rank, first_id, last_id, max_dur_ns) VALUES "
        "('allocation', 0, 1, 5, 1)");
    const std::vector<Lane> lanes = lanesOf(file, 0);
    ASSERT_EQ(lanes.size(), 1u);
    EXPECT_EQ(lanes[0].kind, LaneKind::counter);
    const Curve& curve = lanes[0].curve;
    EXPECT_EQ(curve.unit(), CurveUnit::bytes);
    EXPECT_EQ(curve.at(150), 1000);
    EXPECT_EQ(curve.at(300), 5000) << "memory of the host is not the device's";
    EXPECT_EQ(curve.at(450), 4000);
    EXPECT_EQ(curve.at(600), 4000) << "what was held before the recording is not known";
    EXPECT_EQ(curve.limit(), 8000);
    EXPECT_TRUE(lanesOf(file, 1).empty());
}

TEST(CounterLoader, ReadingsOfTheDeviceAreLanesWithTheirLimits) {
    const SmallRun file(
        "INSERT INTO device_health (id, rank, time_ns, readings, sm_mhz, sm_max_mhz, power_mw) VALUES (1, 1, 1000, 1, "
        "1980, 1980, NULL), (2, 1, 2000, 1, 1320, 1980, 700000), (3, 1, NULL, 1, 5, 5, 5); INSERT INTO extent "
        "(table_name, rank, first_id, last_id, max_dur_ns) VALUES ('device_health', 1, 1, 3, 0)");
    const std::vector<Lane> lanes = lanesOf(file, 1);
    ASSERT_EQ(lanes.size(), 2u);
    EXPECT_EQ(lanes[0].label, "SM clock, by NVML");
    EXPECT_EQ(lanes[0].curve.at(2500), 1320);
    EXPECT_EQ(lanes[0].curve.limit(), 1980);
    EXPECT_EQ(lanes[1].curve.at(2500), 700) << "in watts";
    EXPECT_FALSE(lanes[1].curve.at(1500));
}

TEST(CounterLoader, WhatATraceSamplesIsALaneForEachName) {
    const SmallRun file(
        std::string(kNames) +
        "INSERT INTO counter (id, rank, time_ns, name_id, value) VALUES (1, 0, 10, 9, 40), (2, 0, 20, "
        "9, 90); INSERT INTO extent (table_name, rank, first_id, last_id, max_dur_ns) VALUES ('counter', 0, 1, 2, 0)");
    const std::vector<Lane> lanes = lanesOf(file, 0);
    ASSERT_EQ(lanes.size(), 1u);
    EXPECT_EQ(lanes[0].label, "SMs Active [Throughput %]");
    EXPECT_EQ(lanes[0].curve.unit(), CurveUnit::percent);
    EXPECT_EQ(lanes[0].curve.peak(), 90);
}

TEST(CurveText, ValuesAreToldWithTheirUnit) {
    EXPECT_EQ(curveText(CurveUnit::bytes, 3.0 * (1 << 30)), "3 GiB");
    EXPECT_EQ(curveText(CurveUnit::megahertz, 1980), "1980 MHz");
    EXPECT_EQ(curveText(CurveUnit::number, 0.25), "0.25");
}

TEST(CounterLoader, ARunWithoutAnyHasNoLanes) {
    EXPECT_TRUE(lanesOf(SmallRun(), 0).empty());
}

}  // namespace
}  // namespace rankscope::gui
