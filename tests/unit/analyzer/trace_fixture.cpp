// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/analyzer/trace_fixture.h"

#include <stdlib.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "analyzer/report/analyze.h"
#include "collector/store/writer.h"

namespace rankscope::test {

TemporaryFolder::TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rankscope-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    m_path = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(m_path, ignored);
}

TraceFixture::TraceFixture(int ranks, int ranksPerHost) : m_ranks(ranks), m_ranksPerHost(ranksPerHost) {}

TraceFixture& TraceFixture::links(const std::string& text) {
    m_links = text;
    return *this;
}

TraceFixture& TraceFixture::clockBound(int64_t boundNs) {
    m_clockBoundNs = boundNs;
    return *this;
}

TraceFixture& TraceFixture::environment(const std::string& name, const std::string& value, bool fromShell) {
    m_environment[name] = value;
    if (fromShell) m_shell[name] = value;
    return *this;
}

TraceFixture& TraceFixture::dataType(store::DataType type) {
    m_dataType = type;
    return *this;
}

TraceFixture& TraceFixture::choice(store::Algorithm algorithm, store::Protocol protocol) {
    m_algorithm = algorithm;
    m_protocol = protocol;
    return *this;
}

TraceFixture& TraceFixture::leavesEarly(std::vector<int64_t> byNs) {
    m_early = std::move(byNs);
    return *this;
}

TraceFixture& TraceFixture::calledAt(int64_t ns) {
    m_calledNs = ns;
    return *this;
}

void TraceFixture::streamWait(int rank, int64_t recordedNs, int64_t waitedNs) {
    m_hostCalls.push_back({rank, recordedNs, 0, "cudaEventRecord", store::ApiKind::event, ++m_correlations});
    m_hostCalls.push_back({rank, waitedNs, 0, "cudaStreamWaitEvent", store::ApiKind::event, ++m_correlations});
    m_streamWaits.push_back({rank, m_correlations - 1, m_correlations, recordedNs, waitedNs});
}

size_t TraceFixture::addKernel(int rank, Lane lane, int64_t startNs, int64_t durNs, const std::string& name,
                               int64_t grid, bool nccl) {
    m_kernels.push_back({rank, lane, startNs, durNs, name, grid, nccl, m_kernels.size(), 0});
    return m_kernels.size() - 1;
}

void TraceFixture::kernel(int rank, int64_t startNs, int64_t durNs, const std::string& name, int64_t grid) {
    addKernel(rank, Lane::compute, startNs, durNs, name, grid, false);
}

void TraceFixture::copy(int rank, int64_t startNs, int64_t durNs) {
    store::Memcpy row;
    row.rank = rank;
    row.startNs = startNs;
    row.durNs = durNs;
    row.bytes = 1;
    row.kind = 1;
    m_copies.push_back(row);
}

void TraceFixture::launchedKernel(int rank, int64_t startNs, int64_t durNs, const std::string& name, int64_t grid,
                                  int64_t launchNs, int64_t launchDurNs) {
    m_kernels[addKernel(rank, Lane::compute, startNs, durNs, name, grid, false)].correlation = ++m_correlations;
    m_hostCalls.push_back({rank, launchNs, launchDurNs, "cudaLaunchKernel", store::ApiKind::launch, m_correlations});
}

void TraceFixture::hostCopy(int rank, int64_t startNs, int64_t durNs, int64_t bytes, bool pageable, int64_t callNs,
                            int64_t callDurNs) {
    copy(rank, startNs, durNs);
    m_copies.back().bytes = bytes;
    m_copies.back().srcMemory = pageable ? 1 : 2;
    m_copies.back().dstMemory = 3;
    m_copies.back().correlationId = ++m_correlations;
    m_hostCalls.push_back({rank, callNs, callDurNs, "cudaMemcpyAsync", store::ApiKind::copy, m_correlations});
}

void TraceFixture::call(int rank, int64_t startNs, int64_t durNs, const std::string& name, store::ApiKind kind) {
    m_hostCalls.push_back({rank, startNs, durNs, name, kind, 0});
}

void TraceFixture::range(int rank, int64_t startNs, int64_t durNs, const std::string& name) {
    m_ranges.push_back({rank, startNs, durNs, name});
}

