// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/chakra_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <protozero/pbf_builder.hpp>
#include <protozero/varint.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "analyzer/export/kernel_name.h"
#include "analyzer/facts/rank_events.h"
#include "analyzer/facts/trace_facts.h"
#include "analyzer/replay/rank_tasks.h"
#include "analyzer/replay/replay.h"
#include "analyzer/text/plain_text.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"

namespace rankscope::exports {
namespace {

using replay::TaskGraph;
using replay::TaskId;
using replay::TaskKind;
using replay::WaitKind;

// Messages of et_def.proto as far as they are written, with their fields' numbers.
enum class Metadata : protozero::pbf_tag_type { version = 1, attribute = 2 };
enum class Node : protozero::pbf_tag_type {
    id = 1,
    name = 2,
    type = 3,
    controlDependencies = 4,
    dataDependencies = 5,
    startMicros = 6,
    durationMicros = 7,
    attribute = 10
};
enum class Attribute : protozero::pbf_tag_type { name = 1, int32 = 7, int64 = 9, boolean = 27, string = 29 };
constexpr int kComputes = 4, kSends = 5, kReceives = 6, kCollective = 7;  // NodeType
constexpr const char* kChakraVersion = "0.0.4";

/// CollectiveCommType; -1 of what has none.
int chakraOp(store::Op op) {
    switch (op) {
        case store::Op::allReduce:
            return 0;
        case store::Op::reduce:
            return 1;
        case store::Op::allGather:
            return 2;
        case store::Op::gather:
            return 3;
        case store::Op::scatter:
            return 4;
        case store::Op::broadcast:
            return 5;
        case store::Op::allToAll:
            return 6;
        case store::Op::reduceScatter:
            return 7;
        default:
            return -1;
    }
}

template <typename Tag>
using ChakraMessage = protozero::pbf_builder<Tag>;

void addAttribute(ChakraMessage<Node>& node, const char* name, Attribute kind, int64_t value) {
    ChakraMessage<Attribute> attribute(node, Node::attribute);
    attribute.add_string(Attribute::name, name);
    if (kind == Attribute::int32)
        attribute.add_int32(kind, static_cast<int32_t>(value));
    else if (kind == Attribute::int64)
        attribute.add_int64(kind, value);
    else
        attribute.add_bool(kind, value != 0);
}

void addAttribute(ChakraMessage<Node>& node, const char* name, std::string_view value) {
    ChakraMessage<Attribute> attribute(node, Node::attribute);
    attribute.add_string(Attribute::name, name);
    attribute.add_string(Attribute::string, text::plainText(value));
}

/// A file of messages, each behind its length.
class MessageFile {
  public:
    explicit MessageFile(const std::filesystem::path& file) : m_file(file), m_out(file, std::ios::binary) {}

    template <typename Fill>
    void write(Fill fill) {
        m_message.clear();
        fill(m_message);
        std::string length;
        protozero::add_varint_to_buffer(&length, m_message.size());
        m_out << length << m_message;
    }

    void close() {
        m_out.close();
        if (!m_out) throw store::Error(m_file.string(), "it cannot be written", "is there room on the disk?");
    }

  private:
    std::filesystem::path m_file;
    std::ofstream m_out;
    std::string m_message;
};

/// Start and name of the rows of one rank in one table, by id.
struct RowFacts {
    int64_t first = 0;
    std::vector<std::pair<int64_t, int64_t>> rows;  // start, name id

