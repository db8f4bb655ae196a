// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/health_file.h"

#include <gtest/gtest.h>

namespace rankscope::capture {
namespace {

DeviceReading reading(int64_t unixNs, int64_t smMhz, int64_t events) {
    DeviceReading result;
    result.busId = "0000:3b:00.0";
    result.unixNs = unixNs;
    result.smMhz = smMhz;
    result.clocksEvents = events;
    return result;
}

TEST(HealthFile, WhatIsWrittenIsRead) {
    DeviceReading device = reading(17, 1200, 4);
    device.xid = 79;
    PortReading port{"mlx5_0/1", 18, 100, std::nullopt, 3, std::nullopt, 1};
    const auto file = parseHealthFile(healthHead("a host") + healthLine(UsedDevice{"h.1.2.cap", 3, "0000:3b:00.0"}) +
                                      healthLine(device) + healthLine(port) + healthNote("no\nluck"));
    ASSERT_TRUE(file);
    EXPECT_EQ(file->host, "a?host");
    ASSERT_EQ(file->used.size(), 1u);
    EXPECT_EQ(file->used[0].capture, "h.1.2.cap");
    EXPECT_EQ(file->used[0].ordinal, 3);
    ASSERT_EQ(file->devices.size(), 1u);
    EXPECT_EQ(file->devices[0].busId, file->used[0].busId);
    EXPECT_EQ(file->devices[0].unixNs, 17);
    EXPECT_EQ(file->devices[0].smMhz, 1200);
    EXPECT_EQ(file->devices[0].xid, 79);
    EXPECT_FALSE(file->devices[0].powerMw);
    ASSERT_EQ(file->ports.size(), 1u);
    EXPECT_EQ(file->ports[0].errors, 3);
    EXPECT_FALSE(file->ports[0].receivedBytes);
    EXPECT_EQ(file->notes, std::vector<std::string>{"no?luck"});
    EXPECT_EQ(file->badLines, 0);
}

TEST(HealthFile, DamagedLinesAreCountedCutOnesDroppedUnknownOnesSkipped) {
    EXPECT_FALSE(parseHealthFile(""));
    EXPECT_FALSE(parseHealthFile("rankscope health 1"));  // not even a whole line
    EXPECT_FALSE(parseHealthFile("rankscope stacks 1\n"));
    const auto file = parseHealthFile(
        "rankscope health 1\nsomething new\ndevice\ndevice b x 1\ndevice b 5 0 sm_mhz=1\ndevice b 5 1 sm_mhz=-1\n"
        "device b 5 1 sm_mhz\nport p\nprocess c -1 b\nprocess c 99999999999 b\nprocess c 1\n"
        "device b 5 1 sm_mhz=99999999999999999999\ndevice b 5 1 unheard_of=3 sm_mhz=7\ndevice b 6 1 sm_m");
    ASSERT_TRUE(file);
    EXPECT_EQ(file->badLines, 10);
    ASSERT_EQ(file->devices.size(), 1u);
    EXPECT_EQ(file->devices[0].smMhz, 7);
}

TEST(HealthFile, NumbersThatNoJobHasAreDamage) {
    for (const char* line : {"device b 5 1 sm_mhz=9223372036854775807", "device b 5 9223372036854775807 sm_mhz=1",
                             "device b 5 1048577 sm_mhz=1", "device b -1 1 sm_mhz=1",
                             "port p 9223372036854775807 errors=1", "port p 5 errors=1e308"}) {
        const auto file = parseHealthFile(healthHead("h") + line + "\n");
        ASSERT_TRUE(file);
        EXPECT_EQ(file->badLines, 1) << line;
    }
    const int64_t most = int64_t{1} << 62;
    const auto file = parseHealthFile(healthHead("h") + "device b 5 2 power_mw=" + std::to_string(most) + "\n");
    ASSERT_EQ(file->devices.size(), 1u);
    EXPECT_EQ(summed({file->devices[0], file->devices[0]}).powerMw, most);
}

TEST(HealthFile, NotesAreFewAndShort) {
    std::string text = healthHead(std::string(10'000, 'h'));
    for (int i = 0; i < 1000; ++i) text += healthNote("no");
    const auto file = parseHealthFile(text + healthNote(std::string(1 << 20, 'n')));
    ASSERT_TRUE(file);
    EXPECT_EQ(file->host, "");
    EXPECT_EQ(file->notes.size(), 256u);
    EXPECT_EQ(file->badLines, 1000 - 256 + 2);
}

TEST(HealthFile, RowsOfLongJobsSumUpMoreReadings) {
    EXPECT_EQ(healthRowReadings(0), 1);
    EXPECT_EQ(healthRowReadings(3599), 1);
    EXPECT_EQ(healthRowReadings(3600), 2);
    EXPECT_EQ(healthRowReadings(7200), 4);
    EXPECT_GT(healthRowReadings(INT64_MAX), 0);
    int64_t rows = 0;
    for (int64_t seconds = 0; seconds < 30 * 86400; seconds += healthRowReadings(rows++)) {
    }
    EXPECT_LT(rows, 40'000);
}

TEST(HealthFile, ASumHoldsMeansHighestAndAllReasons) {
    std::vector<DeviceReading> readings = {reading(5, 1000, 4), reading(6, 2000, 0x40)};
    readings[0].temperatureC = 80;
    readings[1].temperatureC = 60;
    readings[0].eccCorrected = 3;
    readings[1].readings = 3;
    const DeviceReading sum = summed(readings);
    EXPECT_EQ(sum.unixNs, 5);
    EXPECT_EQ(sum.readings, 4);
    EXPECT_EQ(sum.smMhz, 1750);
    EXPECT_EQ(sum.clocksEvents, 0x44);
    EXPECT_EQ(sum.temperatureC, 80);
    EXPECT_EQ(sum.eccCorrected, 3);
    EXPECT_FALSE(sum.powerMw);
}

}  // namespace
}  // namespace rankscope::capture
