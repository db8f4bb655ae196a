// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/trace_tables.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "collector/ingest/health_files.h"
#include "collector/ingest/machine_links.h"
#include "collector/ingest/shared_devices.h"

namespace rankscope::collector {
namespace {

template <typename Row>
void writeRows(store::TraceWriter& writer, const std::vector<Row>& rows) {
    writer.write(std::span<const Row>(rows));
}

std::optional<std::string> textOrNull(const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(text);
}

std::optional<int64_t> deviceIdOf(const std::vector<store::Device>& devices, int32_t host, int32_t ordinal) {
    for (const store::Device& device : devices) {
        if (device.hostId == host && device.ordinal == ordinal) return device.id;
    }
    return std::nullopt;
}

}  // namespace

TraceTables::TraceTables(const JoinedRanks& ranks) : m_ranks(ranks) {
    nameProcesses();
    nameDevices();
    nameThreadsAndStreams();
}

/// One process may drive several ranks.
void TraceTables::nameProcesses() {
    std::map<std::tuple<int32_t, int64_t, int64_t, bool>, int64_t> known;
    for (size_t s = 0; s < m_ranks.summaries.size(); ++s) {
        store::Process process = m_ranks.summaries[s].process;
        // Of a flight recorder no pid is known; each dump is of a process of its own.
        const bool alone = !m_ranks.summaries[s].recorderGroups.empty();
        const auto [place, isNew] = known.try_emplace(
            {hostOf(s), alone ? int64_t{m_ranks.summaries[s].rank} : process.pid, process.attempt, alone},
            static_cast<int64_t>(m_processes.size()));
        m_processOf.push_back(place->second);
        if (!isNew) continue;
        process.id = place->second;
        process.hostId = hostOf(s);
        if (process.startNs) process.startNs = m_ranks.clocks.jobNs(s, *process.startNs);
        if (process.endNs) process.endNs = m_ranks.clocks.jobNs(s, *process.endNs);
        m_processes.push_back(std::move(process));
    }
}

void TraceTables::nameDevices() {
    std::map<std::pair<int32_t, int32_t>, store::Device> byPlace;
    const auto place = [&byPlace](int32_t host, int32_t ordinal) -> store::Device& {
        store::Device& device = byPlace[{host, ordinal}];
        device.hostId = host;
        device.ordinal = ordinal;
        return device;
    };
    for (size_t s = 0; s < m_ranks.summaries.size(); ++s) {
        const RankSummary& summary = m_ranks.summaries[s];
        for (const LocalStream& stream : summary.streams) place(hostOf(s), stream.device);
        if (summary.device >= 0) place(hostOf(s), summary.device);
        for (const LocalDevice& local : summary.devices) {
            store::Device& device = place(hostOf(s), local.ordinal);
            if (!device.name) device.name = textOrNull(local.name);
            if (!device.memoryBytes) device.memoryBytes = local.memoryBytes;
            if (!device.multiprocessors) device.multiprocessors = local.multiprocessors;
            if (!device.computeCapability) device.computeCapability = local.computeCapability;
        }
    }
    for (auto& [at, device] : byPlace) {
        device.id = static_cast<int64_t>(m_devices.size());
        m_devices.push_back(std::move(device));
    }
}

void TraceTables::nameThreadsAndStreams() {
    for (size_t s = 0; s < m_ranks.summaries.size(); ++s) {
        const RankSummary& summary = m_ranks.summaries[s];
        auto& threadIds = m_threadIds.emplace_back();
        for (const LocalThread& local : summary.threads) {
            threadIds.push_back(static_cast<int32_t>(m_threads.size()) + 1);
            m_threads.push_back({threadIds.back(), m_processOf[s], summary.rank, local.tid, textOrNull(local.name)});
        }
        std::vector<size_t> order(summary.streams.size());
        for (size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(), [&summary](size_t a, size_t b) {
            const LocalStream& x = summary.streams[a];
            const LocalStream& y = summary.streams[b];
            return std::tie(x.device, x.context, x.nativeId) < std::tie(y.device, y.context, y.nativeId);
        });
        auto& streamIds = m_streamIds.emplace_back(summary.streams.size());
        for (const size_t i : order) {
            const LocalStream& local = summary.streams[i];
            streamIds[i] = static_cast<int32_t>(m_streams.size()) + 1;
            m_streams.push_back({streamIds[i], summary.rank, deviceIdOf(m_devices, hostOf(s), local.device),
                                 local.context, local.nativeId, local.handle, local.priority});
        }
    }
}

void TraceTables::writeIdentities(store::TraceWriter& writer, const std::vector<int32_t>& missingRanks) const {
    for (size_t h = 0; h < m_ranks.clocks.hosts.size(); ++h) {
        const HostClocks::Host& host = m_ranks.clocks.hosts[h];
        const auto id = static_cast<int64_t>(h);
        writer.write(store::Host{id, host.name, textOrNull(host.bootId)});
        // The model maps host time to job time, whose 0 is the first event.
        writer.write(store::ClockModel{id, host.method, host.fit.anchorNs, host.fit.offsetNs - m_ranks.clocks.originNs,
                                       host.fit.driftPpb, host.fit.boundNs, host.fit.samples});
    }
    writeRows(writer, m_processes);
    writeRows(writer, m_devices);
    writeRows(writer,
              mergeMachineLinks(m_ranks.summaries, [this](size_t summary) { return int64_t{hostOf(summary)}; }));
    std::vector<store::Rank> ranks;
    for (size_t s = 0; s < m_ranks.summaries.size(); ++s) {
        const RankSummary& summary = m_ranks.summaries[s];
        ranks.push_back({summary.rank, m_processOf[s], hostOf(s), summary.localRank,
                         deviceIdOf(m_devices, hostOf(s), summary.device), summary.state});
    }
    for (const int32_t rank : missingRanks) ranks.push_back({rank, {}, {}, {}, {}, store::RankState::missing});
    std::sort(ranks.begin(), ranks.end(), [](const store::Rank& a, const store::Rank& b) { return a.rank < b.rank; });
    writeRows(writer, ranks);
    writeRows(writer, m_threads);
    writeRows(writer, m_streams);
    writeCommunicators(writer);
    writeFailedAllocations(writer);
    writeRecorderRows(writer);
    for (const RankSummary& summary : m_ranks.summaries) {
        std::map<std::string, store::SourceStatus> latest;  // a source that was refused later is refused
        for (const store::SourceStatus& source : summary.sources) latest[source.source] = source;
        for (auto& [name, source] : latest) {
            source.rank = summary.rank;
            writer.write(source);
        }
    }
}

/// Wall-clock time at 0 of the job's clock; 0: nobody tells.
int64_t TraceTables::startUnixNs() const {
    if (m_ranks.summaries.empty() || m_ranks.summaries[0].startUnixNs == 0) return 0;
    const RankSummary& first = m_ranks.summaries[0];  // on the reference host, whose clock the origin is in
    return first.startUnixNs + (m_ranks.clocks.originNs - first.startUnixAtNs);
}

void TraceTables::writeStacks(store::TraceWriter& writer, const std::vector<ToldStack>& stacks, bool isVirtual) const {
    std::map<std::string, size_t> summaryOf;  // by file name of the capture
    for (size_t s = 0; s < m_ranks.summaries.size(); ++s) summaryOf[captureNameOf(s)] = s;
    std::vector<store::ThreadStack> rows;
    std::map<std::pair<int32_t, int64_t>, int32_t> readings;  // by rank and time; stacks come in the order of time
    std::map<int32_t, int32_t> counts;
    for (const ToldStack& told : stacks) {
        const auto known = summaryOf.find(told.capture);
        if (known == summaryOf.end()) continue;
        const RankSummary& summary = m_ranks.summaries[known->second];
        store::ThreadStack& row = rows.emplace_back(told.row);
        row.rank = summary.rank;
        int32_t& reading = readings[{row.rank, told.readUnixNs}];
        if (reading == 0) reading = ++counts[row.rank];
        row.reading = reading;
        row.readNs = jobNsOfUnix(known->second, told.readUnixNs, isVirtual);
        if (!row.readNs && told.recordedNs) row.readNs = m_ranks.clocks.jobNs(known->second, *told.recordedNs);
    }
    std::ranges::stable_sort(rows, {}, [](const store::ThreadStack& row) { return std::pair(row.rank, row.reading); });
    for (size_t i = 0; i < rows.size(); ++i) rows[i].id = static_cast<int64_t>(i) + 1;
    writeRows(writer, rows);
}

/// File name of the rank's capture; empty where it has none.
std::string TraceTables::captureNameOf(size_t summary) const {
    const auto& file = m_ranks.summaries[summary].process.captureFile;
    return file ? std::filesystem::path(*file).filename().string() : std::string();
}

/// Wall-clock time of a rank's host on the job clock; hosts' wall clocks may differ: each goes by its own.
std::optional<int64_t> TraceTables::jobNsOfUnix(size_t summary, int64_t unixNs, bool isVirtual) const {
    const RankSummary& rank = m_ranks.summaries[summary];
    if (isVirtual || rank.startUnixNs == 0) return std::nullopt;
    return m_ranks.clocks.jobNs(summary, rank.startUnixAtNs + (unixNs - rank.startUnixNs));
}

void TraceTables::writeHealth(store::TraceWriter& writer, const std::vector<capture::HealthFile>& files,
                              bool isVirtual) const {
    std::vector<size_t> byRank(m_ranks.summaries.size());
    for (size_t s = 0; s < byRank.size(); ++s) byRank[s] = s;
    std::ranges::stable_sort(byRank, {}, [this](size_t s) { return m_ranks.summaries[s].rank; });
    std::vector<store::DeviceHealth> rows;
    for (const size_t s : byRank) {
        std::vector<capture::DeviceReading> readings = readingsOf(files, captureNameOf(s), m_ranks.summaries[s].device);
        if (isVirtual) readings = withoutTimes(readings);
        for (const capture::DeviceReading& reading : readings) {
            store::DeviceHealth& row = rows.emplace_back(rowOf(reading));
            row.id = static_cast<int64_t>(rows.size());
            row.rank = m_ranks.summaries[s].rank;
            row.timeNs = jobNsOfUnix(s, reading.unixNs, isVirtual);
        }
    }
    writeRows(writer, rows);
    writePorts(writer, files, isVirtual);
}

/// Each wrapper of a host tells of its ports: the file counts that tells most of them.
void TraceTables::writePorts(store::TraceWriter& writer, const std::vector<capture::HealthFile>& files,
                             bool isVirtual) const {
    std::map<std::string, size_t> summaryOf;
    for (size_t s = 0; s < m_ranks.summaries.size(); ++s) summaryOf[captureNameOf(s)] = s;
    std::map<int32_t, std::pair<const capture::HealthFile*, size_t>> ofHost;
    for (const capture::HealthFile& file : files)
        for (const capture::UsedDevice& used : file.used) {
            const auto known = summaryOf.find(used.capture);
            if (known == summaryOf.end()) continue;
            auto& [best, summary] = ofHost[hostOf(known->second)];
            if (best == nullptr || best->ports.size() < file.ports.size()) best = &file;
            summary = known->second;
        }
    std::vector<store::PortCounter> rows;
    for (const auto& [host, told] : ofHost) {
        if (isVirtual) break;  // this machine's ports are none of a virtual host's
        for (const capture::PortReading& port : told.first->ports)
            rows.push_back({0, host, port.port, jobNsOfUnix(told.second, port.unixNs, isVirtual), port.sentBytes,
                            port.receivedBytes, port.errors, port.discards, port.linkDowns});
    }
    std::ranges::stable_sort(rows, {}, [](const store::PortCounter& row) { return std::pair(row.hostId, row.name); });
    for (size_t i = 0; i < rows.size(); ++i) rows[i].id = static_cast<int64_t>(i) + 1;
    writeRows(writer, rows);
}

void TraceTables::writeFailedAllocations(store::TraceWriter& writer) const {
    std::vector<store::FailedAllocation> rows;
    for (size_t s = 0; s < m_ranks.summaries.size(); ++s)
        for (store::FailedAllocation row : m_ranks.summaries[s].failedAllocations) {
            row.rank = m_ranks.summaries[s].rank;
            row.refusedNs = m_ranks.clocks.jobNs(s, row.refusedNs);
            rows.push_back(std::move(row));
        }
    std::ranges::sort(rows, [](const auto& a, const auto& b) {
        return std::tie(a.rank, a.refusedNs, a.bytes) < std::tie(b.rank, b.refusedNs, b.bytes);
    });
    for (size_t i = 0; i < rows.size(); ++i) rows[i].id = static_cast<int64_t>(i) + 1;
    writeRows(writer, rows);
}

void TraceTables::writeRecorderRows(store::TraceWriter& writer) const {
    std::map<std::pair<int64_t, int32_t>, store::RecorderGroup> members;  // by communicator and rank in it
    for (size_t s = 0; s < m_ranks.summaries.size(); ++s) {
        const RankSummary& summary = m_ranks.summaries[s];
        const auto jobNs = [&](std::optional<int64_t>& ns) {
            if (ns) ns = m_ranks.clocks.jobNs(s, *ns);
        };
        std::vector<store::RecorderCall> rows = summary.recorderCalls;
        for (store::RecorderCall& row : rows) {
            row.callId = m_ranks.ids.ncclCall(s, row.callId);
            jobNs(row.startedNs);
            jobNs(row.completedNs);
        }
        std::ranges::sort(rows, {}, &store::RecorderCall::callId);
        writeRows(writer, rows);
        for (const LocalRecorderGroup& group : summary.recorderGroups) {
            const int32_t joined = m_ranks.communicators.joinedOf(static_cast<int32_t>(s), group.communicator);
            const int64_t id = m_ranks.communicatorIds[static_cast<size_t>(joined)];
            for (size_t i = 0; i < group.members.size(); ++i) {
                const auto commRank = static_cast<int32_t>(i);
                store::RecorderGroup& row = members[{id, commRank}];
                row.communicatorId = id;
                row.commRank = commRank;
                row.rank = group.members[i];
                if (row.rank != summary.rank) continue;
                row.enqueued = group.enqueued;
                row.completed = group.completed;
                row.fromStart = summary.recorderFromStart ? 1 : 0;
            }
        }
    }
    for (const auto& [place, row] : members) writer.write(row);
}

void TraceTables::writeCommunicators(store::TraceWriter& writer) const {
    const auto& joined = m_ranks.communicators.all();
    std::map<uint64_t, int64_t> idOfHash;
    for (size_t i = 0; i < joined.size(); ++i) idOfHash[joined[i].hash] = m_ranks.communicatorIds[i];
    std::vector<store::Communicator> rows;
    std::vector<store::CommunicatorMember> members;
    for (size_t i = 0; i < joined.size(); ++i) {
        const JoinedCommunicator& from = joined[i];
        std::set<int32_t> hosts;
        for (const JoinedMember& member : from.members) {
            const auto summary = static_cast<size_t>(member.summary);
            hosts.insert(hostOf(summary));
            const LocalCommunicator& local =
                m_ranks.summaries[summary].communicators[static_cast<size_t>(member.local)];
            store::CommunicatorMember row{
                m_ranks.communicatorIds[i], member.commRank, m_ranks.summaries[summary].rank, {}, {}, local.endKind};
            if (local.createNs) row.createNs = m_ranks.clocks.jobNs(summary, *local.createNs);
            if (local.destroyNs) row.destroyNs = m_ranks.clocks.jobNs(summary, *local.destroyNs);
            members.push_back(row);
        }
        const auto parent = idOfHash.find(from.parentHash);
        rows.push_back({m_ranks.communicatorIds[i], static_cast<int64_t>(from.hash), from.identity, from.nRanks,
                        parent != idOfHash.end() && from.parentHash != 0 ? std::optional(parent->second) : std::nullopt,
                        textOrNull(from.name), static_cast<int32_t>(hosts.size())});
    }
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
        return std::tie(a.communicatorId, a.commRank) < std::tie(b.communicatorId, b.commRank);
    });
    writeRows(writer, rows);
    writeRows(writer, members);
}