    template <typename Row>
    void read(store::TraceReader& trace, int rank) {
        first = trace.extent<Row>(rank).first;
        trace.forEach<Row>(rank, [this](const Row& row) {
            if constexpr (requires { row.nameId; })
                rows.emplace_back(row.startNs, row.nameId);
            else
                rows.emplace_back(row.startNs, 0);
        });
    }
    std::pair<int64_t, int64_t> of(int64_t id) const {
        const auto at = static_cast<size_t>(id - first);
        return at < rows.size() ? rows[at] : std::pair<int64_t, int64_t>();
    }
};

class ChakraRank {
  public:
    ChakraRank(store::TraceReader& trace, const TaskGraph& graph, const std::vector<std::vector<uint32_t>>& exchangesOf,
               int rank, ChakraResult& result)
        : m_trace(trace), m_graph(graph), m_exchangesOf(exchangesOf), m_rank(rank), m_result(result) {
        m_kernels.read<store::Kernel>(trace, rank);
        m_copies.read<store::Memcpy>(trace, rank);
        m_sets.read<store::Memset>(trace, rank);
        m_calls.read<store::ApiCall>(trace, rank);
    }

    void write(MessageFile& file) {
        file.write([&](std::string& buffer) {
            ChakraMessage<Metadata> metadata(buffer);
            metadata.add_string(Metadata::version, kChakraVersion);
            for (const auto& [name, value] :
                 {std::pair<const char*, std::string>("rank", std::to_string(m_rank)),
                  std::pair<const char*, std::string>("tool", "rankscope"),
                  std::pair<const char*, std::string>("run", m_trace.meta("run_name", ""))}) {
                ChakraMessage<Attribute> attribute(metadata, Metadata::attribute);
                attribute.add_string(Attribute::name, name);
                attribute.add_string(Attribute::string, text::plainText(value));
            }
        });
        for (TaskId task = 0; task < m_graph.size(); ++task)
            if (m_graph.rankOf(task) == m_rank) addTask(file, task);
    }

  private:
    /// Nodes that stand for a task: none of what only joins others, one of most, one for each message of a kernel.
    std::vector<uint64_t> nodesOf(TaskId task) const {
        if (task == replay::kNoTask || m_graph.rankOf(task) != m_rank) return {};
        const TaskKind kind = m_graph.info[task].kind;
        if (kind == TaskKind::boundary || kind == TaskKind::stepMark || kind == TaskKind::join) return {};
        // An arrival is the beginning of the kernel that its transfer is the rest of; what follows it follows that.
        if (kind == TaskKind::arrival) return nodesOf(m_graph.before[task]);
        std::vector<uint64_t> nodes;
        const size_t count = kind == TaskKind::transfer ? std::max<size_t>(1, m_exchangesOf[task].size()) : 1;
        for (size_t i = 0; i < count; ++i) nodes.push_back(nodeId(task, i));
        return nodes;
    }

    /// Tasks have 32 bits, and no kernel carries as many messages.
    static uint64_t nodeId(TaskId task, size_t part) { return (uint64_t{part} << 32) + task + 1; }

    struct Dependencies {
        std::vector<uint64_t> control, data;
    };

    void depend(std::vector<uint64_t>& on, TaskId task) const {
        for (const uint64_t node : nodesOf(task))
            if (std::ranges::find(on, node) == on.end()) on.push_back(node);
    }

    Dependencies dependenciesOf(TaskId task) const {
        Dependencies result;
        depend(result.control, m_graph.before[task]);
        for (const replay::Edge& edge : m_graph.edgesOf(task)) {
            if (edge.kind == WaitKind::launch) depend(result.control, edge.from);
            if (edge.kind == WaitKind::event || edge.kind == WaitKind::blocking) depend(result.data, edge.from);
        }
        std::erase_if(result.data,
                      [&](uint64_t node) { return std::ranges::find(result.control, node) != result.control.end(); });
        return result;
    }

    /// A task without a call is what the host did between two of them.
    std::string hostName(uint32_t detail) {
        std::string name(m_trace.string(detail));
        return name.empty() ? "host" : name;
    }

