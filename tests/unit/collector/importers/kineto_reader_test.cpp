// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/kineto_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collector/importers/import_error.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

using tests::kernelEvent;
using tests::TraceFolder;

/// What a read delivered, copied out of the parser's buffers.
struct Read {
    std::vector<std::string> names;
    std::vector<int64_t> starts;
    std::vector<int64_t> durations;
    KinetoHeader header;
    ImportLosses losses;
    uint64_t events = 0;

    const ImportLoss* loss(const std::string& kind) const {
        for (const ImportLoss& loss : losses.all()) {
            if (loss.kind == kind) return &loss;
        }
        return nullptr;
    }
};

Read readFile(const std::filesystem::path& path) {
    Read read;
    InputFile file(path);
    KinetoReader reader(file, read.losses);
    reader.read([&read](const KinetoEvent& event) {
        read.names.emplace_back(event.name);
        read.starts.push_back(event.startNs);
        read.durations.push_back(event.durNs);
    });
    read.header = reader.header();
    read.events = reader.eventCount();
    return read;
}

Read readText(const std::string& text) {
    const TraceFolder folder;
    return readFile(folder.write("trace.json", text));
}

std::string document(const std::string& events) {
    return R"({"schemaVersion": 1, "traceEvents": [)" + events + "]}";
}

using Names = std::vector<std::string>;

TEST(KinetoReader, ReadsADocumentWithItsHeaderInFrontAndBehind) {
    const Read read = readText(R"({
      "schemaVersion": 1,
      "deviceProperties": [{"id": 0, "name": "GPU X", "totalGlobalMem": 1000, "computeMajor": 9, "computeMinor": 4, "numSms": 304}],
      "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 2, "ranks": [0, 1]}]},
      "traceEvents": [)" + kernelEvent("a", "10", "2.5", 1) +
                               R"(],
      "traceName": "x",
      "baseTimeNanoseconds": 1711964646000000000
    })");
    EXPECT_EQ(read.names, Names{"a"});
    EXPECT_EQ(read.starts, std::vector<int64_t>{10000});
    EXPECT_EQ(read.durations, std::vector<int64_t>{2500});
    EXPECT_EQ(read.header.rank, 3);
    EXPECT_EQ(read.header.worldSize, 8);
    EXPECT_EQ(read.header.baseTimeNs, 1711964646000000000);
    ASSERT_EQ(read.header.devices.size(), 1u);
    EXPECT_EQ(read.header.devices[0].name, "GPU X");
    EXPECT_EQ(read.header.devices[0].computeCapability, 94);
    ASSERT_EQ(read.header.groups.size(), 1u);
    EXPECT_EQ(read.header.groups[0].ranks, (std::vector<int64_t>{0, 1}));
    EXPECT_TRUE(read.losses.all().empty());
}

TEST(KinetoReader, ReadsABareArrayOfEvents) {
    const Read read = readText("[" + kernelEvent("a", "1", "1", 1) + ",\n" + kernelEvent("b", "2", "1", 2) + "]");
    EXPECT_EQ(read.names, (Names{"a", "b"}));
    EXPECT_TRUE(read.losses.all().empty());
}

TEST(KinetoReader, SkipsFlowsAndHandsOnOperatorsAndPythonFunctions) {
    const Read read = readText(document(
        R"({"ph": "s", "id": 1, "pid": 1, "tid": 1, "ts": 1, "cat": "ac2g", "name": "ac2g"},)"
        R"({"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"x": [[{"deep": [1]}]]}},)"
        R"({"ph": "X", "cat": "python_function", "name": "f", "pid": 1, "tid": 1, "ts": 1, "dur": 1},)" +
        kernelEvent("k", "1", "1", 1)));
    EXPECT_EQ(read.names, (Names{"aten::add", "f", "k"}));
    EXPECT_EQ(read.events, 4u);
}

TEST(KinetoReader, FieldsMayComeInAnyOrder) {
    const Read read = readText(document(
        R"({"args": {"stream": 7, "device": 0}, "cat": "kernel", "dur": 1, "name": "k", "ph": "X", "pid": 0, "tid": 7, "ts": 5})"));
    EXPECT_EQ(read.names, Names{"k"});
    EXPECT_EQ(read.starts, std::vector<int64_t>{5000});
}