void TraceFixture::writeHostEvents(store::TraceWriter& out) const {
    const auto byStart = [](const auto& a, const auto& b) {
        return std::pair(a.rank, a.startNs) < std::pair(b.rank, b.startNs);
    };
    std::vector<HostCallRow> calls = m_hostCalls;
    std::stable_sort(calls.begin(), calls.end(), byStart);
    int64_t id = 0;
    for (const HostCallRow& call : calls) {
        store::ApiCall row;
        row.id = ++id;
        row.rank = call.rank;
        row.threadId = call.rank + 1;
        row.startNs = call.startNs;
        row.durNs = call.durNs;
        row.nameId = out.intern(call.name);
        row.kind = call.kind;
        row.source = store::ApiSource::cuptiRuntime;
        if (call.correlation != 0) row.correlationId = call.correlation;
        out.write(row);
    }
    std::vector<RangeRow> ranges = m_ranges;
    std::stable_sort(ranges.begin(), ranges.end(), byStart);
    id = 0;
    for (const RangeRow& range : ranges) {
        store::NvtxRange row;
        row.id = ++id;
        row.rank = range.rank;
        row.threadId = range.rank + 1;
        row.startNs = range.startNs;
        row.durNs = range.durNs;
        row.nameId = out.intern(range.name);
        out.write(row);
    }
}

void TraceFixture::writeStreamWaits(store::TraceWriter& out) const {
    std::vector<StreamWaitRow> waits = m_streamWaits;
    const auto writeAll = [&](auto timeOf, auto writeOne) {
        std::stable_sort(waits.begin(), waits.end(), [&](const auto& a, const auto& b) {
            return std::pair(a.rank, timeOf(a)) < std::pair(b.rank, timeOf(b));
        });
        for (size_t i = 0; i < waits.size(); ++i) writeOne(waits[i], static_cast<int64_t>(i) + 1);
    };
    // Each wait has an event of its own, numbered by the record's correlation.
    writeAll([](const StreamWaitRow& w) { return w.waitedNs; },
             [&](const StreamWaitRow& w, int64_t id) {
                 out.write(store::Synchronization{id, w.rank, 2 + 2 * w.rank, w.waitedNs, 0, 2,
                                                  int64_t{w.recordCorrelation}, w.waitCorrelation});
             });
    writeAll([](const StreamWaitRow& w) { return w.recordedNs; },
             [&](const StreamWaitRow& w, int64_t id) {
                 out.write(store::CudaEvent{id, w.rank, 1 + 2 * w.rank, w.recordedNs, int64_t{w.recordCorrelation},
                                            w.recordCorrelation});
             });
}

int TraceFixture::communicator(std::vector<int> ranks) {
    m_communicators.push_back(std::move(ranks));
    return static_cast<int>(m_communicators.size()) - 1;
}