    void addTask(MessageFile& file, TaskId task) {
        const replay::TaskInfo& info = m_graph.info[task];
        int64_t durNs = m_graph.durationNs[task];
        switch (info.kind) {
            case TaskKind::host:
            case TaskKind::blockingCall:
                // What the host did since its last call belongs to a node of its own length.
                durNs += m_graph.leadNs[task];
                return addNode(file, nodeId(task, 0), hostName(info.detail), kComputes, dependenciesOf(task),
                               m_calls.of(info.row).first, durNs, {}, [&](ChakraMessage<Node>& node) {
                                   addAttribute(node, "is_cpu_op", Attribute::boolean, 1);
                               });
            case TaskKind::kernel: {
                const auto [startNs, name] = m_kernels.of(info.row);
                return addDevice(file, task, exportedKernelName(m_trace.string(name)), startNs, durNs);
            }
            case TaskKind::copy:
                return addDevice(file, task, "copy", m_copies.of(info.row).first, durNs);
            case TaskKind::set:
                return addDevice(file, task, "set", m_sets.of(info.row).first, durNs);
            case TaskKind::arrival:
                m_arrivals[info.row] = task;
                return;
            case TaskKind::transfer:
                return addCommunication(file, task);
            default:
                return;
        }
    }

    void addDevice(MessageFile& file, TaskId task, const std::string& name, int64_t startNs, int64_t durNs) {
        addNode(file, nodeId(task, 0), name, kComputes, dependenciesOf(task), startNs, durNs, streamOf(task),
                [](ChakraMessage<Node>& node) { addAttribute(node, "is_cpu_op", Attribute::boolean, 0); });
    }

    std::optional<int64_t> streamOf(TaskId task) const { return m_graph.lanes[m_graph.info[task].lane].id; }

    void addCommunication(MessageFile& file, TaskId task) {
        const replay::TaskInfo& info = m_graph.info[task];
        const auto [startNs, nameId] = m_kernels.of(info.row);
        const auto arrival = m_arrivals.find(info.row);
        const Dependencies dependencies = dependenciesOf(arrival == m_arrivals.end() ? task : arrival->second);
        const std::vector<uint32_t>& exchanges = m_exchangesOf[task];
        if (exchanges.empty())  // nothing is known of it but its kernel
            return addDevice(file, task, exportedKernelName(m_trace.string(nameId)), startNs, m_graph.durationNs[task]);
        for (size_t i = 0; i < exchanges.size(); ++i) {
            const replay::Exchange& exchange = m_graph.exchanges[exchanges[i]];
            const auto members = m_graph.membersOf(exchange);
            const bool sends = exchange.message() && !members.empty() && members.front().rank == m_rank;
            const int type = !exchange.message() ? kCollective : sends ? kSends : kReceives;
            const std::string name(exchange.message() ? (sends ? "send" : "recv") : store::toText(exchange.op));
            if (exchange.bytes < 0) ++m_result.unknownSizes;
            addNode(file, nodeId(task, i), name, type, dependencies, startNs, m_graph.durationNs[task], streamOf(task),
                    [&](ChakraMessage<Node>& node) {
                        addAttribute(node, "is_cpu_op", Attribute::boolean, 0);
                        if (exchange.bytes >= 0) addAttribute(node, "comm_size", Attribute::int64, exchange.bytes);
                        addAttribute(node, "pg_name", std::to_string(exchange.communicatorId));
                        if (!exchange.message()) {
                            if (chakraOp(exchange.op) >= 0)
                                addAttribute(node, "comm_type", Attribute::int64, chakraOp(exchange.op));
                            return;
                        }
                        addAttribute(node, "comm_src", Attribute::int32, members.front().rank);
                        addAttribute(node, "comm_dst", Attribute::int32, members.back().rank);
                        // Both ends of a message have one tag of its own.
                        addAttribute(node, "comm_tag", Attribute::int32, exchange.id);
                    });
        }
    }

