// SPDX-License-Identifier: Apache-2.0
// Builds capture files for tests, record by record, through the injector's own block writer.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "injector/capture_format/block_writer.h"
#include "injector/capture_format/record_traits.h"
#include "injector/capture_format/records.h"
#include "injector/capture_format/ring_layout.h"

namespace rankscope::test {

struct CaptureIdentity {
    int rank = 0;
    int worldSize = 1;
    std::string host = "node0";
    int pid = 1000;
    int attempt = 0;
    std::string bootId = "boot";
};

/// The ring file a process leaves beside its capture file when it is killed; empty, all records were in the file.
inline void leaveRings(std::filesystem::path captureFile) {
    capture::RingFileHeader header{};
    std::memcpy(header.magic, capture::kRingMagic, sizeof header.magic);
    header.formatVersion = capture::kFormatVersion;
    header.endianMark = 0x01020304;
    header.cellsPerRing = capture::kRingMinCells;
    header.processStartNs = 1;
    std::ofstream(captureFile.replace_extension(".ring"), std::ios::binary)
        .write(reinterpret_cast<const char*>(&header), sizeof header);
}

/// One process's file. Records go to blocks of their thread; finish() or the destructor writes what is left.
class CaptureFile {
  public:
    static constexpr uint32_t kMainThread = 0;
    static constexpr int kMainTid = 4711;

    CaptureFile(const std::filesystem::path& path, const CaptureIdentity& identity) {
        std::filesystem::create_directories(path.parent_path());
        capture::FileHeader header{};
        header.clockKind = capture::ClockKind::realtime;
        header.pid = identity.pid;
        header.parentPid = 1;
        header.processStartNs = 1;
        header.realtimeNs = 1'700'000'000'000'000'000;
        header.rank = identity.rank;
        header.localRank = identity.rank;
        header.worldSize = identity.worldSize;
        header.attempt = identity.attempt;
        std::strncpy(header.identitySource, "torchrun", sizeof header.identitySource - 1);
        std::strncpy(header.host, identity.host.c_str(), sizeof header.host - 1);
        std::strncpy(header.bootId, identity.bootId.c_str(), sizeof header.bootId - 1);
        std::strncpy(header.executable, "/usr/bin/train", sizeof header.executable - 1);
        std::strncpy(header.injectorVersion, "0.1.0", sizeof header.injectorVersion - 1);
        if (!m_writer.open(path.c_str(), header, 0)) throw std::runtime_error("cannot write " + path.string());
        capture::ThreadRecord thread{{capture::RecordType::thread, 1, 0}, kMainThread, kMainTid, 0, 0, text("main")};
        add(thread, kMainThread);
    }
    ~CaptureFile() { finish(); }

    void finish() {
        for (auto& [thread, block] : m_blocks) flush(thread, block);
        m_writer.close();
    }

    template <typename Record>
    void add(const Record& record, uint32_t thread = capture::kNoThread) {
        addBytes(&record, sizeof record, thread);
    }

    /// Id of a text; the text is written at its first use.
    capture::StringId text(const std::string& value) {
        const auto [known, isNew] = m_texts.try_emplace(value, std::hash<std::string>()(value) | 1);
        const capture::StringId id = known->second;
        if (!isNew) return id;
        std::vector<char> bytes(capture::cellsFor(sizeof(capture::StringRecord) + value.size()) * capture::kCellBytes);
        const capture::StringRecord record{
            {capture::RecordType::string, static_cast<uint8_t>(bytes.size() / capture::kCellBytes),
             static_cast<uint16_t>(value.size())},
            static_cast<uint32_t>(value.size()),
            id};
        std::memcpy(bytes.data(), &record, sizeof record);
        std::memcpy(bytes.data() + sizeof record, value.data(), value.size());
        addBytes(bytes.data(), bytes.size(), capture::kNoThread);
        return id;
    }