int64_t TraceFixture::collective(int communicator, store::Op op, int64_t bytes, const std::vector<int64_t>& arrivals,
                                 int64_t transferNs, Lane lane) {
    const int64_t last = *std::max_element(arrivals.begin(), arrivals.end());
    CollectiveRow row{communicator, op,       bytes, 0,           last,       last + transferNs,
                      transferNs,   arrivals, {},    m_algorithm, m_protocol, m_early};
    row.early.resize(arrivals.size(), 0);
    for (const CollectiveRow& other : m_collectives) row.seq += other.communicator == communicator;
    for (size_t i = 0; i < arrivals.size(); ++i) {
        const int rank = m_communicators[static_cast<size_t>(communicator)][i];
        const size_t key = addKernel(rank, lane, arrivals[i], row.endNs - row.early[i] - arrivals[i],
                                     "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 16, true);
        m_calls.push_back({rank, communicator, op, bytes, row.seq, key, m_dataType, m_calledNs});
        row.calls.push_back(m_calls.size() - 1);
    }
    m_collectives.push_back(row);
    return row.endNs;
}

int64_t TraceFixture::message(int communicator, int src, int dst, int64_t bytes, int64_t sendNs, int64_t recvNs,
                              int64_t transferNs) {
    const int64_t end = std::max(sendNs, recvNs) + transferNs;
    const size_t sendKey = addKernel(src, Lane::communication, sendNs, end - sendNs, "ncclDevKernel", 2, true);
    m_calls.push_back({src, communicator, store::Op::send, bytes, 0, sendKey, m_dataType});
    const size_t recvKey = addKernel(dst, Lane::communication, recvNs, end - recvNs, "ncclDevKernel", 2, true);
    m_calls.push_back({dst, communicator, store::Op::recv, bytes, 0, recvKey, m_dataType});
    m_messages.push_back({communicator, src, dst, bytes, sendNs, recvNs, end, m_calls.size() - 2, m_calls.size() - 1});
    return end;
}

void TraceFixture::step(int rank, int number, int64_t startNs, int64_t durNs, bool warmUp) {
    m_steps.push_back({rank, number, startNs, durNs, warmUp});
}

void TraceFixture::loss(const std::string& kind, store::Severity severity, int rank) {
    store::Loss row;
    row.kind = kind;
    row.severity = severity;
    row.rank = rank;
    row.message = "planted loss";
    m_losses.push_back(row);
}

void TraceFixture::write(const std::filesystem::path& file) const {
    store::TraceWriter out(file);
    out.setMeta("source", "capture");
    out.setMeta("run_name", "fixture");
    out.setMeta("world_size", std::to_string(m_ranks));
    out.setMeta("step_source", m_steps.empty() ? "none" : "nvtx:step");
    if (!m_links.empty()) out.setMeta("links", m_links);
    for (const auto& [name, value] : m_environment) out.setMeta("env." + name, value);
    out.setMeta("start_env", "recorded");
    for (const auto& [name, value] : m_shell) out.setMeta("start_env." + name, value);

    const int hosts = (m_ranks + m_ranksPerHost - 1) / m_ranksPerHost;
    for (int host = 0; host < hosts; ++host) out.write(store::Host{host, "node" + std::to_string(host), std::nullopt});
    for (int host = 0; host < hosts; ++host)
        out.write(store::ClockModel{host, host == 0 ? "reference" : "collectives", 0, 0, 0,
                                    host == 0 ? 0 : m_clockBoundNs, 10});
    for (int rank = 0; rank < m_ranks; ++rank)
        out.write(store::Process{rank, rank / m_ranksPerHost, 100 + rank, {}, 0, {}, {}, {}, "exit", {}, {}, {}});
    for (int rank = 0; rank < m_ranks; ++rank) {
        store::Rank row;
        row.rank = rank;
        row.processId = rank;
        row.hostId = rank / m_ranksPerHost;
        out.write(row);
    }
    for (int rank = 0; rank < m_ranks && !m_hostCalls.empty(); ++rank)
        out.write(store::Thread{rank + 1, rank, rank, {}, {}});
    for (int rank = 0; rank < m_ranks; ++rank)
        for (int lane = 0; lane < 2; ++lane)
            out.write(store::Stream{1 + 2 * rank + lane, rank, {}, 1, 7 + lane, {}, {}});
    for (size_t c = 0; c < m_communicators.size(); ++c) {
        std::set<int> nodes;
        for (int rank : m_communicators[c]) nodes.insert(rank / m_ranksPerHost);
        out.write(store::Communicator{static_cast<int64_t>(c) + 1,
                                      1000 + static_cast<int64_t>(c),
                                      "comm_hash",
                                      static_cast<int32_t>(m_communicators[c].size()),
                                      {},
                                      {},
                                      static_cast<int32_t>(nodes.size())});
    }
    for (size_t c = 0; c < m_communicators.size(); ++c)
        for (size_t i = 0; i < m_communicators[c].size(); ++i)
            out.write(store::CommunicatorMember{
                static_cast<int64_t>(c) + 1, static_cast<int32_t>(i), m_communicators[c][i], {}, {}, {}});

    std::vector<KernelRow> kernels = m_kernels;
    std::stable_sort(kernels.begin(), kernels.end(), [](const KernelRow& a, const KernelRow& b) {
        return std::pair(a.rank, a.startNs) < std::pair(b.rank, b.startNs);
    });
    std::vector<int64_t> kernelIds(kernels.size());
    for (size_t i = 0; i < kernels.size(); ++i) {
        const KernelRow& k = kernels[i];
        kernelIds[k.key] = static_cast<int64_t>(i) + 1;
        store::Kernel row;
        row.id = static_cast<int64_t>(i) + 1;
        row.rank = k.rank;
        row.streamId = 1 + 2 * k.rank + (k.lane == Lane::communication ? 1 : 0);
        row.startNs = k.startNs;
        row.durNs = k.durNs;
        row.nameId = out.intern(k.name);
        row.nccl = k.nccl ? store::NcclKernel::byCall : store::NcclKernel::no;
        row.gridBlocks = static_cast<uint32_t>(k.grid);
        row.blockThreads = 256;
        if (k.correlation != 0) row.correlationId = k.correlation;
        out.write(row);
    }
    std::vector<store::Memcpy> copies = m_copies;
    std::stable_sort(copies.begin(), copies.end(), [](const auto& a, const auto& b) {
        return std::pair(a.rank, a.startNs) < std::pair(b.rank, b.startNs);
    });
    for (size_t i = 0; i < copies.size(); ++i) {
        copies[i].id = static_cast<int64_t>(i) + 1;
        copies[i].streamId = 1 + 2 * copies[i].rank;
        out.write(copies[i]);
    }
    writeHostEvents(out);
    writeStreamWaits(out);
    std::vector<size_t> callOrder(m_calls.size());
    for (size_t i = 0; i < callOrder.size(); ++i) callOrder[i] = i;
    std::stable_sort(callOrder.begin(), callOrder.end(), [&](size_t a, size_t b) {
        return std::pair(m_calls[a].rank, callStart(m_calls[a])) < std::pair(m_calls[b].rank, callStart(m_calls[b]));
    });
    std::vector<int64_t> callIds(m_calls.size());
    for (size_t i = 0; i < callOrder.size(); ++i) {
        const CallRow& call = m_calls[callOrder[i]];
        callIds[callOrder[i]] = static_cast<int64_t>(i) + 1;
        store::NcclCall row;
        row.id = static_cast<int64_t>(i) + 1;
        row.rank = call.rank;
        row.communicatorId = call.communicator + 1;
        row.startNs = callStart(call);
        row.op = call.op;
        row.seq = call.seq;
        row.dataType = call.dataType;
        if (call.bytes >= 0) row.bytes = call.bytes;
        row.kernelId = kernelIds[call.kernelKey];
        row.evidence = 1;
        out.write(row);
    }
    std::vector<size_t> order(m_collectives.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return std::pair(m_collectives[a].communicator, m_collectives[a].seq) <
               std::pair(m_collectives[b].communicator, m_collectives[b].seq);
    });
    std::vector<store::CollectiveMember> members;
    for (size_t i = 0; i < order.size(); ++i) {
        const CollectiveRow& c = m_collectives[order[i]];
        const std::vector<int>& ranks = m_communicators[static_cast<size_t>(c.communicator)];
        store::Collective row;
        row.id = static_cast<int64_t>(i) + 1;
        row.communicatorId = c.communicator + 1;
        row.seq = c.seq;
        row.op = c.op;
        if (c.bytes >= 0) row.bytes = c.bytes;
        row.dataType = m_calls[c.calls.front()].dataType;
        row.algorithm = c.algorithm;
        row.protocol = c.protocol;
        row.members = static_cast<int32_t>(ranks.size());
        row.firstArrivalNs = *std::min_element(c.arrivals.begin(), c.arrivals.end());
        row.lastArrivalNs = c.lastArrivalNs;
        const size_t last =
            static_cast<size_t>(std::max_element(c.arrivals.begin(), c.arrivals.end()) - c.arrivals.begin());
        // As the collector: who was last is only told when it stands out of the clock's error.
        if (m_clockBoundNs == 0 || c.lastArrivalNs - *row.firstArrivalNs > m_clockBoundNs) row.lastRank = ranks[last];
        row.endNs = c.endNs;
        row.transferNs = c.transferNs;
        row.complete = true;
        for (const store::Step& step : m_steps)
            if (step.rank == ranks[last] && step.startNs <= c.lastArrivalNs &&
                c.lastArrivalNs < step.startNs + step.durNs)
                row.step = step.step;
        out.write(row);
        for (size_t m = 0; m < ranks.size(); ++m)
            members.push_back({row.id, ranks[m], callIds[c.calls[m]], kernelIds[m_calls[c.calls[m]].kernelKey],
                               c.arrivals[m], c.endNs - c.early[m], c.lastArrivalNs - c.arrivals[m], c.transferNs});
    }
    for (const store::CollectiveMember& member : members) out.write(member);
    int64_t id = 0;
    for (const MessageRow& m : m_messages) {
        store::P2p row;
        row.id = ++id;
        row.communicatorId = m.communicator + 1;
        row.srcRank = m.src;
        row.dstRank = m.dst;
        row.seq = id;
        row.bytes = m.bytes;
        row.sendCallId = callIds[m.sendCall];
        row.recvCallId = callIds[m.recvCall];
        row.sendArrivalNs = m.sendNs;
        row.recvArrivalNs = m.recvNs;
        row.sendEndNs = row.recvEndNs = m.endNs;
        row.sendWaitNs = std::max<int64_t>(0, m.recvNs - m.sendNs);
        row.recvWaitNs = std::max<int64_t>(0, m.sendNs - m.recvNs);
        row.transferNs = m.endNs - std::max(m.sendNs, m.recvNs);
        row.complete = true;
        out.write(row);
    }
    std::vector<store::Step> steps = m_steps;
    std::stable_sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) {
        return std::pair(a.rank, a.step) < std::pair(b.rank, b.step);
    });
    for (const store::Step& step : steps) out.write(step);
    for (const store::Loss& row : m_losses) out.write(row);
    out.finish();
}

report::Report TraceFixture::analyze() const {
    const TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "trace.db";
    write(file);
    return report::analyze(file);
}

}  // namespace rankscope::test
