// SPDX-License-Identifier: Apache-2.0
// Makes captures of a job with more data-parallel replicas than this machine can play at once. Usage:
//
//     rankscope_test_widen RUN OUT REPLICAS FIRST LAST
//
// RUN is a run of one of the reference harness's 3d scenarios, with its captures, on D replicas. OUT becomes the same
// job on REPLICAS of them: the recorded ones, and copies of the replicas FIRST to LAST in turn, which should be healthy
// ones. A copy has ranks, hosts, processes and communicators of its own, and takes its part in those that all replicas
// share; its times are those of the replica it was made of. So every wait is as recorded, and a collective of all
// replicas takes what it took among D of them. With REPLICAS = D the captures are RUN's own, byte by byte.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "injector/capture_format/crc32c.h"
#include "injector/capture_format/records.h"

namespace rankscope::capture {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(path.string() + ": cannot be read");
    return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& bytes) {
    std::ofstream file(path, std::ios::binary);
    file << bytes;
    if (!file.flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

/// Where a rank stands: tensor-parallel neighbours first, then replicas, then stages (reference/workloads/layout.h).
struct Grid {
    int tensor = 1, replicas = 1, stages = 1, ranksPerNode = 1;

    int size() const { return tensor * replicas * stages; }
    int rank(int inTensor, int replica, int stage) const { return inTensor + tensor * (replica + replicas * stage); }
    int replicaOf(int rank) const { return rank / tensor % replicas; }
    /// Replicas from an even share of the nodes on: each stage of them, and so each node, is full.
    bool fillsNodes(int count) const { return tensor * count % ranksPerNode == 0; }
    int moved(int rank, int replica, const Grid& to) const {
        return to.rank(rank % tensor, replica, rank / (tensor * replicas));
    }
};

/// Calls `take` with each record of a capture, which it may change, and keeps the checksums true.
template <typename Function>
void forEachRecord(std::string& file, const Function& take) {
    for (size_t at = kFileHeaderBytes; at + kBlockHeaderBytes <= file.size();) {
        BlockHeader block;
        std::memcpy(&block, file.data() + at, sizeof block);
        char* payload = file.data() + at + kBlockHeaderBytes;
        if (block.magic != kBlockMagic || at + kBlockHeaderBytes + block.payloadBytes > file.size())
            throw std::runtime_error("a capture is damaged; only whole ones can be widened");
        for (size_t offset = 0; offset < block.payloadBytes;) {
            RecordHead head;
            std::memcpy(&head, payload + offset, sizeof head);
            if (head.cells == 0) throw std::runtime_error("a record has no length");
            take(head.type, payload + offset);
            offset += head.cells * kCellBytes;
        }
        block.payloadCrc = crc32c(payload, block.payloadBytes);
        block.headerCrc = crc32c(&block, offsetof(BlockHeader, headerCrc));
        std::memcpy(file.data() + at, &block, sizeof block);
        at += kBlockHeaderBytes + block.payloadBytes;
    }
}

template <typename Record, typename Function>
void edit(void* at, const Function& change) {
    Record record;
    std::memcpy(&record, at, sizeof record);
    change(record);
    std::memcpy(at, &record, sizeof record);
}

enum class Span : uint8_t { job, replicas, inReplica };

class Widening {
  public:
    Widening(Grid from, int replicas) : m_from(from), m_to(from) { m_to.replicas = replicas; }

    /// Which communicators there are: all captures first.
    void learn(std::string& capture) {
        const int rank = headerOf(capture).rank;
        forEachRecord(capture, [&](RecordType type, void* at) {
            if (type == RecordType::communicator)
                edit<CommunicatorRecord>(at, [&](CommunicatorRecord& record) { m_members[record.hash].insert(rank); });
        });
    }

    void classify() {
        for (const auto& [hash, ranks] : m_members) {
            std::set<int> replicas;
            for (const int rank : ranks) replicas.insert(m_from.replicaOf(rank));
            m_spans[hash] = static_cast<int>(ranks.size()) == m_from.size() ? Span::job
                            : replicas.size() > 1                           ? Span::replicas
                                                                            : Span::inReplica;
        }
    }

    int rankOf(const std::string& capture) const { return headerOf(capture).rank; }
    const Grid& from() const { return m_from; }
    const Grid& to() const { return m_to; }

    /// The capture as that of the same place in another replica; its name in `name`.
    std::string copy(std::string capture, int replica, std::string& name) const {
        FileHeader header = headerOf(capture);
        const int own = m_from.replicaOf(header.rank);
        const int rank = m_from.moved(header.rank, replica, m_to);
        const Copy made{replica, own, rank};
        header.rank = rank;
        header.worldSize = m_to.size();
        std::memset(header.host, 0, sizeof header.host);
        const std::string host = fmt::format("node{}", rank / m_to.ranksPerNode);
        std::memcpy(header.host, host.data(), host.size());
        header.headerChecksum = crc32c(&header, offsetof(FileHeader, headerChecksum));
        std::memcpy(capture.data(), &header, sizeof header);
        forEachRecord(capture, [&](RecordType type, void* at) { change(type, at, made); });
        name = host + name.substr(name.find('.'));
        return capture;
    }

  private:
    struct Copy {
        int replica, own, rank;
    };

    static FileHeader headerOf(const std::string& capture) {
        FileHeader header;
        if (capture.size() < kFileHeaderBytes || std::memcmp(capture.data(), kFileMagic, sizeof kFileMagic) != 0)
            throw std::runtime_error("a capture has no header");
        std::memcpy(&header, capture.data(), sizeof header);
        return header;
    }

    Span spanOf(uint64_t hash) const {
        const auto at = m_spans.find(hash);
        return at == m_spans.end() ? Span::inReplica : at->second;
    }

    /// A communicator inside a replica is another one in its copies.
    uint64_t hashOf(uint64_t hash, const Copy& copy) const {
        if (copy.replica == copy.own || spanOf(hash) != Span::inReplica || hash == 0) return hash;
        uint64_t mixed = hash ^ (uint64_t{0x9e3779b97f4a7c15} * static_cast<uint64_t>(copy.replica));
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
        return mixed ^ (mixed >> 31);
    }

    int commRank(uint64_t hash, int rank, const Copy& copy) const {
        const Span span = spanOf(hash);
        return rank < 0 || span == Span::inReplica ? rank : span == Span::job ? copy.rank : copy.replica;
    }

    int commSize(uint64_t hash, int size) const {
        const Span span = spanOf(hash);
        return size < 0 || span == Span::inReplica ? size : span == Span::job ? m_to.size() : m_to.replicas;
    }

    /// The other end of a hop between replicas: as many replicas away as recorded, around the end of a ring, too.
    int peer(uint64_t hash, int peer, const Copy& copy) const {
        const Span span = spanOf(hash);
        if (peer < 0 || span == Span::inReplica) return peer;
        int distance = (span == Span::job ? m_from.replicaOf(peer) : peer) - copy.own;
        if (distance == m_from.replicas - 1) distance = -1;
        if (distance == 1 - m_from.replicas) distance = 1;
        const int replica = (copy.replica + distance + m_to.replicas) % m_to.replicas;
        return span == Span::job ? m_from.moved(peer, replica, m_to) : replica;
    }

    void change(RecordType type, void* at, const Copy& copy) const {
        if (type == RecordType::communicator)
            edit<CommunicatorRecord>(at, [&](CommunicatorRecord& record) {
                record.rank = commRank(record.hash, record.rank, copy);
                record.nRanks = commSize(record.hash, record.nRanks);
                record.hash = hashOf(record.hash, copy);
            });
        else if (type == RecordType::ncclPayload)
            edit<NcclPayloadRecord>(at, [&](NcclPayloadRecord& record) {
                record.rank = commRank(record.commHash, record.rank, copy);
                record.nRanks = commSize(record.commHash, record.nRanks);
                record.commHash = hashOf(record.commHash, copy);
            });
        else if (type == RecordType::pluginColl || type == RecordType::pluginP2p)
            edit<PluginCollRecord>(at, [&](PluginCollRecord& record) {
                record.rank = commRank(record.commHash, record.rank, copy);
                record.commHash = hashOf(record.commHash, copy);
            });
        else if (type == RecordType::pluginKernelChannel)
            edit<PluginChannelRecord>(
                at, [&](PluginChannelRecord& record) { record.commHash = hashOf(record.commHash, copy); });
        else if (type == RecordType::pluginProxyOp)
            edit<PluginProxyOpRecord>(at, [&](PluginProxyOpRecord& record) {
                record.peer = peer(record.commHash, record.peer, copy);
                record.rank = commRank(record.commHash, record.rank, copy);
                record.commHash = hashOf(record.commHash, copy);
            });
        else if (type == RecordType::rankIdentity)
            edit<RankIdentityRecord>(at, [&](RankIdentityRecord& record) {
                record.rank = copy.rank;
                record.worldSize = m_to.size();
            });
    }

    Grid m_from, m_to;
    std::map<uint64_t, std::set<int>> m_members;  // ranks by communicator
    std::unordered_map<uint64_t, Span> m_spans;   // by communicator
};

void widen(const fs::path& run, const fs::path& out, int replicas, int first, int last) {
    nlohmann::json scenario = nlohmann::json::parse(read(run / "scenario.json"));
    nlohmann::json description = nlohmann::json::parse(read(run / "run.json"));
    const nlohmann::json& parallel = scenario.at("parallel");
    const Grid grid{parallel.value("tp", 1), parallel.at("dp").get<int>(), parallel.value("pp", 1),
                    scenario.at("cluster").at("ranks_per_node").get<int>()};
    const int copied = last - first + 1;
    if (replicas < grid.replicas || first < 0 || copied < 1 || last >= grid.replicas ||
        !grid.fillsNodes(grid.replicas) || !grid.fillsNodes(replicas) || !grid.fillsNodes(first) ||
        !grid.fillsNodes(copied))
        throw std::runtime_error(
            fmt::format("{} replicas of {} ranks cannot become {} with copies of {} to {}: stages and copies must fill "
                        "nodes of {} ranks",
                        grid.replicas, grid.tensor * grid.stages, replicas, first, last, grid.ranksPerNode));
    std::vector<fs::path> captures;
    for (const auto& entry : fs::directory_iterator(run / "capture"))
        if (entry.path().extension() == ".cap") captures.push_back(entry.path());
    if (static_cast<int>(captures.size()) != grid.size())
        throw std::runtime_error(fmt::format("{} captures of {} ranks", captures.size(), grid.size()));

    fs::create_directories(out / "capture");
    Widening widening(grid, replicas);
    for (const fs::path& path : captures) {
        std::string capture = read(path);
        widening.learn(capture);
    }
    widening.classify();
    for (const fs::path& path : captures) {
        const std::string capture = read(path);
        const int own = grid.replicaOf(widening.rankOf(capture));
        for (int replica = 0; replica < replicas; ++replica) {
            const int source = replica < grid.replicas ? replica : first + (replica - grid.replicas) % copied;
            if (source != own) continue;
            std::string name = path.filename().string();
            const std::string copy = widening.copy(capture, replica, name);
            write(out / "capture" / name, copy);
        }
    }
    scenario["parallel"]["dp"] = replicas;
    scenario["cluster"]["nodes"] = widening.to().size() / grid.ranksPerNode;
    description["world_size"] = widening.to().size();
    description["name"] = out.filename().string();
    write(out / "scenario.json", scenario.dump(2));
    write(out / "run.json", description.dump(2));
}

}  // namespace
}  // namespace rankscope::capture

int main(int argc, char** argv) {
    if (argc != 6) {
        fmt::print(stderr, "usage: {} RUN OUT REPLICAS FIRST LAST (copies of the replicas FIRST to LAST)\n", argv[0]);
        return 2;
    }
    try {
        rankscope::capture::widen(argv[1], argv[2], std::stoi(argv[3]), std::stoi(argv[4]), std::stoi(argv[5]));
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", argv[0], error.what());
        return 3;
    }
}
