// SPDX-License-Identifier: Apache-2.0
// JSON of rocprofv3 (--output-format json; rocprofiler-sdk 0.5 to 1.1, source/lib/output/generateJSON.cpp): processes
// in one list, each with its agents, texts and kernels' names in front of its records.
#include <simdjson.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collector/importers/import_error.h"
#include "collector/importers/json_walk.h"
#include "collector/importers/readers.h"
#include "collector/importers/rocprof_run.h"

namespace rankscope::collector {

namespace {

using simdjson::dom::element;

/// Command line and settings of a process have less.
constexpr size_t kMostNotRead = 64;  // kinds of records that are told by name
constexpr size_t kMostTableBytes = size_t{64} << 20;
/// A record with all its arguments has less.
constexpr size_t kMostRocprofRecordBytes = size_t{16} << 20;

/// Number of a member, inside another one where `inner` names it; also what only an unsigned number holds.
std::optional<int64_t> numberOfMember(element object, const char* member, const char* inner = nullptr) {
    element value;
    if (object[member].get(value) != simdjson::SUCCESS) return std::nullopt;
    if (inner != nullptr && value[inner].get(value) != simdjson::SUCCESS) return std::nullopt;
    int64_t number = 0;
    if (value.get(number) == simdjson::SUCCESS) return number;
    uint64_t large = 0;
    if (value.get(large) == simdjson::SUCCESS) return static_cast<int64_t>(large);
    return std::nullopt;
}

std::string textOfMember(element object, const char* member) {
    std::string_view text;
    return object[member].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

RocprofTimes timesIn(element record) {
    RocprofTimes times;
    int64_t time = 0;  // what only an unsigned number holds is no time
    if (record["start_timestamp"].get(time) == simdjson::SUCCESS) times.startNs = time;
    if (record["end_timestamp"].get(time) == simdjson::SUCCESS) times.endNs = time;
    times.correlation = numberOfMember(record, "correlation_id", "internal");
    return times;
}

class RocprofJson {
  public:
    explicit RocprofJson(const std::filesystem::path& file) : m_input(file), m_walk(m_input), m_run(file) {}

    void read(const ReadOptions& options, const std::function<void(FileRank)>& take) {
        try {
            m_walk.forEachMember([this](std::string_view key) {
                if (key != "rocprofiler-sdk-tool") return m_walk.skip();
                if (m_walk.peek() == '[')
                    m_walk.forEachElement([this] { readProcess(); });
                else
                    readProcess();
            });
        } catch (const JsonCut&) {
            m_run.losses().add("torn_tail", "error", m_walk.offset(),
                               "the file is cut off or damaged here" +
                                   (m_input.damage().empty() ? std::string() : " (" + m_input.damage() + ")") +
                                   "; the records in front of that are imported");
        }
        for (const std::string& records : m_notRead)
            m_run.losses().add("source_absent", "info", std::nullopt,
                               "records of the file that are not read: " + records);
        m_run.handOver(options, take);
    }

  private:
    void readProcess() {
        m_process = &m_run.process(m_processes++);
        m_kinds.clear();
        m_messages.clear();
        m_kernels.clear();
        m_walk.forEachMember([this](std::string_view key) {
            if (key == "metadata") {
                if (const auto told = parsed(kMostTableBytes))
                    m_process->pid = numberOfMember(*told, "pid").value_or(0);
            } else if (key == "agents") {
                m_walk.forEachElement([this] { readAgent(); });
            } else if (key == "strings") {
                readTexts();
            } else if (key == "kernel_symbols") {
                int64_t index = 0;
                m_walk.forEachElement([&] { readKernelName(index++); });
            } else if (key == "buffer_records") {
                m_walk.forEachMember([this](std::string_view records) { readRecords(std::string(records)); });
            } else {
                m_walk.skip();
            }
        });
    }

    /// Nothing of what is no JSON inside.
    std::optional<element> parsed(size_t most) {
        const std::string_view text = m_walk.value(most);
        element value;
        if (m_parser.parse(text.data(), text.size()).get(value) == simdjson::SUCCESS) return value;
        m_run.losses().add("bad_block", "warning", m_walk.offset(), "records that are damaged are left out");
        return std::nullopt;
    }

    void readAgent() {
        const auto told = parsed(kMostRocprofRecordBytes);
        if (!told) return;
        constexpr int64_t kGpu = 2;  // ROCPROFILER_AGENT_TYPE_GPU
        RocprofAgent agent;
        agent.isGpu = numberOfMember(*told, "type") == kGpu;
        agent.ordinal = std::clamp<int64_t>(numberOfMember(*told, "logical_node_type_id").value_or(0), 0, 255);
        agent.name = textOfMember(*told, "product_name");
        if (agent.name.empty()) agent.name = textOfMember(*told, "name");
        agent.computeUnits = numberOfMember(*told, "cu_count");
        m_process->agents[numberOfMember(*told, "id", "handle").value_or(-1)] = std::move(agent);
    }

    void readTexts() {
        m_walk.forEachMember([this](std::string_view key) {
            if (key == "buffer_records") {
                m_walk.forEachElement([this] {
                    Kind& kind = m_kinds.emplace_back();
                    const auto told = parsed(kMostRocprofRecordBytes);
                    simdjson::dom::array operations;
                    if (!told) return;
                    kind.name = textOfMember(*told, "kind");
                    if ((*told)["operations"].get(operations) != simdjson::SUCCESS) return;
                    for (const element operation : operations) {
                        std::string_view name;
                        kind.operations.emplace_back(operation.get(name) == simdjson::SUCCESS ? name
                                                                                              : std::string_view());
                    }
                });
            } else if (key == "marker_api") {
                m_walk.forEachElement([this] {
                    const auto told = parsed(kMostRocprofRecordBytes);
                    if (told) m_messages[numberOfMember(*told, "key").value_or(-1)] = textOfMember(*told, "value");
                });
            } else {
                m_walk.skip();
            }
        });
    }

    void readKernelName(int64_t index) {
        const auto told = parsed(kMostRocprofRecordBytes);
        if (!told) return;
        std::string name = textOfMember(*told, "formatted_kernel_name");
        if (name.empty()) name = textOfMember(*told, "kernel_name");
        m_kernels[numberOfMember(*told, "kernel_id").value_or(index)] = std::move(name);
    }

    void readRecords(const std::string& records) {
        const bool isCall = records == "hip_api" || records == "hsa_api" || records == "rccl_api";
        const bool isKnown =
            isCall || records == "kernel_dispatch" || records == "memory_copy" || records == "marker_api";
        if (!isKnown || m_walk.peek() != '[') {
            const std::string_view start = m_walk.peek() == '[' ? "[" : "";
            bool isEmpty = true;
            if (start.empty())
                m_walk.skip();
            else
                m_walk.forEachElement([&] {
                    isEmpty = false;
                    m_walk.skip();
                });
            if (!isEmpty && m_notRead.size() < kMostNotRead) m_notRead.insert(records);
            return;
        }
        m_walk.forEachElement([&] {
            const auto record = parsed(kMostRocprofRecordBytes);
            if (!record) return;
            if (records == "kernel_dispatch")
                readKernel(*record);
            else if (records == "memory_copy")
                m_run.addCopy(*m_process, numberOfMember(*record, "src_agent_id", "handle").value_or(-1),
                              numberOfMember(*record, "dst_agent_id", "handle").value_or(-1), streamOf(*record),
                              timesIn(*record), numberOfMember(*record, "bytes").value_or(0));
            else if (records == "marker_api")
                readMarker(*record);
            else
                m_run.addCall(*m_process, kindOf(*record), numberOfMember(*record, "thread_id").value_or(0),
                              timesIn(*record), operationOf(*record), std::nullopt);
        });
    }

    static int64_t streamOf(element record) { return numberOfMember(record, "stream_id", "handle").value_or(0); }

    void readKernel(element record) {
        element info;
        if (record["dispatch_info"].get(info) != simdjson::SUCCESS) {
            m_run.losses().add("bad_block", "warning", m_walk.offset(), "records that are damaged are left out");
            return;
        }
        const int64_t kernel = numberOfMember(info, "kernel_id").value_or(-1);
        const auto name = m_kernels.find(kernel);
        RocprofDispatch dispatch;
        constexpr const char* kAxes[] = {"x", "y", "z"};
        for (size_t i = 0; i < 3; ++i) {
            dispatch.grid[i] = numberOfMember(info, "grid_size", kAxes[i]);
            dispatch.workgroup[i] = numberOfMember(info, "workgroup_size", kAxes[i]);
        }
        // Streams are told since ROCm 7; before, what tells work apart is the queue.
        element stream;
        const bool hasStream = record["stream_id"].get(stream) == simdjson::SUCCESS;
        m_run.addKernel(*m_process, numberOfMember(info, "agent_id", "handle").value_or(-1),
                        hasStream ? streamOf(record) : numberOfMember(info, "queue_id", "handle").value_or(0),
                        timesIn(record), name == m_kernels.end() ? "kernel " + std::to_string(kernel) : name->second,
                        dispatch);
    }

    void readMarker(element record) {
        const std::string_view operation = operationOf(record);
        const auto message = m_messages.find(numberOfMember(record, "correlation_id", "internal").value_or(-1));
        m_run.addMarker(*m_process, kindOf(record), numberOfMember(record, "thread_id").value_or(0), timesIn(record),
                        operation, message == m_messages.end() ? operation : std::string_view(message->second));
    }

    std::string_view kindOf(element record) const {
        const auto kind = static_cast<size_t>(numberOfMember(record, "kind").value_or(-1));
        return kind < m_kinds.size() ? std::string_view(m_kinds[kind].name) : std::string_view();
    }

    std::string_view operationOf(element record) const {
        const auto kind = static_cast<size_t>(numberOfMember(record, "kind").value_or(-1));
        const auto operation = static_cast<size_t>(numberOfMember(record, "operation").value_or(-1));
        if (kind >= m_kinds.size() || operation >= m_kinds[kind].operations.size()) return "unknown";
        return m_kinds[kind].operations[operation];
    }

    struct Kind {
        std::string name;
        std::vector<std::string> operations;
    };

    InputFile m_input;
    JsonWalk m_walk;
    RocprofRun m_run;
    simdjson::dom::parser m_parser;
    int64_t m_processes = 0;
    RocprofRun::Process* m_process = nullptr;   // that is read
    std::vector<Kind> m_kinds;                  // of records, by number
    std::map<int64_t, std::string> m_messages;  // of ROCTx, by correlation
    std::map<int64_t, std::string> m_kernels;   // names, by id
    std::set<std::string> m_notRead;
};

}  // namespace

const Reader kRocprofReader{
    .name = "rocprofv3",
    .expected = "a JSON of rocprofv3",
    .endings = {".json", ".json.gz"},
    .recognises = [](std::string_view head) { return head.find("\"rocprofiler-sdk-tool\"") != std::string_view::npos; },
    .read = [](const std::filesystem::path& file, const ReadOptions& options,
               const std::function<void(FileRank)>& take) { RocprofJson(file).read(options, take); },
};

}  // namespace rankscope::collector