    void stream(uint16_t index, uint32_t nativeId, uint64_t handle, int device = 0) {
        add(capture::StreamRecord{{capture::RecordType::stream, 1, index}, device, 1, nativeId, handle, 0, 0});
    }
    /// A kernel and, with a launch time, the cudaLaunchKernel (runtime call 211) that started it.
    void kernel(const std::string& name, uint16_t streamIndex, int64_t startNs, int64_t durNs, uint32_t correlation = 0,
                int64_t launchNs = -1) {
        if (launchNs >= 0) api(211, launchNs, 2'000, correlation);
        add(capture::KernelRecord{{capture::RecordType::kernel, 1, streamIndex},
                                  correlation,
                                  startNs,
                                  static_cast<uint32_t>(durNs),
                                  static_cast<uint32_t>(text(name)),
                                  64,
                                  256,
                                  0});
    }
    void api(uint16_t runtimeCall, int64_t startNs, int64_t durNs, uint32_t correlation, uint16_t domain = 2) {
        capture::CuptiApiRecord record{
            {capture::RecordType::cuptiApi, 1, runtimeCall}, correlation, startNs, 0, kMainTid, 0, domain, 0};
        capture::setDurationNs(record, static_cast<uint64_t>(durNs));
        add(record);
    }
    void hookedApi(capture::CudaApi call, int64_t startNs, int64_t endNs, uint64_t argument) {
        add(
            capture::ApiCallRecord{
                {capture::RecordType::apiCall, 1, static_cast<uint16_t>(call)}, m_seq++, startNs, endNs, argument},
            kMainThread);
    }
    void external(uint32_t correlation, uint64_t callId) {
        add(capture::ExternalCorrelationRecord{
            {capture::RecordType::externalCorrelation, 1, 0}, correlation, callId, {}});
    }
    void communicator(uint32_t index, uint64_t hash, int rank, int nRanks, int64_t timeNs = 1, int device = 0) {
        add(capture::CommunicatorRecord{
            {capture::RecordType::communicator, 2, 1}, index, hash, 0xc0de, timeNs, rank, nRanks, device, 0, -1, 0, 0});
    }
    void ncclCall(capture::NcclOp op, uint32_t communicator, uint64_t count, int64_t startNs, uint64_t callId,
                  uint64_t stream, int peer = -1, uint32_t group = 0) {
        constexpr uint8_t kFloat32 = 7;
        add(capture::NcclCallRecord{{capture::RecordType::ncclCall, 2, static_cast<uint16_t>(op)},
                                    m_seq++,
                                    startNs,
                                    startNs + 3'000,
                                    count,
                                    callId,
                                    stream,
                                    communicator,
                                    peer,
                                    group,
                                    kFloat32,
                                    0,
                                    0,
                                    0},
            kMainThread);
    }
    void ncclGroup(uint32_t group, int64_t startNs, int64_t endNs, uint64_t callId, uint16_t calls) {
        add(capture::NcclGroupRecord{{capture::RecordType::ncclGroup, 1, calls}, group, startNs, endNs, callId},
            kMainThread);
    }
    void push(const std::string& name, int64_t ns) { nvtx(capture::RecordType::nvtxPush, text(name), ns); }
    void pop(int64_t ns) { nvtx(capture::RecordType::nvtxPop, 0, ns); }
    /// The process says goodbye. how: 1 exit, 3 signal.
    void end(int64_t ns, uint16_t how = 1, int code = 0) {
        add(capture::ProcessEndRecord{{capture::RecordType::processEnd, 1, how}, code, ns, {}});
    }

  private:
    /// Records of one thread that are not in the file yet.
    struct Block {
        std::vector<char> bytes;
        uint32_t records = 0;
    };

    void nvtx(capture::RecordType type, capture::StringId name, int64_t ns) {
        add(capture::NvtxRecord{{type, 2, 0}, m_seq++, ns, name, 0, 0, 0, 0, 0, 0}, kMainThread);
    }
    void addBytes(const void* bytes, size_t size, uint32_t thread) {
        Block& block = m_blocks[thread];
        const auto* first = static_cast<const char*>(bytes);
        block.bytes.insert(block.bytes.end(), first, first + size);
        block.bytes.resize(capture::cellsFor(block.bytes.size()) * capture::kCellBytes);
        ++block.records;
        if (block.bytes.size() > 60'000) flush(thread, block);
    }
    void flush(uint32_t thread, Block& block) {
        if (block.bytes.empty()) return;
        capture::BlockInfo info;
        info.threadIndex = thread;
        info.recordCount = block.records;
        if (m_writer.append(info, block.bytes.data(), block.bytes.size()) != capture::AppendResult::ok)
            throw std::runtime_error("append failed");
        block = {};
    }

    capture::BlockWriter m_writer;
    std::unordered_map<std::string, capture::StringId> m_texts;
    std::map<uint32_t, Block> m_blocks;
    uint32_t m_seq = 0;
};

/// A folder of its own for one test.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "rankscope-test-XXXXXX").string();
        if (!mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp failed");
        m_path = pattern;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::permissions(m_path, std::filesystem::perms::owner_all, ignored);
        std::filesystem::remove_all(m_path, ignored);
    }
    const std::filesystem::path& path() const { return m_path; }

  private:
    std::filesystem::path m_path;
};

}  // namespace rankscope::test
