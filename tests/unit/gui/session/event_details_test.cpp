// SPDX-License-Identifier: Apache-2.0
#include "gui/session/event_details.h"

#include <gtest/gtest.h>

#include "collector/store/error.h"
#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

using test::SmallRun;

EventDetails detailsOf(const SmallRun& file, const EventLink& event) {
    auto reader = file.reader();
    return readEventDetails(reader, *file.info(), event);
}

const DetailRow* find(const EventDetails& details, std::string_view section, std::string_view label) {
    for (const DetailSection& part : details.sections)
        for (const DetailRow& row : part.rows)
            if (part.title.starts_with(section) && row.label == label) return &row;
    return nullptr;
}

std::string value(const EventDetails& details, std::string_view section, std::string_view label) {
    const DetailRow* row = find(details, section, label);
    return row ? row->value : "(no such line)";
}

constexpr EventLink kLateReduce{EventTable::kernel, 6, 1};  // the all-reduce of rank 1, which arrives last

TEST(EventDetails, ShowsTheRowByColumnsWithUnitsAndNames) {
    const EventDetails details = detailsOf(SmallRun(), {EventTable::kernel, 1, 0});
    EXPECT_EQ(details.title, "ampere_sgemm_128x64_tn");
    EXPECT_EQ(value(details, "Row of", "name_id"), "ampere_sgemm_128x64_tn");
    EXPECT_EQ(value(details, "Row of", "dur_ns"), "100 us (100 000 ns)");
    EXPECT_EQ(value(details, "Row of", "stream_id"), "stream 7 (#1)");
    EXPECT_EQ(value(details, "Row of", "graph_node"), "none: launched directly");
    EXPECT_EQ(value(details, "Event", "in step"), "0, 100 us after its start");
}

TEST(EventDetails, MangledNamesAreReadableAndStillThere) {
    const EventDetails details = detailsOf(SmallRun({}, "_ZN3job4gemmIfEEvPT_i"), {EventTable::kernel, 1, 0});
    EXPECT_EQ(details.title, "job::gemm<float>");
    EXPECT_EQ(value(details, "Row of", "mangled name"), "_ZN3job4gemmIfEEvPT_i");
}

TEST(EventDetails, FindsTheLaunchAndTheRangesAroundIt) {
    const EventDetails details = detailsOf(SmallRun(), {EventTable::kernel, 5, 1});
    EXPECT_EQ(value(details, "Launched by", "call"), "cudaLaunchKernel");
    EXPECT_EQ(value(details, "Launched by", "launch to start"), "230 us (230 000 ns)");
    const DetailRow* call = find(details, "Launched by", "call");
    ASSERT_TRUE(call && call->link);
    EXPECT_EQ(*call->link, (EventLink{EventTable::apiCall, 6, 1}));
    EXPECT_EQ(value(details, "In NVTX", "depth 0"), "forward, 500 us");
}

TEST(EventDetails, FindsWhatACallLaunched) {
    const EventDetails details = detailsOf(SmallRun(), {EventTable::apiCall, 4, 0});
    const DetailRow* copy = find(details, "Launches", "170 us later");
    ASSERT_TRUE(copy && copy->link);
    EXPECT_EQ(*copy->link, (EventLink{EventTable::memcpy, 1, 0}));
}

TEST(EventDetails, SaysWhoACollectiveWaitedFor) {
    for (const EventLink& event : {kLateReduce, EventLink{EventTable::ncclCall, 2, 1}}) {
        const EventDetails details = detailsOf(SmallRun(), event);
        EXPECT_EQ(value(details, "NCCL call", "operation"), "all_reduce");
        EXPECT_EQ(value(details, "NCCL call", "algorithm"), "ring");
        EXPECT_EQ(value(details, "NCCL call", "protocol"), "ll");
        EXPECT_EQ(value(details, "NCCL call", "size"), "1 MiB (1 048 576 bytes)");
        EXPECT_EQ(value(details, "NCCL call", "communicator"), "data parallel (#1), 2 ranks on 1 host");
        EXPECT_EQ(value(details, "NCCL call", "its members"), "0-1");
        EXPECT_EQ(value(details, "Collective", "arrival skew"), "50.0 us (50 000 ns)");
        EXPECT_EQ(value(details, "Collective", "last to arrive"), "rank 1");
        EXPECT_EQ(value(details, "Collective", "transfer"), "150 us (150 000 ns)");
        EXPECT_EQ(value(details, "Collective", "this rank waited"), "0 ns");
        EXPECT_EQ(value(details, "Members", "rank 0"), "arrived 0 ns after the first, waited 50.0 us");
        EXPECT_EQ(*find(details, "Members", "rank 1")->link, kLateReduce);
    }
}

TEST(EventDetails, SaysWhatAMessageWaitedFor) {
    const SmallRun file(
        "UPDATE nccl_call SET op = CASE rank WHEN 0 THEN 'send' ELSE 'recv' END;INSERT INTO p2p VALUES (1, 1, 0, 1, 0, "
        "1048576, 1, 2, 400000, 450000, 600000, 600000, 50000, 0, 150000, 1);");
    const EventDetails details = detailsOf(file, kLateReduce);
    EXPECT_EQ(value(details, "Message", "sender"), "rank 0, waited 50.0 us");
    EXPECT_EQ(value(details, "Message", "arrival skew"), "50.0 us (50 000 ns), the receiver came last");
    EXPECT_EQ(*find(details, "Message", "sender")->link, (EventLink{EventTable::kernel, 3, 0}));
}