TEST(KinetoReader, InflatesGzipAndSeveralMembersBehindEachOther) {
    const TraceFolder folder;
    const std::string text = document(kernelEvent("a", "1", "1", 1) + "," + kernelEvent("b", "2", "1", 2));
    EXPECT_EQ(readFile(folder.writeGzip("one.gz", text)).names, (Names{"a", "b"}));

    const auto halfA = folder.writeGzip("a.gz", text.substr(0, 100));
    const auto halfB = folder.writeGzip("b.gz", text.substr(100));
    std::string both;
    for (const auto& half : {halfA, halfB}) {
        std::ifstream in(half, std::ios::binary);
        both.append(std::istreambuf_iterator<char>(in), {});
    }
    EXPECT_EQ(readFile(folder.write("both.gz", both)).names, (Names{"a", "b"}));
}

TEST(KinetoReader, ACutGzipStreamGivesItsReadablePart) {
    const TraceFolder folder;
    std::string events;
    for (int i = 0; i < 2000; ++i)
        events += (i ? "," : "") + kernelEvent("k" + std::to_string(i * 7919 % 2000), std::to_string(i), "1", i);
    std::ifstream in(folder.writeGzip("whole.gz", document(events)), std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(in)), {});
    const Read read = readFile(folder.write("cut.gz", std::string_view(whole).substr(0, whole.size() / 2)));
    EXPECT_GT(read.names.size(), 100u);
    EXPECT_LT(read.names.size(), 2000u);
    ASSERT_NE(read.loss("torn_tail"), nullptr);
    EXPECT_NE(read.loss("torn_tail")->message.find("cut off"), std::string::npos);
    EXPECT_EQ(read.loss("torn_tail")->severity, "error");
}

TEST(KinetoReader, ManySlicesGiveEveryEventOnceAndInOrder) {
    // Well beyond one slice, with objects inside events that look like the start of an event.
    std::string events;
    const int count = 20000;
    for (int i = 0; i < count; ++i) {
        events += (i ? ",\n  " : "") + kernelEvent("k" + std::to_string(i), std::to_string(i), "1", i,
                                                   R"(, "list": [{"name": 1}, {"name": 2}, {"ph": "X"}])");
    }
    ASSERT_GT(events.size(), 2 * KinetoReader::kSliceBytes);
    const Read read = readText(document(events));
    ASSERT_EQ(read.names.size(), static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) ASSERT_EQ(read.names[static_cast<size_t>(i)], "k" + std::to_string(i));
    EXPECT_TRUE(read.losses.all().empty());
}

TEST(KinetoReader, AnEventLargerThanASliceIsRead) {
    const std::string big(3 * KinetoReader::kSliceBytes, 'x');
    const Read read = readText(document(kernelEvent("a", "1", "1", 1) + "," +
                                        kernelEvent("b", "2", "1", 2, R"(, "stack": ")" + big + "\"") + "," +
                                        kernelEvent("c", "3", "1", 3)));
    EXPECT_EQ(read.names, (Names{"a", "b", "c"}));
    EXPECT_TRUE(read.losses.all().empty());
}

TEST(KinetoReader, IntegersAboveInt64DoNoHarm) {
    const Read read = readText(document(kernelEvent("k", "1", "1", 1, R"(, "Comms Id": 10159970886766084423)")));
    EXPECT_EQ(read.names, Names{"k"});
    EXPECT_TRUE(read.losses.all().empty());
}

TEST(KinetoReader, InvalidUtf8IsReplacedAndTold) {
    const std::string good = document(kernelEvent("a", "1", "1", 1) + "," + kernelEvent("b\xff\xfe", "2", "1", 2) +
                                      "," + kernelEvent("c", "3", "1", 3));
    const Read read = readText(good);
    EXPECT_EQ(read.names, (Names{"a", "b\xef\xbf\xbd\xef\xbf\xbd", "c"}));
    ASSERT_NE(read.loss("bad_text"), nullptr);
    EXPECT_EQ(read.loss("bad_text")->count, 2);
    EXPECT_EQ(read.loss("bad_text")->offset, good.find('\xff'));
}