RankTranslation TraceTables::translationOf(size_t summary) const {
    RankTranslation to;
    to.clock = m_ranks.clocks.hosts[static_cast<size_t>(hostOf(summary))].fit;
    to.originNs = m_ranks.clocks.originNs;
    for (size_t table = 0; table < to.firstIds.size(); ++table) to.firstIds[table] = m_ranks.ids.first(summary, table);
    to.threads = m_threadIds[summary];
    to.streams = m_streamIds[summary];
    const size_t communicators = m_ranks.summaries[summary].communicators.size();
    for (size_t local = 0; local < communicators; ++local) {
        const int32_t joined =
            m_ranks.communicators.joinedOf(static_cast<int32_t>(summary), static_cast<int32_t>(local));
        to.communicators.push_back(m_ranks.communicatorIds[static_cast<size_t>(joined)]);
    }
    return to;
}

void translate(const RankTranslation& to, RankRecording& recording) {
    const auto threadId = [&to](auto& id) { id = to.threads[static_cast<size_t>(id)]; };
    const auto streamId = [&to](auto& id) { id = to.streams[static_cast<size_t>(id)]; };
    const auto communicatorId = [&to](auto& id) {
        if (id) id = to.communicators[static_cast<size_t>(*id)];
    };
    size_t table = 0;
    forEachEventTable(recording, [&](auto& rows) {
        int64_t id = to.firstIds[table++];
        for (auto& row : rows) {
            row.id = id++;
            row.rank = recording.rank;
            // Both ends are translated, so that intervals that touch still touch.
            if constexpr (requires { row.timeNs; }) {
                row.timeNs = to.jobNs(row.timeNs);
            } else if constexpr (requires { row.durNs.has_value(); }) {
                const int64_t startNs = to.jobNs(row.startNs);
                if (row.durNs) row.durNs = to.jobNs(row.startNs + *row.durNs) - startNs;
                row.startNs = startNs;
            } else {
                const int64_t startNs = to.jobNs(row.startNs);
                row.durNs = to.jobNs(row.startNs + row.durNs) - startNs;
                row.startNs = startNs;
            }
        }
    });
    for (store::Kernel& row : recording.kernels) streamId(row.streamId);
    for (store::Memcpy& row : recording.memcpys) streamId(row.streamId);
    for (store::Memset& row : recording.memsets) streamId(row.streamId);
    for (store::ApiCall& row : recording.apiCalls) threadId(row.threadId);
    for (store::Synchronization& row : recording.synchronizations)
        if (row.streamId) streamId(*row.streamId);
    for (store::CudaEvent& row : recording.cudaEvents) streamId(row.streamId);
    for (store::Allocation& row : recording.allocations)
        if (row.threadId) threadId(*row.threadId);
    for (store::NvtxRange& row : recording.nvtx)
        if (row.threadId) threadId(*row.threadId);
    for (store::NcclCall& row : recording.ncclCalls) {
        if (row.threadId) threadId(*row.threadId);
        if (row.streamId) streamId(*row.streamId);
        if (row.kernelId) row.kernelId = to.firstIds[RankSummary::kKernelTable] + *row.kernelId;
        communicatorId(row.communicatorId);
    }
    for (store::ProxyOp& row : recording.proxyOps) {
        if (row.callId) row.callId = to.firstIds[RankSummary::kNcclCallTable] + *row.callId;
        communicatorId(row.communicatorId);
    }
    for (store::KernelSummary& row : recording.kernelSummaries) streamId(row.streamId);
}