TEST(EventDetails, NamesTheFindingsItIsEvidenceOf) {
    const SmallRun file(
        "INSERT INTO finding VALUES (1, 'RS301', 'slow rank', 'found', 0.2, NULL, NULL, NULL, '{}'); INSERT INTO "
        "finding_evidence VALUES (1, 'kernel', 6, 1, 'arrives last');");
    EXPECT_EQ(value(detailsOf(file, kLateReduce), "Evidence of", "RS301"), "slow rank: arrives last");
    EXPECT_EQ(find(detailsOf(file, {EventTable::kernel, 5, 1}), "Evidence of", "RS301"), nullptr);
}

TEST(EventDetails, TheSqlReturnsTheRow) {
    const SmallRun file;
    auto reader = file.reader();
    for (const EventLink& event : {kLateReduce, EventLink{EventTable::memcpy, 2, 1}, EventLink{EventTable::nvtx, 1, 0},
                                   EventLink{EventTable::apiCall, 3, 0}, EventLink{EventTable::ncclCall, 1, 0},
                                   EventLink{EventTable::step, 0, 1}}) {
        store::Statement query(reader.database(), selectOf(event));
        ASSERT_TRUE(query.step()) << selectOf(event);
        EXPECT_EQ(std::string(query.text(0)), readRow(reader, event).front().text);
        EXPECT_FALSE(query.step());
    }
}

TEST(EventDetails, TextHoldsEveryLine) {
    const EventDetails details = detailsOf(SmallRun(), kLateReduce);
    const std::string text = detailsText(details);
    for (const DetailSection& section : details.sections)
        for (const DetailRow& row : section.rows) EXPECT_NE(text.find(row.value), std::string::npos) << row.label;
}

TEST(EventDetails, WhatDoesNotExistIsSaid) {
    EXPECT_EQ(detailsOf(SmallRun(), {EventTable::kernel, 999, 0}).title, "row 999 of table kernel does not exist");
    EXPECT_EQ(detailsOf(SmallRun(), {EventTable::step, 77, 5}).title, "row 77 of table step does not exist");
    EXPECT_NE(detailsOf(SmallRun(), {EventTable::none, 1, 0}).title, "");
}

TEST(EventDetails, HostileRowsAreShownAsTheyAre) {
    const SmallRun file(
        "PRAGMA ignore_check_constraints = 1;UPDATE kernel SET name_id = 987654, stream_id = 55, start_ns = "
        "9223372036854775807, dur_ns = 9223372036854775807 WHERE id = 6;UPDATE nccl_call SET thread_id = NULL, "
        "communicator_id = 12, bytes = NULL, algorithm = 'magic', seq = -9223372036854775807, kernel_id = 6;UPDATE "
        "collective SET communicator_id = 12, seq = -9223372036854775807, first_arrival_ns = -9223372036854775807, "
        "last_arrival_ns = 9223372036854775807, last_rank = NULL;UPDATE collective_member SET arrival_ns = NULL, "
        "kernel_id = -1; UPDATE nvtx SET dur_ns = NULL, name_id = -1; UPDATE memcpy SET kind = NULL WHERE 0;",
        std::string("\x01\x02 name \xe2\x80\xae with marks"));
    const EventDetails details = detailsOf(file, kLateReduce);
    EXPECT_EQ(details.title, "string #987654, which does not exist");
    EXPECT_EQ(value(details, "Row of", "stream_id"), "#55, which does not exist");
    EXPECT_EQ(value(details, "NCCL call", "algorithm"), "unknown");
    EXPECT_EQ(value(details, "NCCL call", "communicator"), "#12, which does not exist");
    EXPECT_EQ(value(details, "Collective", "arrival skew"), "unknown");
    for (const EventTable table : {EventTable::kernel, EventTable::memcpy, EventTable::nvtx, EventTable::apiCall,
                                   EventTable::ncclCall, EventTable::step})
        for (int64_t row = 0; row < 9; ++row)
            EXPECT_NE(detailsOf(file, {table, row, static_cast<int32_t>(row % 3)}).title, "");
    const std::string title = detailsOf(file, {EventTable::kernel, 1, 0}).title;
    EXPECT_EQ(title.find('\x01'), std::string::npos);
    EXPECT_EQ(title.find("\xe2\x80\xae"), std::string::npos);
}

TEST(ColumnText, NumbersReadWell) {
    EXPECT_EQ(groupedNumber(0), "0");
    EXPECT_EQ(groupedNumber(1234567), "1 234 567");
    EXPECT_EQ(groupedNumber(-123456), "-123 456");
    EXPECT_EQ(groupedNumber(-1234), "-1 234");
    EXPECT_EQ(bytesText(512), "512 bytes");
    EXPECT_EQ(bytesText(16 << 20), "16 MiB (16 777 216 bytes)");
    EXPECT_EQ(exactDuration(999), "999 ns");
    EXPECT_EQ(timeText(1'500'000'000), "1.500000000 s");
    EXPECT_EQ(timeText(-5), "-0.000000005 s");
    EXPECT_EQ(ranksText({0, 1, 2, 5}), "0-2, 5");
}

}  // namespace
}  // namespace rankscope::gui