    template <typename More>
    void addNode(MessageFile& file, uint64_t id, const std::string& name, int type, const Dependencies& dependencies,
                 int64_t startNs, int64_t durNs, std::optional<int64_t> stream, More more) {
        ++m_result.nodes;
        file.write([&](std::string& buffer) {
            ChakraMessage<Node> node(buffer);
            node.add_uint64(Node::id, id);
            node.add_string(Node::name, text::plainText(name));
            node.add_enum(Node::type, type);
            if (!dependencies.control.empty())
                node.add_packed_uint64(Node::controlDependencies, dependencies.control.begin(),
                                       dependencies.control.end());
            if (!dependencies.data.empty())
                node.add_packed_uint64(Node::dataDependencies, dependencies.data.begin(), dependencies.data.end());
            node.add_uint64(Node::startMicros, static_cast<uint64_t>(std::max<int64_t>(0, startNs) / 1000));
            node.add_uint64(Node::durationMicros, static_cast<uint64_t>((std::max<int64_t>(0, durNs) + 500) / 1000));
            more(node);
            addAttribute(node, "duration_ns", Attribute::int64, durNs);
            if (stream) addAttribute(node, "stream", Attribute::int64, *stream);
        });
    }

    store::TraceReader& m_trace;
    const TaskGraph& m_graph;
    const std::vector<std::vector<uint32_t>>& m_exchangesOf;
    int m_rank;
    ChakraResult& m_result;
    RowFacts m_kernels, m_copies, m_sets, m_calls;
    std::map<uint32_t, TaskId> m_arrivals;  // by kernel
};

TaskGraph graphOf(store::TraceReader& trace, const facts::TraceFacts& facts) {
    const replay::ReplayWindow window = replay::replayWindow(trace, facts);
    std::vector<replay::RankTasks> tasks;
    for (const facts::RankFacts& rank : facts.ranks)
        if (rank.recorded)
            tasks.push_back(replay::rankTasks(facts::readRankEvents(trace, facts, rank.rank), facts, window));
    for (const replay::RankTasks& rank : tasks)
        if (!rank.problem.empty())
            throw store::Error(trace.file(), fmt::format("rank {} cannot be replayed: {}", rank.rank, rank.problem),
                               "an execution trace needs to know what each task waited for");
    replay::JoinedRanks joined = replay::joinRanks(std::move(tasks), facts);
    if (!joined.problem.empty())
        throw store::Error(trace.file(), "the run cannot be replayed: " + joined.problem,
                           "an execution trace needs to know what each task waited for");
    return std::move(joined.graph);
}

/// A name that is one of a file.
std::string fileWord(std::string_view name) {
    std::string word;
    for (const char c : name) {
        const bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
        word += plain ? c : '_';
    }
    return word.empty() ? "run" : word;
}

}  // namespace

ChakraResult writeChakraTraces(store::TraceReader& trace, const std::filesystem::path& folder,
                               const std::vector<int>& ranks) {
    const facts::TraceFacts facts = facts::readTraceFacts(trace);
    const TaskGraph graph = graphOf(trace, facts);
    std::vector<std::vector<uint32_t>> exchangesOf(graph.size());
    for (uint32_t i = 0; i < graph.exchanges.size(); ++i)
        for (const replay::ExchangeMember& member : graph.membersOf(graph.exchanges[i]))
            if (member.transfer != replay::kNoTask) exchangesOf[member.transfer].push_back(i);
    ChakraResult result;
    std::filesystem::create_directories(folder);
    const std::string run = fileWord(trace.meta("run_name", "run"));
    for (const facts::RankFacts& rank : facts.ranks) {
        if (!rank.recorded || (!ranks.empty() && std::ranges::find(ranks, rank.rank) == ranks.end())) continue;
        result.files.push_back(folder / fmt::format("{}.{}.et", run, rank.rank));
        MessageFile file(result.files.back());
        ChakraRank(trace, graph, exchangesOf, rank.rank, result).write(file);
        file.close();
    }
    return result;
}

}  // namespace rankscope::exports
