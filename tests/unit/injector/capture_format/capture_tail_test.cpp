// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/capture_tail.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "injector/capture_format/block_writer.h"
#include "tests/unit/injector/temporary_folder.h"

namespace rankscope::capture {
namespace {

class CaptureTails : public testing::Test {
  protected:
    void write(int64_t startNs) {
        const ApiCallRecord record{{RecordType::apiCall, 1, 1}, 0, startNs, startNs + 1, 0};
        BlockInfo info;
        info.recordCount = 1;
        ASSERT_EQ(m_writer.append(info, &record, sizeof record), AppendResult::ok);
    }
    void open() {
        FileHeader header{};
        header.rank = 3;
        ASSERT_TRUE(m_writer.open(m_path.c_str(), header, 0));
    }
    /// Start times of the calls that have come.
    std::vector<int64_t> polled(uint64_t mostBytes = UINT64_MAX) {
        std::vector<int64_t> times;
        m_tail.poll(
            [&](const BlockHeader&, const std::vector<uint8_t>& payload) {
                ApiCallRecord record{};
                std::memcpy(&record, payload.data(), sizeof record);
                times.push_back(record.startNs);
            },
            mostBytes);
        return times;
    }

    TemporaryFolder m_folder;
    const std::string m_path = (std::filesystem::path(m_folder.path()) / "h.1.2.cap").string();
    BlockWriter m_writer;
    CaptureTail m_tail{m_path};
};

TEST_F(CaptureTails, EachBlockComesOnceAndTheFileMayComeLater) {
    EXPECT_FALSE(m_tail.header());
    EXPECT_TRUE(polled().empty());
    open();
    ASSERT_TRUE(m_tail.header());
    EXPECT_EQ(m_tail.header()->rank, 3);
    EXPECT_TRUE(polled().empty());
    write(1);
    write(2);
    EXPECT_EQ(polled(), (std::vector<int64_t>{1, 2}));
    EXPECT_TRUE(polled().empty());
    write(3);
    write(4);
    EXPECT_EQ(polled(1), std::vector<int64_t>{3}) << "no more than is asked for, but a block at least";
    EXPECT_EQ(polled(), std::vector<int64_t>{4});
}

TEST_F(CaptureTails, ABlockThatIsBeingWrittenWaitsAndADamagedOneIsSkipped) {
    open();
    write(1);
    const uint64_t first = m_writer.bytesWritten();
    write(2);
    const uint64_t second = m_writer.bytesWritten();
    write(3);
    const uint64_t third = m_writer.bytesWritten();
    m_writer.close();
    std::ifstream file(m_path, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    const auto writeUpTo = [&](uint64_t size) {
        std::ofstream(m_path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(size));
    };
    for (const uint64_t size : {first + 10, second - 1}) {
        writeUpTo(size);
        EXPECT_EQ(polled(), size == first + 10 ? std::vector<int64_t>{1} : std::vector<int64_t>{}) << size;
    }
    bytes[second - 5] ^= 1;
    writeUpTo(third);
    EXPECT_EQ(polled(), std::vector<int64_t>{3});
}

}  // namespace
}  // namespace rankscope::capture
