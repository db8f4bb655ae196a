// SPDX-License-Identifier: Apache-2.0
#include "injector/record/writer_thread.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "injector/capture_format/reader.h"
#include "injector/capture_format/watch_counters.h"
#include "tests/unit/injector/own_process.h"
#include "tests/unit/injector/temporary_folder.h"

using namespace rankscope;
using injector::CaptureSink;
using injector::Ring;
using injector::RingFile;
using injector::WriterThread;

namespace {

// As in the library: in static memory, because a detached thread may look at them until it is gone.
constinit RingFile g_rings;
constinit CaptureSink g_sink;
constinit WriterThread g_writer;

class Recording {
  protected:
    void open(uint64_t maxBytes = 0) {
        capture::FileHeader header{};
        header.processStartNs = 77;
        ASSERT_TRUE(g_sink.open((m_folder.path() + "/a.cap").c_str(), header, maxBytes));
        ASSERT_TRUE(g_rings.open((m_folder.path() + "/a.ring").c_str(), 1024, 1, 77));
        ASSERT_TRUE(g_writer.start(g_rings, g_sink, {}));
        g_rings.map(g_writer.tid());
    }
    void close() {
        g_writer.stop();
        g_writer.drainNow();
        g_sink.close();
        g_rings.closeAndUnlink();
    }
    std::string path() const { return m_folder.path() + "/a.cap"; }
    TemporaryFolder m_folder;
};

void push(Ring& ring, uint32_t seq) {
    capture::ApiCallRecord record{};
    record.head = {capture::RecordType::apiCall, 1, 0};
    record.seq = seq;
    record.startNs = seq;
    record.endNs = seq + 1;
    if (!ring.push(&record, 1)) {
        ring.countLost(record.endNs);
        return;
    }
    if (ring.needsDrain()) g_writer.wake();
}

/// Records and told losses by thread index.
struct Counted {
    std::map<uint32_t, std::vector<uint32_t>> seqs;
    uint64_t lost = 0;
};

Counted countIn(const std::string& path) {
    capture::CaptureReader reader(path);
    Counted counted;
    while (const auto* record = reader.next()) {
        if (record->type() == capture::RecordType::apiCall)
            counted.seqs[record->threadIndex].push_back(record->as<capture::ApiCallRecord>().seq);
        if (record->type() == capture::RecordType::loss) counted.lost += record->as<capture::LossRecord>().count;
    }
    EXPECT_TRUE(reader.losses().empty());
    return counted;
}

}  // namespace

OWN_PROCESS_TEST(Recording, WhatFourThreadsPushIsInTheFileOrCountedAsLost) {
    open();
    constexpr uint32_t kEach = 20000;
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < 4; ++t)
        threads.emplace_back([t] {
            Ring* ring = g_rings.acquire(t, 100);
            ASSERT_NE(ring, nullptr);
            for (uint32_t i = 0; i < kEach; ++i) push(*ring, i);
            RingFile::retire(*ring);
        });
    for (auto& thread : threads) thread.join();
    close();
    const Counted counted = countIn(path());
    uint64_t records = 0;
    for (const auto& [thread, seqs] : counted.seqs) {
        records += seqs.size();
        for (size_t i = 1; i < seqs.size(); ++i) ASSERT_LT(seqs[i - 1], seqs[i]) << thread;
    }
    EXPECT_EQ(records + counted.lost, 4u * kEach);
    EXPECT_FALSE(std::filesystem::exists(m_folder.path() + "/a.ring"));
}

OWN_PROCESS_TEST(Recording, TheRingOfAnEndedThreadIsUsedAgainAfterItsDrain) {
    open();
    for (uint32_t generation = 0; generation < 50; ++generation) {
        Ring* ring = g_rings.acquire(generation, 1);
        ASSERT_NE(ring, nullptr);
        push(*ring, generation);
        RingFile::retire(*ring);
        g_writer.drainNow();
    }
    EXPECT_EQ(g_rings.count(), 1u);
    close();
    const Counted counted = countIn(path());
    ASSERT_EQ(counted.seqs.size(), 50u);
    for (const auto& [thread, seqs] : counted.seqs) EXPECT_EQ(seqs, std::vector<uint32_t>{thread});
}

