// SPDX-License-Identifier: Apache-2.0
// What NCCL tells through NVTX, from the schema to the record.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "injector/nvtx/payload_schemas.h"
#include "injector/nvtx/ranges.h"
#include "tests/unit/injector/recorded_session.h"

using namespace rankscope;
using namespace rankscope::injector;
using test::RecordedSession;

namespace {

constexpr uint64_t kFirstId = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START;

nvtxPayloadSchemaEntry_t entry(const char* name, uint64_t type, uint64_t offset = 0) {
    nvtxPayloadSchemaEntry_t entry{};
    entry.name = name;
    entry.type = type;
    entry.offset = offset;
    return entry;
}

template <size_t N>
uint64_t registerStatic(uint64_t id, const nvtxPayloadSchemaEntry_t (&entries)[N],
                        uint64_t type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC) {
    nvtxPayloadSchemaAttr_t attributes{};
    attributes.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                           NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
    if (id != 0) attributes.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
    attributes.type = type;
    attributes.entries = entries;
    attributes.numEntries = N;
    attributes.schemaId = id;
    return nvtx::registerSchema(attributes);
}

// Payloads as NCCL 2.28 lays them out: field order and names of its schemas.
struct AllReducePayload {
    uint64_t comm;
    size_t bytes;
    uint32_t redop;
};
uint64_t registerAllReduce(uint64_t id) {
    const nvtxPayloadSchemaEntry_t entries[] = {
        entry("NCCL communicator ID", NVTX_PAYLOAD_ENTRY_TYPE_UINT64),
        entry("Message size [bytes]", NVTX_PAYLOAD_ENTRY_TYPE_SIZE, offsetof(AllReducePayload, bytes)),
        entry("Reduction operation", kFirstId + 500, offsetof(AllReducePayload, redop))};
    return registerStatic(id, entries);
}

struct InitPayload {
    uint64_t comm;
    int nRanks;
    int rank;
    int device;
};
uint64_t registerInit(uint64_t id) {
    const nvtxPayloadSchemaEntry_t entries[] = {entry("NCCL communicator ID", NVTX_PAYLOAD_ENTRY_TYPE_UINT64),
                                                entry("No. of ranks", NVTX_PAYLOAD_ENTRY_TYPE_INT, 8),
                                                entry("Rank", NVTX_PAYLOAD_ENTRY_TYPE_INT, 12),
                                                entry("CUDA device", NVTX_PAYLOAD_ENTRY_TYPE_INT, 16)};
    return registerStatic(id, entries);
}

nvtxPayloadData_t payloadOf(uint64_t schema, const void* data, size_t size) {
    nvtxPayloadData_t payload{};
    payload.schemaId = schema;
    payload.size = size;
    payload.payload = data;
    return payload;
}

TEST(NvtxPayload, FieldsAreReadByTheirNamesWhereTheSchemaPutsThem) {
    const uint64_t schema = registerAllReduce(kFirstId + 1);
    EXPECT_EQ(schema, kFirstId + 1);
    const AllReducePayload data{0xfeedface12345678, 1u << 20, 3};
    const auto payload = payloadOf(schema, &data, sizeof data);
    nvtx::NcclPayload told;
    ASSERT_TRUE(nvtx::decode(&payload, 1, told));
    EXPECT_EQ(told.commHash, 0xfeedface12345678);
    EXPECT_EQ(told.bytes, 1u << 20);
    EXPECT_EQ(told.redop, 3u);
    EXPECT_EQ(told.peerOrRoot, -1);
    EXPECT_FALSE(told.isInit());
}

TEST(NvtxPayload, AnotherOrderAndWidthOfTheSameNamesReadsTheSame) {
    struct Shuffled {
        int32_t peer;
        int32_t unknown;
        uint32_t bytes;
        uint64_t comm;
    };
    const nvtxPayloadSchemaEntry_t entries[] = {entry("Peer rank", NVTX_PAYLOAD_ENTRY_TYPE_INT32),
                                                entry("Colour of the bikeshed", NVTX_PAYLOAD_ENTRY_TYPE_INT32),
                                                entry("Message size [bytes]", NVTX_PAYLOAD_ENTRY_TYPE_UINT32),
                                                entry("NCCL communicator ID", NVTX_PAYLOAD_ENTRY_TYPE_UINT64)};
    const uint64_t schema = registerStatic(kFirstId + 2, entries);  // no offsets: natural alignment
    const Shuffled data{7, 99, 4096, 0xabc};
    const auto payload = payloadOf(schema, &data, sizeof data);
    nvtx::NcclPayload told;
    ASSERT_TRUE(nvtx::decode(&payload, 1, told));
    EXPECT_EQ(told.peerOrRoot, 7);
    EXPECT_EQ(told.bytes, 4096u);
    EXPECT_EQ(told.commHash, 0xabcu);
}

TEST(NvtxPayload, AFieldBeyondThePayloadsEndIsNotRead) {
    const uint64_t schema = registerAllReduce(kFirstId + 3);
    const uint64_t onlyComm = 0x42;
    const auto payload = payloadOf(schema, &onlyComm, sizeof onlyComm);
    nvtx::NcclPayload told;
    ASSERT_TRUE(nvtx::decode(&payload, 1, told));
    EXPECT_EQ(told.commHash, 0x42u);
    EXPECT_EQ(told.bytes, 0u);
}

TEST(NvtxPayload, ALibraryWithoutAnIdGetsANewOneEachTime) {
    const uint64_t first = registerAllReduce(0);
    const uint64_t second = registerAllReduce(0);
    EXPECT_NE(first, 0u);
    EXPECT_NE(first, second);
    EXPECT_NE(nvtx::registerEnum(0), second);
    EXPECT_EQ(nvtx::registerEnum(77), 77u);
}

TEST(NvtxPayload, OtherSchemasAndMissingDataAreNoPayload) {
    const nvtxPayloadSchemaEntry_t foreign[] = {entry("Colour", NVTX_PAYLOAD_ENTRY_TYPE_UINT64)};
    const uint64_t foreignId = registerStatic(kFirstId + 4, foreign);
    const nvtxPayloadSchemaEntry_t dynamic[] = {entry("NCCL communicator ID", NVTX_PAYLOAD_ENTRY_TYPE_UINT64)};
    const uint64_t dynamicId = registerStatic(kFirstId + 5, dynamic, NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC);
    const uint64_t data = 1;
    nvtx::NcclPayload told;
    for (const uint64_t id : {foreignId, dynamicId, kFirstId + 6}) {
        const auto payload = payloadOf(id, &data, sizeof data);
        EXPECT_FALSE(nvtx::decode(&payload, 1, told)) << id;
    }
    EXPECT_FALSE(nvtx::decode(nullptr, 1, told));
    const auto empty = payloadOf(registerAllReduce(kFirstId + 7), nullptr, 24);
    EXPECT_FALSE(nvtx::decode(&empty, 1, told));
}

TEST(NvtxPayload, NothingBehindAFieldOfUnknownWidthIsTrusted) {
    const nvtxPayloadSchemaEntry_t entries[] = {entry("NCCL communicator ID", NVTX_PAYLOAD_ENTRY_TYPE_UINT64),
                                                entry("a text", NVTX_PAYLOAD_ENTRY_TYPE_CSTRING),
                                                entry("Rank", NVTX_PAYLOAD_ENTRY_TYPE_INT)};
    const uint64_t schema = registerStatic(kFirstId + 8, entries);
    const uint64_t data[4] = {5, 6, 7, 8};
    const auto payload = payloadOf(schema, data, sizeof data);
    nvtx::NcclPayload told;
    ASSERT_TRUE(nvtx::decode(&payload, 1, told));
    EXPECT_EQ(told.commHash, 5u);
    EXPECT_EQ(told.rank, -1);
}

struct NvtxRecording : RecordedSession {
    void setUp() { start(Cause::nvtx, {{"RANKSCOPE_TRACE", "nvtx"}}); }
    std::vector<capture::NcclPayloadRecord> payloads() const {
        return all<capture::NcclPayloadRecord>(capture::RecordType::ncclPayload);
    }
};

nvtx::Event eventWith(const char* text, const nvtxPayloadData_t* payload) {
    nvtx::Event event;
    event.text = text;
    event.bytes = std::strlen(text);
    event.payloads = payload;
    event.payloadCount = 1;
    return event;
}

OWN_PROCESS_TEST(NvtxRecording, ANcclRangeAndItsPayloadAreRecordedTogether) {
    const nvtx::Domain* nccl = nvtx::makeDomain("NCCL");
    const AllReducePayload data{0x99, 512, 0};
    const auto payload = payloadOf(registerAllReduce(kFirstId + 1), &data, sizeof data);
    nvtx::push(nccl, eventWith("ncclAllReduce", &payload));
    nvtx::pop(nccl, nullptr, 0);
    finish();
    const auto pushes = all<capture::NvtxRecord>(capture::RecordType::nvtxPush);
    ASSERT_EQ(pushes.size(), 1u);
    EXPECT_EQ(text(pushes[0].name), "ncclAllReduce");
    EXPECT_EQ(text(pushes[0].domain), "NCCL");
    ASSERT_EQ(payloads().size(), 1u);
    EXPECT_EQ(payloads()[0].seq, pushes[0].seq);
    EXPECT_EQ(payloads()[0].head.aux, 1);
    EXPECT_EQ(payloads()[0].commHash, 0x99u);
    EXPECT_EQ(payloads()[0].bytes, 512u);
    EXPECT_EQ(all<capture::NvtxRecord>(capture::RecordType::nvtxPop).size(), 1u);
}

OWN_PROCESS_TEST(NvtxRecording, AnotherLibrarysPayloadIsNotTakenForNccls) {
    const AllReducePayload data{0x99, 512, 0};
    const auto payload = payloadOf(registerAllReduce(kFirstId + 1), &data, sizeof data);
    nvtx::push(nvtx::makeDomain("NCCL of somebody else"), eventWith("ncclAllReduce", &payload));
    nvtx::mark(nullptr, eventWith("mark", &payload));
    finish();
    EXPECT_TRUE(payloads().empty());
    EXPECT_EQ(all<capture::NvtxRecord>(capture::RecordType::nvtxPush).size(), 1u);
    EXPECT_EQ(all<capture::NvtxRecord>(capture::RecordType::nvtxMark).size(), 1u);
}

OWN_PROCESS_TEST(NvtxRecording, AnInitsHashReachesTheHookInProgressOnTheSameThread) {
    const nvtx::Domain* nccl = nvtx::makeDomain("NCCL");
    const InitPayload data{0x1234, 8, 3, 1};
    const auto payload = payloadOf(registerInit(kFirstId + 20), &data, sizeof data);
    uint64_t toldElsewhere = 0;
    nvtx::push(nccl, eventWith("ncclCommInitRank", nullptr));
    EXPECT_EQ(t_thread.toldCommHash, 0u);
    nvtx::pop(nccl, &payload, 1);  // NCCL knows the hash only at the end
    EXPECT_EQ(t_thread.toldCommHash, 0x1234u);
    std::thread([&] { toldElsewhere = t_thread.toldCommHash; }).join();
    EXPECT_EQ(toldElsewhere, 0u);
    finish();
    ASSERT_EQ(payloads().size(), 1u);
    EXPECT_EQ(payloads()[0].head.aux, 2);
    EXPECT_EQ(payloads()[0].nRanks, 8);
    EXPECT_EQ(payloads()[0].rank, 3);
    EXPECT_EQ(payloads()[0].device, 1);
}

OWN_PROCESS_TEST(NvtxRecording, RegisteredAndWideTextsMarksAndStartEndRangesKeepTheirNames) {
    nvtxEventAttributes_t attributes{};
    attributes.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    attributes.message.unicode = L"d\u00e9j\u00e0";
    attributes.colorType = NVTX_COLOR_ARGB;
    attributes.color = 0xff00ff00;
    attributes.category = 4;
    attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    attributes.payload.llValue = -5;
    char room[64];
    const uint64_t id = nvtx::start(nullptr, nvtx::eventOf(&attributes, room, sizeof room));
    EXPECT_NE(id, 0u);
    nvtx::end(nullptr, id);
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered =
        reinterpret_cast<nvtxStringHandle_t>(const_cast<nvtx::RegisteredText*>(nvtx::registerText("epoch")));
    nvtx::mark(nullptr, nvtx::eventOf(&attributes, room, sizeof room));
    finish();
    const auto starts = all<capture::NvtxRecord>(capture::RecordType::nvtxStart);
    const auto ends = all<capture::NvtxRecord>(capture::RecordType::nvtxEnd);
    const auto marks = all<capture::NvtxRecord>(capture::RecordType::nvtxMark);
    ASSERT_EQ(starts.size(), 1u);
    ASSERT_EQ(ends.size(), 1u);
    ASSERT_EQ(marks.size(), 1u);
    EXPECT_EQ(text(starts[0].name), "d\u00e9j\u00e0");
    EXPECT_EQ(starts[0].color, 0xff00ff00);
    EXPECT_EQ(starts[0].category, 4u);
    EXPECT_EQ(static_cast<int64_t>(starts[0].payload), -5);
    EXPECT_EQ(ends[0].rangeId, starts[0].rangeId);
    EXPECT_EQ(text(marks[0].name), "epoch");
}

struct NvtxCaptureRange : RecordedSession {
    std::vector<std::string> pushed() const {
        std::vector<std::string> names;
        for (const auto& push : all<capture::NvtxRecord>(capture::RecordType::nvtxPush))
            names.push_back(text(push.name));
        return names;
    }
    void range(const char* name) {
        nvtx::push(nullptr, eventOf(name));
        nvtx::pop(nullptr, nullptr, 0);
    }
    static nvtx::Event eventOf(const char* name) {
        nvtx::Event event;
        event.text = name;
        event.bytes = std::strlen(name);
        return event;
    }
};

OWN_PROCESS_TEST(NvtxCaptureRange, OnlyWhatIsInsideTheNamedRangeIsRecorded) {
    start(Cause::nvtx, {{"RANKSCOPE_TRACE", "nvtx"}, {"RANKSCOPE_CAPTURE_RANGE", "nvtx:wanted"}});
    range("before");
    nvtx::push(nullptr, eventOf("wanted"));
    range("inside");
    nvtx::push(nullptr, eventOf("wanted"));  // nested: the outer one still holds it open
    nvtx::pop(nullptr, nullptr, 0);
    range("still inside");
    nvtx::pop(nullptr, nullptr, 0);
    range("after");
    finish();
    EXPECT_EQ(pushed(), (std::vector<std::string>{"wanted", "inside", "wanted", "still inside"}));
}

OWN_PROCESS_TEST(NvtxCaptureRange, StepsAreCountedFromTheFirstOne) {
    start(Cause::nvtx, {{"RANKSCOPE_TRACE", "nvtx"}, {"RANKSCOPE_CAPTURE_RANGE", "steps:1-2"}});
    for (const char* name : {"Step 0", "Step 1", "forward", "Step 2", "Step 3", "backward"}) range(name);
    finish();
    EXPECT_EQ(pushed(), (std::vector<std::string>{"Step 1", "forward", "Step 2"}));
}

}  // namespace
