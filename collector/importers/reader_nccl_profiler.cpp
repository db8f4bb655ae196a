// SPDX-License-Identifier: Apache-2.0
// What NCCL's example profiler plugin writes (ext-profiler/example of NCCL 2.23 to 2.28, NCCL_PROFILE_DUMP_FILE): a
// file for each communicator of a process, an array of begins and ends. What stands between begin and end of a
// collective is of it, also the times of its kernel's channels.
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "collector/importers/collective_vocabulary.h"
#include "collector/importers/import_error.h"
#include "collector/importers/input_file.h"
#include "collector/importers/json_walk.h"
#include "collector/importers/readers.h"

namespace rankscope::collector {

namespace {

using simdjson::dom::element;

constexpr size_t kMostProfilerEventBytes = size_t{64} << 10;
/// 73 years.
constexpr double kMostProfilerUs = 2.3e15;

bool isProfilerDump(std::string_view head) {
    const auto holds = [head](const char* text) { return head.find(text) != std::string_view::npos; };
    return holds("\"cat\": \"COLL\"") || holds("\"cat\": \"P2P\"") ||
           (holds("\"cat\": \"GROUP\"") && holds("\"groupId\"")) || holds("\"cat\": \"GROUP_API\"");
}

store::DataType typeOfProfiler(std::string_view name) {
    constexpr std::pair<std::string_view, store::DataType> kTypes[] = {
        {"ncclInt8", store::DataType::i8},           {"ncclUint8", store::DataType::u8},
        {"ncclInt32", store::DataType::i32},         {"ncclUint32", store::DataType::u32},
        {"ncclInt64", store::DataType::i64},         {"ncclUint64", store::DataType::u64},
        {"ncclFloat16", store::DataType::f16},       {"ncclFloat32", store::DataType::f32},
        {"ncclFloat64", store::DataType::f64},       {"ncclBfloat16", store::DataType::bf16},
        {"ncclFloat8e4m3", store::DataType::f8e4m3}, {"ncclFloat8e5m2", store::DataType::f8e5m2}};
    for (const auto& [text, type] : kTypes)
        if (name == text) return type;
    return store::DataType::unknown;
}

/// An operation whose end was not read yet.
struct OpenOperation {
    std::optional<int64_t> startNs, endNs;  ///< of the channels of its kernel
    int64_t hostNs = 0;
    std::string name;
    store::NcclCall call;
    uint64_t hash = 0;
    int64_t rank = -1;
};

class ProfilerDump {
  public:
    explicit ProfilerDump(const std::filesystem::path& file) : m_input(file), m_walk(m_input) {}

    FileRank read() {
        try {
            m_walk.forEachElement([this] {
                const std::string_view text = m_walk.value(kMostProfilerEventBytes);
                element event;
                if (m_parser.parse(text.data(), text.size()).get(event) == simdjson::SUCCESS && event.is_object())
                    add(event);
                else
                    m_result.losses.add("bad_block", "warning", m_walk.offset(),
                                        "events that are damaged are left out");
            });
        } catch (const JsonCut&) {
            m_result.losses.add(
                "torn_tail", "error", m_walk.offset(),
                "the file is cut off or damaged here, as where the job was killed; what stands in front "
                "of it is imported");
        }
        if (!m_input.damage().empty()) m_result.losses.add("torn_tail", "error", m_walk.offset(), m_input.damage());
        finish();
        return std::move(m_result);
    }

  private:
    static std::optional<int64_t> timeOf(element event) {
        double us = 0;
        if (event["ts"].get(us) != simdjson::SUCCESS || !(std::abs(us) < kMostProfilerUs)) return std::nullopt;
        return std::llround(us * 1000);
    }

    static int64_t numberIn(element event, const char* member, int64_t missing) {
        int64_t value = 0;
        return event["args"][member].get(value) == simdjson::SUCCESS ? value : missing;
    }

    static std::string_view wordIn(element event, const char* member) {
        std::string_view text;
        return event["args"][member].get(text) == simdjson::SUCCESS ? text : std::string_view();
    }

    void add(element event) {
        std::string_view category, phase;
        if (event["cat"].get(category) != simdjson::SUCCESS || event["ph"].get(phase) != simdjson::SUCCESS) return;
        ++m_result.events;
        int64_t pid = 0;
        if (event["pid"].get(pid) == simdjson::SUCCESS) m_result.recording.process.pid = pid;
        const auto time = timeOf(event);
        if (category == "COLL" || category == "P2P") {
            close();
            if (phase == "b" && time) open(event, *time, category == "P2P");
        } else if (category == "GPU" && m_open && time) {
            if (phase == "b") m_open->startNs = std::min(m_open->startNs.value_or(*time), *time);
            if (phase == "e") m_open->endNs = std::max(m_open->endNs.value_or(*time), *time);
        }
    }