void TraceTables::writeLosses(store::TraceWriter& writer, const std::vector<store::Loss>& ofRun,
                              const std::vector<store::Loss>& ofCollectives,
                              const std::vector<store::Loss>& ofMessages) const {
    std::vector<store::Loss> all = ofRun;
    for (const RankSummary& summary : m_ranks.summaries) {
        for (store::Loss loss : summary.losses) {
            if (!loss.rank) loss.rank = summary.rank;
            all.push_back(std::move(loss));
        }
    }
    const std::vector<store::Loss> shared =
        sharedDevices(m_ranks.summaries, [this](size_t summary) { return int64_t{hostOf(summary)}; });
    all.insert(all.end(), shared.begin(), shared.end());
    all.insert(all.end(), ofCollectives.begin(), ofCollectives.end());
    all.insert(all.end(), ofMessages.begin(), ofMessages.end());
    for (const HostClocks::Host& host : m_ranks.clocks.hosts) {
        if (host.method != "none") continue;
        all.push_back({0,
                       "clock",
                       store::Severity::warning,
                       {},
                       "collector",
                       1,
                       {},
                       {},
                       "nothing ties the clock of host " + host.name +
                           " to the others: no collective with recorded kernels spans them; its times are as its own "
                           "clock says"});
    }
    std::stable_sort(all.begin(), all.end(), [](const store::Loss& a, const store::Loss& b) {
        return std::make_tuple(-static_cast<int>(a.severity), a.rank.value_or(-1)) <
               std::make_tuple(-static_cast<int>(b.severity), b.rank.value_or(-1));
    });
    writeRows(writer, all);
}

