// SPDX-License-Identifier: Apache-2.0
// What NCCL's inspector writes (ext-profiler/inspector of NCCL, output formats v4.0 to v4.4; RCCL has it, too): a file
// of each process, with an object for each collective or message. Their times stand in it where it was told to be
// verbose.
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "collector/importers/collective_vocabulary.h"
#include "collector/importers/import_error.h"
#include "collector/importers/input_file.h"
#include "collector/importers/json_scan.h"
#include "collector/importers/readers.h"
#include "collector/importers/text_window.h"

namespace rankscope::collector {

namespace {

using simdjson::dom::element;

/// An object of a collective with 64 channels has 10 kB.
constexpr size_t kMostRecordBytes = size_t{64} << 10;
/// A job that calls 10,000 collectives a second comes as far in 1,000 days.
constexpr int64_t kMostNumber = 1'000'000'000'000;
/// 73 years.
constexpr int64_t kMostInspectorUs = (int64_t{1} << 61) / 1000;

bool isInspectorOutput(std::string_view head) {
    return withoutLeadingSpace(head).starts_with('{') &&
           head.find("\"inspector_output_format_version\"") != std::string_view::npos;
}

std::optional<int64_t> integerIn(element object, const char* member) {
    int64_t value = 0;
    return object[member].get(value) == simdjson::SUCCESS ? std::optional(value) : std::nullopt;
}

std::string_view textIn(element object, const char* member) {
    std::string_view text;
    return object[member].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

/// First start and last end of the channels' kernels, in microseconds.
std::optional<std::pair<int64_t, int64_t>> kernelTimes(element operation) {
    simdjson::dom::array channels;
    if (operation["event_trace_ts"]["kernel_events"].get(channels) != simdjson::SUCCESS) return std::nullopt;
    std::optional<std::pair<int64_t, int64_t>> times;
    for (const element channel : channels) {
        const auto start = integerIn(channel, "kernel_start_ts"), end = integerIn(channel, "kernel_stop_ts");
        if (!start || !end || *start <= 0 || *end < *start || *end > kMostInspectorUs) continue;
        if (!times) times.emplace(*start, *end);
        times->first = std::min(times->first, *start);
        times->second = std::max(times->second, *end);
    }
    return times;
}

class InspectorLog {
  public:
    explicit InspectorLog(const std::filesystem::path& file) : m_input(file), m_window(m_input) {}

    FileRank read() {
        while (skipSpace()) {
            const size_t end = endOfRecord();
            if (end != kNotFound && addRecord({m_window.data(), end})) {
                m_window.advance(end);
                continue;
            }
            // What is damaged ends with its line: an object is one. Those of a proxy's operation may have thousands of
            // steps (since v4.4), and nothing that is kept.
            const uint64_t offset = m_window.offset();
            const bool isOfProxy = std::string_view(m_window.data(), m_window.size()).starts_with("{\"proxy_trace\"");
            const bool hasEnd = skipLine() || end != kNotFound;
            // Too long to be looked into, and nothing of a proxy is read.
            if (hasEnd && isOfProxy && m_window.offset() - offset > kMostRecordBytes) continue;
            if (hasEnd)
                m_result.losses.add("bad_block", "warning", offset, "lines that are damaged are left out");
            else
                m_result.losses.add("torn_tail", "error", offset,
                                    "the file is cut off inside an object; what stands in front of it is imported");
        }
        finish();
        return std::move(m_result);
    }

  private:
    bool skipSpace() {
        while (m_window.require(1)) {
            size_t at = 0;
            while (at < m_window.size() && isJsonSpace(m_window.data()[at])) ++at;
            m_window.advance(at);
            if (m_window.size() > 0) return true;
        }
        return false;
    }

    /// Length of the value at the front of the window; kNotFound where it has no end in front of a line that begins
    /// with another, or is none.
    size_t endOfRecord() {
        if (m_window.data()[0] != '{') return kNotFound;
        for (size_t bytes = 4096;; bytes *= 4) {
            const bool isAll = !m_window.require(bytes);
            const std::string_view text(m_window.data(), std::min(bytes, m_window.size()));
            const size_t next = text.find("\n{");
            ValueScanner scanner;
            const size_t end = scanner.feed(text.substr(0, next));
            if (end != kNotFound || isAll || next != std::string_view::npos || bytes >= kMostRecordBytes) return end;
        }
    }

    /// False where the file ends with the line.
    bool skipLine() {
        while (m_window.require(1)) {
            const std::string_view text(m_window.data(), m_window.size());
            const size_t end = text.find('\n');
            m_window.advance(end == std::string_view::npos ? text.size() : end + 1);
            if (end != std::string_view::npos) return true;
        }
        return false;
    }

    /// False for what is no object.
    bool addRecord(std::string_view text) {
        element record;
        if (m_parser.parse(text.data(), text.size()).get(record) != simdjson::SUCCESS || !record.is_object())
            return false;
        // Since v4.3 the first object of a dump tells them for those that follow.
        element header, metadata;
        if (record["header"].get(header) == simdjson::SUCCESS) readHeader(header);
        if (record["metadata"].get(metadata) == simdjson::SUCCESS) readMetadata(metadata);
        element stats;
        if (record["dump_stats"].get(stats) == simdjson::SUCCESS) readStats(stats);
        element operation;
        const bool isMessage = record["p2p_perf"].get(operation) == simdjson::SUCCESS;
        if (!isMessage && record["coll_perf"].get(operation) != simdjson::SUCCESS) return true;
        ++m_result.events;
        add(operation, isMessage);
        return true;
    }

    void readHeader(element header) {
        std::string_view id = textIn(header, "id");
        if (id.starts_with("0x")) id.remove_prefix(2);
        uint64_t hash = 0;
        std::from_chars(id.data(), id.data() + id.size(), hash, 16);
        const int64_t rank = integerIn(header, "rank").value_or(-1), ranks = integerIn(header, "n_ranks").value_or(0);
        m_communicator.reset();
        if (hash == 0 || ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks) return;
        const auto [known, isNew] = m_communicators.try_emplace(hash, m_communicators.size());
        m_communicator = known->second;
        if (!isNew) return;
        LocalCommunicator communicator;
        communicator.hash = hash;
        communicator.identity = "comm_hash";
        communicator.commRank = static_cast<int32_t>(rank);
        communicator.nRanks = static_cast<int32_t>(ranks);
        communicator.name = textIn(header, "comm_name");
        if (communicator.name == "unknown") communicator.name.clear();  // its word for none
        m_result.recording.communicators.push_back(std::move(communicator));
        LocalStream stream;  // of each communicator, as in PyTorch; the file does not tell it
        stream.nativeId = static_cast<int64_t>(known->second) + 1;
        m_result.recording.streams.push_back(stream);
    }

    void readMetadata(element metadata) {
        if (m_result.recording.hostName.empty()) m_result.recording.hostName = textIn(metadata, "hostname");
        if (const auto pid = integerIn(metadata, "pid")) m_result.recording.process.pid = *pid;
    }

    /// What its rings lost since the dump before, of one communicator.
    void readStats(element stats) {
        const auto add = [&](const char* member, int64_t& total) {
            const int64_t lost = integerIn(stats, member).value_or(0);
            if (lost > 0 && lost < kMostNumber) total += lost;
        };
        add("coll_dropped_since_last_dump", m_droppedCollectives);
        add("p2p_dropped_since_last_dump", m_droppedMessages);
    }

    void add(element operation, bool isMessage) {
        const auto times = kernelTimes(operation);
        if (!times || !m_communicator) {
            ++(times ? m_ofNone : m_untimed);
            return;
        }
        RankRecording& recording = m_result.recording;
        const std::string_view name = textIn(operation, isMessage ? "p2p" : "coll");
        store::Kernel kernel;
        kernel.startNs = times->first * 1000;
        kernel.durNs = (times->second - times->first) * 1000;
        kernel.nameId = recording.strings.intern("NCCL " + std::string(name));
        kernel.streamId = static_cast<int32_t>(*m_communicator);
        kernel.nccl = store::NcclKernel::byCall;
        store::NcclCall call;
        call.op = opFromNcclName(name);
        call.startNs = kernel.startNs;  // no later than this
        call.communicatorId = static_cast<int64_t>(*m_communicator);
        call.streamId = kernel.streamId;
        call.kernelId = static_cast<int64_t>(recording.kernels.size());
        call.evidence = store::evidence::kImported;
        if (!isMessage) call.seq = integerIn(operation, "coll_sn");
        if (call.seq && *call.seq >= 0 && *call.seq < kMostNumber) m_numbers[*m_communicator].insert(*call.seq);
        if (!isMessage) {  // since v4.2
            call.algorithm = wordFromNcclName<store::Algorithm>(textIn(operation, "coll_algo"));
            call.protocol = wordFromNcclName<store::Protocol>(textIn(operation, "coll_proto"));
        }
        call.bytes = bytesOf(call.op, integerIn(operation, isMessage ? "p2p_msg_size_bytes" : "coll_msg_size_bytes"));
        const int64_t peer = integerIn(operation, "p2p_peer").value_or(-1);
        if (isMessage && peer >= 0 && peer < recording.communicators[*m_communicator].nRanks)
            call.peer = static_cast<int32_t>(peer);
        recording.kernels.push_back(kernel);
        recording.ncclCalls.push_back(call);
    }

    /// The inspector tells the message of one rank; nccl-tests count that of all for these.
    std::optional<int64_t> bytesOf(store::Op op, std::optional<int64_t> message) const {
        if (!message || *message < 0) return std::nullopt;
        const bool ofAll = op == store::Op::allGather || op == store::Op::reduceScatter || op == store::Op::allToAll;
        int64_t bytes = 0;
        const int64_t ranks = m_result.recording.communicators[*m_communicator].nRanks;
        if (__builtin_mul_overflow(*message, ofAll ? ranks : 1, &bytes)) return std::nullopt;
        return bytes;
    }

    void finish() {
        RankRecording& recording = m_result.recording;
        if (recording.kernels.empty())
            throw ImportError(m_input.path(), 0,
                              m_untimed > 0 ? "its " + std::to_string(m_untimed) +
                                                  " operations have no times: only how long each took is told"
                                            : "it tells of no operation",
                              "record with NCCL_INSPECTOR_DUMP_VERBOSE=1");
        if (!m_input.damage().empty()) m_result.losses.add("torn_tail", "error", m_window.offset(), m_input.damage());
        if (m_untimed > 0)
            m_result.losses.add("source_absent", "warning", std::nullopt,
                                "operations without times of their kernels are left out", m_untimed);
        if (m_ofNone > 0)
            m_result.losses.add("bad_block", "warning", std::nullopt,
                                "operations whose communicator cannot be read are left out", m_ofNone);
        int64_t missing = 0;
        for (const auto& [communicator, numbers] : m_numbers)
            missing += *numbers.rbegin() - *numbers.begin() + 1 - static_cast<int64_t>(numbers.size());
        // Before the first that was written and behind the last only its own count tells.
        missing = std::max(missing, m_droppedCollectives);
        if (m_droppedMessages > 0)
            m_result.losses.add("source_absent", "warning", std::nullopt,
                                "messages are missing: the inspector's ring lost them before they were written",
                                m_droppedMessages);
        if (missing > 0)
            m_result.losses.add("source_absent", "warning", std::nullopt,
                                "collectives are missing by their numbers: the inspector may keep but the last of each "
                                "communicator at each of its dumps (NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS)",
                                missing);
        m_result.losses.add("source_absent", "info", std::nullopt,
                            "NCCL's inspector tells of collectives and messages: what rests on kernels of the program, "
                            "launches and hosts is not judged");
        recording.meta["light"] = "1";
        // The largest communicator is the job's, as in PyTorch and MPI programs.
        const auto job = std::ranges::max_element(recording.communicators, {}, &LocalCommunicator::nRanks);
        if (job->nRanks < 2) return;
        m_result.header.rank = job->commRank;
        m_result.header.worldSize = job->nRanks;
        m_result.header.rankCommunicator = job->hash;
    }

    InputFile m_input;
    TextWindow m_window;
    simdjson::dom::parser m_parser;
    FileRank m_result;
    std::map<uint64_t, size_t> m_communicators;     // by hash
    std::optional<size_t> m_communicator;           // of the present record
    std::map<size_t, std::set<int64_t>> m_numbers;  // of collectives, by communicator
    int64_t m_droppedCollectives = 0, m_droppedMessages = 0;
    int64_t m_untimed = 0;
    int64_t m_ofNone = 0;
};

}  // namespace

const Reader kInspectorReader{
    .name = "nccl_inspector",
    .expected = "an output of NCCL's inspector",
    .endings = {".jsonl"},
    .anyName = true,  // HOST-pidN.log
    .recognises = isInspectorOutput,
    .read = [](const std::filesystem::path& file, const ReadOptions&,
               const std::function<void(FileRank)>& take) { take(InspectorLog(file).read()); },
};

}  // namespace rankscope::collector