OWN_PROCESS_TEST(Recording, BeyondTheSizeCapTheFirstPartIsKeptAndTheRestIsCounted) {
    open(capture::kFileHeaderBytes + 2 * (capture::kBlockHeaderBytes + 10 * 32));
    Ring* ring = g_rings.acquire(0, 1);
    for (uint32_t round = 0; round < 5; ++round) {
        for (uint32_t i = 0; i < 10; ++i) push(*ring, round * 10 + i);
        g_writer.drainNow();
    }
    close();
    const Counted counted = countIn(path());
    EXPECT_GE(counted.seqs.at(0).size(), 10u);
    EXPECT_EQ(counted.seqs.at(0).front(), 0u);
    EXPECT_EQ(counted.seqs.at(0).size() + counted.lost, 50u);
    EXPECT_GT(counted.lost, 0u);
}

OWN_PROCESS_TEST(Recording, AKilledProcessLeavesItsRingsToTheReader) {
    const pid_t process = fork();
    if (process == 0) {
        open();
        g_writer.stop();  // nothing is drained
        Ring* ring = g_rings.acquire(3, 1);
        for (uint32_t i = 0; i < 7; ++i) push(*ring, i);
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(process, &status, 0), process);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(countIn(path()).seqs.at(3), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6}));
}

// As another program does it: this one waits.
void cutOff(const std::string& file) {
    if (fork() == 0) _exit(chmod(file.c_str(), 0600) == 0 && truncate(file.c_str(), 0) == 0 ? 0 : 1);
    int status = 0;
    wait(&status);
    EXPECT_EQ(status, 0);
}

/// The recording's own descriptor of the file, by which no lease is broken.
int descriptorOf(const std::string& file) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code ignored;
        const bool isFile = std::filesystem::read_symlink(entry.path(), ignored) == file;
        const int descriptor = isFile ? std::stoi(entry.path().filename()) : -1;
        if (isFile && (fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDWR) return descriptor;
    }
    return -1;
}

/// Null: it has none.
std::optional<capture::RingFileHeader> headerOf(const std::string& file) {
    capture::RingFileHeader header{};
    if (pread(descriptorOf(file), &header, sizeof header, 0) != ssize_t{sizeof header}) return std::nullopt;
    EXPECT_EQ(std::memcmp(header.magic, capture::kRingMagic, sizeof header.magic), 0);
    return header;
}

template <typename Condition>
bool comes(const Condition& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    return condition();
}

auto countThreads() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

OWN_PROCESS_TEST(Recording, RingsOfAFileThatIsCutOffMoveWithWhatIsInThem) {
    open();
    ASSERT_TRUE(g_rings.isMapped());
    Ring* ring = g_rings.acquire(0, 1);
    Ring* other = g_rings.acquire(1, 2);
    std::atomic<bool> isOver{false};
    uint32_t pushed = 0;
    std::thread busy([&] {
        for (; !isOver; ++pushed) push(*other, pushed);
    });
    push(*ring, 0);
    cutOff(m_folder.path() + "/a.ring");
    for (uint32_t i = 1; i < 2000; ++i) {
        push(*ring, i);
        if (i % 100 == 0) g_writer.drainNow();
    }
    isOver = true;
    busy.join();
    EXPECT_NE(g_rings.acquire(2, 3), nullptr);
    close();
    const Counted counted = countIn(path());
    EXPECT_EQ(counted.seqs.at(0).size(), 2000u);
    EXPECT_EQ(counted.seqs.at(1).size() + counted.lost, pushed);
    for (const auto& [thread, seqs] : counted.seqs)
        for (size_t i = 1; i < seqs.size(); ++i) ASSERT_LT(seqs[i - 1], seqs[i]) << thread;
}

OWN_PROCESS_TEST(Recording, RingsGoBackIntoAFileThatNobodyElseHasOpenAnyMore) {
    open();
    Ring* ring = g_rings.acquire(0, 1);
    push(*ring, 0);
    const std::string file = m_folder.path() + "/a.ring";
    ASSERT_EQ(chmod(file.c_str(), 0600), 0);
    const int writer = ::open(file.c_str(), O_WRONLY);  // waits
    ASSERT_GE(writer, 0);
    EXPECT_FALSE(g_rings.isMapped());
    ASSERT_EQ(ftruncate(writer, 0), 0);
    push(*ring, 1);
    EXPECT_TRUE(comes([&] { return headerOf(file) && headerOf(file)->unmapped == 1; }));  // it was cut off since
    EXPECT_FALSE(g_rings.isMapped());
    ::close(writer);
    ASSERT_TRUE(comes([] { return g_rings.isMapped(); }));
    EXPECT_TRUE(comes([&] { return headerOf(file)->unmapped == 0 && headerOf(file)->ringCount == 1; }));
    push(*ring, 2);
    close();
    EXPECT_EQ(countIn(path()).seqs.at(0), (std::vector<uint32_t>{0, 1, 2}));
}