TEST(KinetoReader, AnUnescapedQuoteCostsItsEventOnly) {
    for (const std::string name : {"say \"hi\" twice", "one \" alone"}) {
        const std::string text =
            document(kernelEvent("a", "1", "1", 1) + ",\n" + kernelEvent(name, "2", "1", 2) + ",\n" +
                     kernelEvent("c", "3", "1", 3) + ",\n" + kernelEvent("d", "4", "1", 4));
        const Read read = readText(text);
        EXPECT_EQ(read.names, (Names{"a", "c", "d"})) << name;
        ASSERT_NE(read.loss("bad_block"), nullptr) << name;
        EXPECT_EQ(read.loss("bad_block")->count, 1) << name;
        EXPECT_EQ(read.loss("bad_block")->offset, text.find(kernelEvent(name, "2", "1", 2))) << name;
    }
}

TEST(KinetoReader, AnEscapeThatJsonDoesNotKnowKeepsTheRawText) {
    const Read read = readText(document(kernelEvent(R"(C:\xyz)", "1", "1", 1) + "," + kernelEvent("b", "2", "1", 2)));
    EXPECT_EQ(read.names, (Names{R"(C:\xyz)", "b"}));
}

TEST(KinetoReader, ATrailingCommaLosesNothing) {
    const Read read = readText(document(kernelEvent("a", "1", "1", 1) + "," + kernelEvent("b", "2", "1", 2) + ",\n"));
    EXPECT_EQ(read.names, (Names{"a", "b"}));
    ASSERT_EQ(read.losses.all().size(), 1u);
    EXPECT_EQ(read.losses.all()[0].severity, "info");
}

TEST(KinetoReader, ACutOffFileGivesTheEventsInFrontOfTheCut) {
    const std::string text = document(kernelEvent("a", "1", "1", 1) + "," + kernelEvent("b", "2", "1", 2) + "," +
                                      kernelEvent("c", "3", "1", 3));
    const Read read = readText(text.substr(0, text.size() - 40));
    EXPECT_EQ(read.names, (Names{"a", "b"}));
    ASSERT_NE(read.loss("torn_tail"), nullptr);
    EXPECT_EQ(read.loss("torn_tail")->offset, text.size() - 40);
}

TEST(KinetoReader, ADamagedLastEventLeavesTheMembersBehindIt) {
    const Read read =
        readText(R"({"traceEvents": [)" + kernelEvent("a", "1", "1", 1) + "," + kernelEvent("b \" c", "2", "1", 2) +
                 R"(], "displayTimeUnit": "ms", "baseTimeNanoseconds": 77})");
    EXPECT_EQ(read.names, Names{"a"});
    EXPECT_EQ(read.header.baseTimeNs, 77);
    ASSERT_NE(read.loss("bad_block"), nullptr);
}

TEST(KinetoReader, DamageInTheHeaderDoesNotHideTheEvents) {
    const Read read = readText(R"({"distributedInfo": {"rank": 1, "note": "a"b"}, "traceEvents": [)" +
                               kernelEvent("a", "1", "1", 1) + "]}");
    EXPECT_EQ(read.names, Names{"a"});
    EXPECT_NE(read.loss("bad_block"), nullptr);
}

TEST(KinetoReader, ATimeThatIsNoNumberLeavesTheEventOut) {
    const Read read = readText(document(kernelEvent("a", "\"soon\"", "1", 1) + "," + kernelEvent("b", "2", "1", 2)));
    EXPECT_EQ(read.names, Names{"b"});
    ASSERT_NE(read.loss("bad_block"), nullptr);
}

TEST(KinetoReader, DamageEverywhereStaysLinear) {
    std::string events;
    const int count = 20000;
    for (int i = 0; i < count; ++i)
        events += (i ? "," : "") + kernelEvent(i % 2 ? "odd \" quote" : "even", std::to_string(i), "1", i);
    const Read read = readText(document(events));
    EXPECT_EQ(read.names.size(), static_cast<size_t>(count / 2));
    int64_t lost = 0;
    for (const ImportLoss& loss : read.losses.all()) lost += loss.count;
    EXPECT_EQ(lost, count / 2);
}

TEST(KinetoReader, WhatIsNoTraceIsRefusedWithFileAndCause) {
    const TraceFolder folder;
    for (const std::string text : {"", "   ", "hello", "\"text\"", "12"}) {
        try {
            readFile(folder.write("bad.json", text));
            FAIL() << text;
        } catch (const ImportError& error) {
            EXPECT_NE(std::string(error.what()).find("bad.json"), std::string::npos) << text;
        }
    }
}

}  // namespace
}  // namespace rankscope::collector