    void open(element event, int64_t timeNs, bool isMessage) {
        OpenOperation& open = m_open.emplace();
        std::string_view name;
        if (event["name"].get(name) == simdjson::SUCCESS) open.name = name;
        open.hostNs = timeNs;
        uint64_t hash = 0;
        if (event["args"]["CommHash"].get(hash) == simdjson::SUCCESS) open.hash = hash;
        open.rank = numberIn(event, "Rank", -1);
        store::NcclCall& call = open.call;
        call.op = opFromNcclName(open.name);
        call.dataType = typeOfProfiler(wordIn(event, "Datatype"));
        call.algorithm = wordFromNcclName<store::Algorithm>(wordIn(event, "Algorithm"));
        call.protocol = wordFromNcclName<store::Protocol>(wordIn(event, "Protocol"));
        if (const int64_t count = numberIn(event, "Count", -1); count >= 0) call.count = count;
        if (const int64_t channels = numberIn(event, "nChannels", 0); channels > 0 && channels < 1024)
            call.channels = static_cast<int32_t>(channels);
        if (!isMessage) {
            if (const int64_t seq = numberIn(event, "SeqNum", -1); seq >= 0) call.seq = seq;
        } else if (const int64_t peer = numberIn(event, "Peer", -1); peer >= 0 && peer < kMostRanks) {
            call.peer = static_cast<int32_t>(peer);
        }
        // Of the others nccl-tests count the parts of all ranks, whose number is not told.
        const bool isOfOne = call.op == store::Op::allReduce || call.op == store::Op::broadcast ||
                             call.op == store::Op::reduce || isMessage;
        int64_t bytes = 0;
        const int32_t size = store::elementBytes(call.dataType);
        if (isOfOne && size > 0 && call.count && !__builtin_mul_overflow(*call.count, int64_t{size}, &bytes))
            call.bytes = bytes;
    }

    /// What was begun last is over, told or not.
    void close() {
        if (!m_open) return;
        const OpenOperation open = std::move(*m_open);
        m_open.reset();
        if (!open.startNs || !open.endNs || *open.endNs < *open.startNs || open.hash == 0 || open.rank < 0 ||
            open.rank >= kMostRanks) {
            ++m_untimed;
            return;
        }
        RankRecording& recording = m_result.recording;
        const auto [known, isNew] = m_communicators.try_emplace(open.hash, m_communicators.size());
        if (isNew) {
            LocalCommunicator communicator;
            communicator.hash = open.hash;
            communicator.identity = "comm_hash";
            communicator.commRank = static_cast<int32_t>(open.rank);
            recording.communicators.push_back(std::move(communicator));
            LocalStream stream;  // of each communicator, as in PyTorch; the file does not tell it
            stream.nativeId = static_cast<int64_t>(known->second) + 1;
            recording.streams.push_back(stream);
        }
        store::Kernel kernel;
        kernel.startNs = *open.startNs;
        kernel.durNs = *open.endNs - *open.startNs;
        kernel.nameId = recording.strings.intern("NCCL " + open.name);
        kernel.streamId = static_cast<int32_t>(known->second);
        kernel.nccl = store::NcclKernel::byCall;
        store::NcclCall call = open.call;
        call.startNs = std::min(open.hostNs, kernel.startNs);
        call.communicatorId = static_cast<int64_t>(known->second);
        call.streamId = kernel.streamId;
        call.kernelId = static_cast<int64_t>(recording.kernels.size());
        call.evidence = store::evidence::kImported | store::evidence::kPlugin;
        recording.kernels.push_back(kernel);
        recording.ncclCalls.push_back(call);
    }

    void finish() {
        close();
        RankRecording& recording = m_result.recording;
        if (recording.kernels.empty())
            throw ImportError(
                m_input.path(), 0,
                m_untimed > 0 ? "its " + std::to_string(m_untimed) + " operations have no times of their kernels"
                              : "it tells of no operation",
                "record with NCCL_PROFILE_EVENT_MASK=71: groups, collectives, messages and channels of kernels");
        if (m_untimed > 0)
            m_result.losses.add(
                "source_absent", "warning", std::nullopt,
                "operations without times of their kernels, or without their communicator, are left out", m_untimed);
        m_result.losses.add("source_absent", "info", std::nullopt,
                            "NCCL's profiler plugin tells of collectives and messages: what rests on kernels of the "
                            "program, launches and hosts is not judged, nor how large all-gathers and reduce-scatters "
                            "are, since the number of ranks is not told");
        recording.meta["light"] = "1";
        m_result.header.rank = recording.communicators.front().commRank;
        m_result.header.rankCommunicator = recording.communicators.front().hash;
    }

    InputFile m_input;
    JsonWalk m_walk;
    simdjson::dom::parser m_parser;
    FileRank m_result;
    std::optional<OpenOperation> m_open;
    std::map<uint64_t, size_t> m_communicators;  // by hash
    int64_t m_untimed = 0;
};

}  // namespace

const Reader kNcclProfilerReader{
    .name = "nccl_profiler",
    .expected = "a dump of NCCL's example profiler plugin",
    .endings = {".json"},
    .recognises = isProfilerDump,
    .read = [](const std::filesystem::path& file, const ReadOptions&,
               const std::function<void(FileRank)>& take) { take(ProfilerDump(file).read()); },
};

}  // namespace rankscope::collector