void TraceTables::writeMeta(store::TraceWriter& writer, const RunFacts& facts, const std::string& stepSource) const {
    for (auto summary = m_ranks.summaries.rbegin(); summary != m_ranks.summaries.rend(); ++summary) {
        for (const auto& [key, value] : summary->meta) writer.setMeta(key, value);
    }
    for (const auto& [key, value] : facts.meta) writer.setMeta(key, value);
    writer.setMeta("schema_version", "1");
    writer.setMeta("run_name", facts.runName);
    writer.setMeta("source", facts.source);
    writer.setMeta("virtual", facts.virtualGpu ? "1" : "0");
    writer.setMeta("world_size", std::to_string(facts.worldSize.value_or(0)));
    writer.setMeta("step_source", stepSource);
    if (facts.exitStatus) writer.setMeta("exit_status", std::to_string(*facts.exitStatus));
    if (facts.stopSignal) writer.setMeta("stop_signal", std::to_string(*facts.stopSignal));
    int64_t lastNs = 0;
    for (size_t s = 0; s < m_ranks.summaries.size(); ++s) {
        const RankSummary& summary = m_ranks.summaries[s];
        if (summary.firstNs <= summary.lastNs) lastNs = std::max(lastNs, m_ranks.clocks.jobNs(s, summary.lastNs));
    }
    writer.setMeta("duration_ns", std::to_string(lastNs));
    if (const int64_t unixNs = startUnixNs(); unixNs != 0) writer.setMeta("start_unix_ns", std::to_string(unixNs));
}

