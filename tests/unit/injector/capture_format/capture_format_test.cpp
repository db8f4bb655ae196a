// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "injector/capture_format/block_writer.h"
#include "injector/capture_format/crc32c.h"
#include "injector/capture_format/reader.h"
#include "injector/capture_format/ring_layout.h"

using namespace rankscope::capture;

namespace {

class CaptureFormat : public testing::Test {
  protected:
    void SetUp() override {
        char pattern[] = "/tmp/rankscope-format-XXXXXX";
        ASSERT_NE(mkdtemp(pattern), nullptr);
        m_folder = pattern;
        m_path = m_folder + "/host.1.2.cap";
        m_ringPath = m_folder + "/host.1.2.ring";
    }
    void TearDown() override {
        unlink(m_path.c_str());
        unlink(m_ringPath.c_str());
        rmdir(m_folder.c_str());
    }

    void writeFile(const std::vector<char>& bytes, const std::string& path = {}) {
        std::ofstream(path.empty() ? m_path : path, std::ios::binary)
            .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    std::vector<char> fileBytes() {
        std::ifstream file(m_path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    std::string m_folder;
    std::string m_path;
    std::string m_ringPath;
};

ApiCallRecord apiCall(int64_t startNs) {
    return {{RecordType::apiCall, 1, static_cast<uint16_t>(CudaApi::launchKernel)}, 7, startNs, startNs + 10, 99};
}

FileHeader someHeader() {
    FileHeader header{};
    header.pid = 1;
    header.processStartNs = 1234;
    header.rank = 3;
    return header;
}

/// Three blocks of 1, 2 and 3 API calls, starting at 100, 200, 300.
void writeThreeBlocks(const std::string& path) {
    BlockWriter writer;
    FileHeader header = someHeader();
    ASSERT_TRUE(writer.open(path.c_str(), header, 0));
    for (int block = 1; block <= 3; ++block) {
        std::vector<ApiCallRecord> records(static_cast<size_t>(block), apiCall(block * 100));
        BlockInfo info;
        info.threadIndex = 5;
        info.source = Source::hooks;
        info.recordCount = static_cast<uint32_t>(block);
        info.highWaterNs = block * 100 + 10;
        ASSERT_EQ(writer.append(info, records.data(), records.size() * sizeof(ApiCallRecord)), AppendResult::ok);
    }
    writer.close();
}

std::vector<int64_t> startTimes(CaptureReader& reader) {
    std::vector<int64_t> times;
    while (const RecordView* record = reader.next())
        if (record->type() == RecordType::apiCall) times.push_back(record->as<ApiCallRecord>().startNs);
    return times;
}

uint64_t lossCount(const CaptureReader& reader, ReaderLossKind kind) {
    uint64_t count = 0;
    for (const auto& loss : reader.losses())
        if (loss.kind == kind) count += loss.count;
    return count;
}

bool lossSays(const CaptureReader& reader, const std::string& text) {
    for (const auto& loss : reader.losses())
        if (loss.message.find(text) != std::string::npos) return true;
    return false;
}

constexpr size_t kFirstBlock = kFileHeaderBytes;
constexpr size_t kSecondBlock = kFirstBlock + kBlockHeaderBytes + 32;
constexpr size_t kThirdBlock = kSecondBlock + kBlockHeaderBytes + 64;
constexpr size_t kFileEnd = kThirdBlock + kBlockHeaderBytes + 96;

}  // namespace

TEST(Crc32c, GivesThePublishedCheckValueAndCanGoOn) {
    EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
    EXPECT_EQ(crc32c("56789", 5, crc32c("1234", 4)), 0xe3069283u);
}

TEST_F(CaptureFormat, ReadsBackWhatWasWritten) {
    writeThreeBlocks(m_path);
    CaptureReader reader(m_path);
    EXPECT_EQ(reader.header().rank, 3);
    const RecordView* record = reader.next();
    ASSERT_NE(record, nullptr);
    EXPECT_EQ(record->threadIndex, 5u);
    EXPECT_EQ(record->source, Source::hooks);
    EXPECT_EQ(record->head().aux, static_cast<uint16_t>(CudaApi::launchKernel));
    EXPECT_EQ(record->as<ApiCallRecord>().argument, 99u);
    EXPECT_EQ(startTimes(reader), (std::vector<int64_t>{200, 200, 300, 300, 300}));
    EXPECT_TRUE(reader.losses().empty());
    EXPECT_EQ(reader.highWaterNs(Source::hooks), 310);
    EXPECT_EQ(fileBytes().size(), kFileEnd);
}

TEST_F(CaptureFormat, RefusesAForeignOrEmptyFileWithItsNameAndOffset) {
    for (const auto& bytes : {std::vector<char>{}, std::vector<char>(5000, 'x'),
                              std::vector<char>{'R', 'A', 'N', 'K', 'S', 'C', 'A', 'P'}}) {
        writeFile(bytes);
        try {
            CaptureReader reader(m_path);
            FAIL() << "read a file of " << bytes.size() << " foreign bytes";
        } catch (const CaptureError& error) {
            EXPECT_NE(std::string(error.what()).find(m_path + ": byte "), std::string::npos) << error.what();
        }
    }
}

TEST_F(CaptureFormat, AFlippedByteInAPayloadCostsThatBlockOnly) {
    writeThreeBlocks(m_path);
    auto bytes = fileBytes();
    bytes[kSecondBlock + kBlockHeaderBytes + 9] ^= 0x40;
    writeFile(bytes);
    CaptureReader reader(m_path);
    EXPECT_EQ(startTimes(reader), (std::vector<int64_t>{100, 300, 300, 300}));
    EXPECT_EQ(lossCount(reader, ReaderLossKind::corruptPayload), 1u);
    EXPECT_TRUE(lossSays(reader, "a block with 2 records"));
}

TEST_F(CaptureFormat, AFlippedByteInABlockHeaderIsSkippedToTheNextBlock) {
    writeThreeBlocks(m_path);
    auto bytes = fileBytes();
    bytes[kSecondBlock + 20] ^= 1;
    writeFile(bytes);
    CaptureReader reader(m_path);
    EXPECT_EQ(startTimes(reader), (std::vector<int64_t>{100, 300, 300, 300}));
    EXPECT_EQ(lossCount(reader, ReaderLossKind::corruptHeader), 1u);
    EXPECT_TRUE(lossSays(reader, std::to_string(kThirdBlock - kSecondBlock) + " bytes are no block"));
    EXPECT_EQ(lossCount(reader, ReaderLossKind::sequenceGap), 1u);
}

TEST_F(CaptureFormat, InsertedBytesDoNotHideTheBlocksBehindThem) {
    writeThreeBlocks(m_path);
    auto bytes = fileBytes();
    bytes.insert(bytes.begin() + kThirdBlock, {'R', 'S', 'B', 'K', 'R'});
    writeFile(bytes);
    CaptureReader reader(m_path);
    EXPECT_EQ(startTimes(reader), (std::vector<int64_t>{100, 200, 200, 300, 300, 300}));
    EXPECT_EQ(lossCount(reader, ReaderLossKind::corruptHeader), 1u);
    EXPECT_TRUE(lossSays(reader, " 5 bytes are no block"));
}

TEST_F(CaptureFormat, ARepeatedBlockIsReadOnce) {
    writeThreeBlocks(m_path);
    auto bytes = fileBytes();
    bytes.insert(bytes.end(), bytes.begin() + kFirstBlock, bytes.begin() + kSecondBlock);
    writeFile(bytes);
    CaptureReader reader(m_path);
    EXPECT_EQ(startTimes(reader).size(), 6u);
    EXPECT_EQ(lossCount(reader, ReaderLossKind::repeatedBlock), 1u);
}

TEST_F(CaptureFormat, EveryTruncationGivesTheWholeBlocksBeforeItAndALoss) {
    writeThreeBlocks(m_path);
    const auto bytes = fileBytes();
    for (size_t size = kFileHeaderBytes; size <= bytes.size(); ++size) {
        writeFile({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
        CaptureReader reader(m_path);
        const size_t whole = size >= kFileEnd ? 6 : size >= kThirdBlock ? 3 : size >= kSecondBlock ? 1 : 0;
        ASSERT_EQ(startTimes(reader).size(), whole) << size;
        const bool atBoundary =
            size == kFileHeaderBytes || size == kSecondBlock || size == kThirdBlock || size == kFileEnd;
        ASSERT_EQ(reader.losses().size(), atBoundary ? 0u : 1u) << size;
    }
}

TEST_F(CaptureFormat, TruncatedHeadersAreRefused) {
    writeThreeBlocks(m_path);
    const auto bytes = fileBytes();
    for (size_t size = 0; size < sizeof(FileHeader); size += 7) {
        writeFile({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
        ASSERT_THROW(CaptureReader reader(m_path), CaptureError) << size;
    }
}

TEST_F(CaptureFormat, EveryFlippedByteIsNoticedAndNothingFalseIsRead) {
    writeThreeBlocks(m_path);
    const auto bytes = fileBytes();
    for (size_t offset = kFirstBlock; offset < bytes.size(); ++offset) {
        auto damaged = bytes;
        damaged[offset] = static_cast<char>(damaged[offset] ^ (1 << (offset % 8)));
        writeFile(damaged);
        CaptureReader reader(m_path);
        for (const int64_t time : startTimes(reader)) ASSERT_TRUE(time == 100 || time == 200 || time == 300) << offset;
        ASSERT_FALSE(reader.losses().empty()) << offset;
    }
}

TEST_F(CaptureFormat, RandomRubbishBehindAHeaderEndsWithoutRecords) {
    writeThreeBlocks(m_path);
    auto bytes = fileBytes();
    bytes.resize(kFileHeaderBytes);
    uint64_t state = 88172645463325252ull;  // xorshift64, so that every run reads the same rubbish
    for (int i = 0; i < 300000; ++i) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        bytes.push_back(static_cast<char>(state));
    }
    writeFile(bytes);
    CaptureReader reader(m_path);
    EXPECT_TRUE(startTimes(reader).empty());
    EXPECT_EQ(lossCount(reader, ReaderLossKind::corruptHeader), 1u);
    EXPECT_TRUE(lossSays(reader, "the last 300000 bytes"));
}

TEST_F(CaptureFormat, HeadersThatAllClaimAMegabyteAreNotReadAMegabyteEach) {
    writeThreeBlocks(m_path);
    std::vector<char> bytes = fileBytes();
    bytes.resize(kFileHeaderBytes);
    constexpr size_t kHeaders = 200'000;  // a megabyte each would be 200 GB
    BlockHeader header{};
    header.magic = kBlockMagic;
    header.payloadBytes = kMaxBlockPayloadBytes / kCellBytes * kCellBytes;
    header.headerCrc = crc32c(&header, offsetof(BlockHeader, headerCrc));
    const char* from = reinterpret_cast<const char*>(&header);
    for (size_t i = 0; i < kHeaders; ++i) bytes.insert(bytes.end(), from, from + sizeof header);
    writeFile(bytes);
    CaptureReader reader(m_path);
    EXPECT_TRUE(startTimes(reader).empty());
    EXPECT_TRUE(lossSays(reader, "too many headers claim what is not there"));
}

TEST_F(CaptureFormat, RecordsThatLieAboutTheirLengthInsideAnIntactBlockAreCounted) {
    BlockWriter writer;
    FileHeader header = someHeader();
    ASSERT_TRUE(writer.open(m_path.c_str(), header, 0));
    ApiCallRecord good = apiCall(100);
    NcclCallRecord tooShort{};
    tooShort.head = {RecordType::ncclCall, 1, 0};  // needs two cells
    StringRecord longText{{RecordType::string, 1, 8000}, 8000, 1};
    std::vector<uint8_t> payload(4 * 32);
    std::memcpy(payload.data(), &tooShort, 32);
    std::memcpy(payload.data() + 32, &longText, sizeof longText);
    std::memcpy(payload.data() + 64, &good, 32);
    payload[96] = static_cast<uint8_t>(RecordType::kernel);  // and zero cells
    ASSERT_EQ(writer.append({}, payload.data(), payload.size()), AppendResult::ok);
    writer.close();
    CaptureReader reader(m_path);
    EXPECT_EQ(startTimes(reader), (std::vector<int64_t>{100}));
    EXPECT_EQ(lossCount(reader, ReaderLossKind::malformedRecord), 3u);
}

TEST_F(CaptureFormat, RecordsOfANewerVersionAreSteppedOverAndCounted) {
    BlockWriter writer;
    FileHeader header = someHeader();
    ASSERT_TRUE(writer.open(m_path.c_str(), header, 0));
    std::vector<uint8_t> payload(5 * 32);
    payload[0] = 200;
    payload[1] = 3;
    const ApiCallRecord good = apiCall(100);
    std::memcpy(payload.data() + 96, &good, 32);
    payload[128] = 201;
    payload[129] = 1;
    ASSERT_EQ(writer.append({}, payload.data(), payload.size()), AppendResult::ok);
    writer.close();
    CaptureReader reader(m_path);
    EXPECT_EQ(startTimes(reader), (std::vector<int64_t>{100}));
    EXPECT_EQ(reader.unknownRecords(), 2u);
    EXPECT_EQ(lossCount(reader, ReaderLossKind::unknownRecord), 2u);
}

TEST_F(CaptureFormat, TheSizeCapKeepsTheFirstPartAndStillTakesWordsAboutTheLoss) {
    BlockWriter writer;
    FileHeader header = someHeader();
    ASSERT_TRUE(writer.open(m_path.c_str(), header, kFileHeaderBytes + kBlockHeaderBytes + 32));
    const ApiCallRecord record = apiCall(100);
    LossRecord loss{};
    loss.head = {RecordType::loss, 1, static_cast<uint16_t>(LossKind::sizeCap)};
    loss.count = 1;
    EXPECT_EQ(writer.append({}, &record, sizeof record), AppendResult::ok);
    EXPECT_EQ(writer.append({}, &record, sizeof record), AppendResult::sizeCap);
    BlockInfo urgent;
    urgent.urgent = true;
    EXPECT_EQ(writer.append(urgent, &loss, sizeof loss), AppendResult::ok);
    writer.close();
    CaptureReader reader(m_path);
    int records = 0;
    bool sawLoss = false;
    while (const RecordView* view = reader.next()) ++records, sawLoss = sawLoss || view->type() == RecordType::loss;
    EXPECT_EQ(records, 2);
    EXPECT_TRUE(sawLoss);
    EXPECT_TRUE(reader.losses().empty());
}

TEST_F(CaptureFormat, RecordsLeftInTheRingOfADeadProcessAreReadAfterTheFile) {
    writeThreeBlocks(m_path);
    constexpr uint32_t kCells = kRingMinCells;
    std::vector<char> ring(kRingFileHeaderBytes + kRingHeaderBytes + kCells * kCellBytes);
    RingFileHeader file{};
    std::memcpy(file.magic, kRingMagic, sizeof file.magic);
    file.formatVersion = kFormatVersion;
    file.endianMark = 0x01020304;
    file.cellsPerRing = kCells;
    file.ringCount = 1;
    file.processStartNs = 1234;
    RingHeader header{};
    header.threadIndex = 9;
    header.tail = kCells - 1;  // so that the two records wrap around the end
    header.head = kCells + 1;
    header.lostRecords = 4;
    std::memcpy(ring.data(), &file, sizeof file);
    std::memcpy(ring.data() + kRingFileHeaderBytes, &header, sizeof header);
    char* cells = ring.data() + kRingFileHeaderBytes + kRingHeaderBytes;
    const ApiCallRecord first = apiCall(400);
    const ApiCallRecord second = apiCall(500);
    std::memcpy(cells + (kCells - 1) * kCellBytes, &first, 32);
    std::memcpy(cells, &second, 32);
    writeFile(ring, m_ringPath);
    {
        CaptureReader reader(m_path);
        EXPECT_EQ(startTimes(reader), (std::vector<int64_t>{100, 200, 200, 300, 300, 300, 400, 500}));
        EXPECT_EQ(lossCount(reader, ReaderLossKind::ringFull), 4u);
    }
    // The process died after block 2 was written and before the tail moved: the first record is in that block already.
    header.pendingTail = kCells;
    header.pendingSequence = 2;
    std::memcpy(ring.data() + kRingFileHeaderBytes, &header, sizeof header);
    writeFile(ring, m_ringPath);
    {
        CaptureReader reader(m_path);
        EXPECT_EQ(startTimes(reader).back(), 500);
        EXPECT_EQ(reader.recordCount(), 7u);
    }
    // It died while it wrote block 2: in the file or in the ring, each record is there, and none is lost.
    const auto whole = std::filesystem::file_size(m_path);
    const auto lastBlock = sizeof(BlockHeader) + 3 * sizeof(ApiCallRecord);
    for (const uint64_t bytes : {lastBlock - 1, sizeof(BlockHeader), sizeof(BlockHeader) - 1, size_t{1}}) {
        std::filesystem::resize_file(m_path, whole - lastBlock + bytes);
        CaptureReader reader(m_path);
        EXPECT_EQ(startTimes(reader), (std::vector<int64_t>{100, 200, 200, 400, 500})) << bytes;
        EXPECT_EQ(lossCount(reader, ReaderLossKind::tornTail), 0u) << bytes;
    }
    // Another block than the one that is torn: that one is lost.
    header.pendingSequence = 3;
    std::memcpy(ring.data() + kRingFileHeaderBytes, &header, sizeof header);
    writeFile(ring, m_ringPath);
    CaptureReader reader(m_path);
    EXPECT_EQ(startTimes(reader).back(), 500);
    EXPECT_EQ(lossCount(reader, ReaderLossKind::tornTail), 1u);
}

TEST_F(CaptureFormat, ADamagedRingIsALossAndNoCrash) {
    writeThreeBlocks(m_path);
    for (const size_t size : {0u, 10u, 40u, 5000u}) {
        writeFile(std::vector<char>(size, '\x7f'), m_ringPath);
        CaptureReader reader(m_path);
        EXPECT_EQ(startTimes(reader).size(), 6u);
        EXPECT_EQ(lossCount(reader, ReaderLossKind::ring), 1u) << size;
    }
}