OWN_PROCESS_TEST(Recording, WhoReadsTheRingFileIsLetInAndNothingIsLost) {
    open();
    Ring* ring = g_rings.acquire(0, 1);
    for (uint32_t i = 0; i < 3; ++i) {
        push(*ring, i);
        const int file = ::open((m_folder.path() + "/a.ring").c_str(), O_RDONLY);
        EXPECT_GE(file, 0);
        ::close(file);
    }
    close();
    EXPECT_EQ(countIn(path()).seqs.at(0), (std::vector<uint32_t>{0, 1, 2}));
}

OWN_PROCESS_TEST(Recording, RingsLeaveAFileThatCouldNotBeHeldAndGoOnFromWhereTheirThreadsAre) {
    open();
    g_writer.stop();
    Ring* ring = g_rings.acquire(0, 1);
    for (uint32_t i = 0; i < 5; ++i) push(*ring, i);
    fcntl(descriptorOf(m_folder.path() + "/a.ring"), F_SETLEASE,
          F_UNLCK);  // as when the time to give it back has passed
    cutOff(m_folder.path() + "/a.ring");
    EXPECT_TRUE(g_rings.look());
    for (uint32_t i = 5; i < 8; ++i) push(*ring, i);
    close();
    EXPECT_EQ(countIn(path()).seqs.at(0), (std::vector<uint32_t>{5, 6, 7}));
}

OWN_PROCESS_TEST(Recording, RingsWithoutMemoryToMoveToRecordNoMoreAndHurtNobody) {
    open();
    const auto threads = countThreads();
    g_writer.stop();
    // The thread is detached: it goes after it has said that it is done, and a sanitizer maps memory meanwhile.
    ASSERT_TRUE(comes([&] { return countThreads() < threads; }));
    Ring* ring = g_rings.acquire(0, 1);
    const capture::ApiCallRecord call{{capture::RecordType::apiCall, 1, 0}};
    while (ring->push(&call, 1)) {
    }
    const std::string file = m_folder.path() + "/a.ring";
    fcntl(descriptorOf(file), F_SETLEASE, F_UNLCK);
    rlimit usual{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &usual), 0);
    const rlimit none{1, usual.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &none), 0);
    const bool isLost = g_rings.look();
    ASSERT_EQ(setrlimit(RLIMIT_AS, &usual), 0);
    EXPECT_TRUE(isLost);
    cutOff(file);                       // what is still mapped of it is gone
    EXPECT_TRUE(ring->push(&call, 1));  // into nothing: nobody reads it any more, and nobody need be told
    EXPECT_FALSE(ring->needsDrain());
    ring->countLost(1);
    EXPECT_EQ(g_rings.acquire(1, 2), nullptr);
}

OWN_PROCESS_TEST(Recording, ProgressIsCountedInTheCaptureFileForThoseWhoWatch) {
    open();
    const auto progress = [&] {
        g_sink.tellWatchers();
        capture::FileHeader header{};
        capture::WatchCounters counters{};
        EXPECT_TRUE(capture::readWatched(path().c_str(), header, counters));
        return counters.progress;
    };
    Ring* ring = g_rings.acquire(0, 1);
    const auto pushCall = [&](capture::CudaApi call) {
        capture::ApiCallRecord record{};
        record.head = {capture::RecordType::apiCall, 1, static_cast<uint16_t>(call)};
        ring->push(&record, 1);
        g_writer.drainNow();
        return progress();
    };
    EXPECT_EQ(pushCall(capture::CudaApi::launchKernel), 1u);
    EXPECT_EQ(pushCall(capture::CudaApi::eventSynchronize), 1u);  // who waits does not get on
    capture::KernelRecord kernels[2] = {};
    for (auto& kernel : kernels)
        kernel.head = {capture::RecordType::kernel, static_cast<uint8_t>(capture::cellsFor(sizeof kernel)), 0};
    static_assert(sizeof kernels[0] % capture::kCellBytes == 0);
    g_sink.append(capture::Source::cupti, kernels, sizeof kernels, 2, 1);
    EXPECT_EQ(progress(), 3u);
    close();
}

OWN_PROCESS_TEST(Recording, AFileThatCannotBeMadeMeansNoRing) {
    RingFile rings;
    EXPECT_EQ(rings.acquire(0, 1), nullptr);
    EXPECT_FALSE(rings.open((m_folder.path() + "/missing/a.ring").c_str(), 1024, 1, 1));
}