void nameTexts(store::TraceWriter& writer, RankRecording& recording) {
    std::vector<int32_t> traceIds(recording.strings.size(), 0);
    forEachName(recording, [&](int32_t& id) {
        int32_t& traceId = traceIds[static_cast<size_t>(id)];
        if (traceId == 0) traceId = writer.intern(recording.strings[id]);
        id = traceId;
    });
}

void writeEventTables(store::TraceWriter& writer, RankRecording& recording) {
    forEachEventTable(recording, [&](const auto& rows) { writeRows(writer, rows); });
}

void placeInSteps(const std::vector<store::Step>& steps, MatchedCollectives& matched) {
    size_t member = 0;
    for (store::Collective& collective : matched.collectives) {
        while (member < matched.members.size() && matched.members[member].collectiveId < collective.id) ++member;
        if (member == matched.members.size() || matched.members[member].collectiveId != collective.id) continue;
        const store::CollectiveMember& lowest = matched.members[member];
        const auto after = std::upper_bound(
            steps.begin(), steps.end(), std::make_pair(lowest.rank, *lowest.arrivalNs),
            [](const auto& key, const store::Step& step) { return key < std::make_pair(step.rank, step.startNs); });
        if (after == steps.begin()) continue;
        const store::Step& step = *std::prev(after);
        if (step.rank == lowest.rank && *lowest.arrivalNs < step.startNs + step.durNs) collective.step = step.step;
    }
}

void writeMatches(store::TraceWriter& writer, const MatchedCollectives& collectives, const MatchedMessages& messages,
                  const Segmentation& steps) {
    writeRows(writer, collectives.collectives);
    writeRows(writer, collectives.members);
    writeRows(writer, messages.messages);
    writeRows(writer, steps.steps);
}

}  // namespace rankscope::collector
