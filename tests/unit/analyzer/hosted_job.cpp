// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/analyzer/hosted_job.h"

#include <algorithm>
#include <random>

namespace rankscope::test {
namespace {

constexpr int64_t kLatency = 6 * kUs;  // from a launch to the kernel's start on an idle device

/// One rank: its host thread and its compute stream.
class HostedPlayer {
  public:
    HostedPlayer(const HostedJob& job, TraceFixture& trace, int rank)
        : m_job(job), m_trace(trace), m_rank(rank), m_random(job.seed * 100 + static_cast<unsigned>(rank)) {}

    bool troubled() const { return m_job.troubled.empty() || m_job.troubled.count(m_rank) != 0; }
    void work(double ns) { m_hostNs += static_cast<int64_t>(ns); }

    void launch(const char* name, int64_t grid, double ns) {
        const auto slow = m_job.slow.find(m_rank);
        std::normal_distribution<double> noise(1, m_job.noise);
        const auto duration = static_cast<int64_t>(ns * (slow == m_job.slow.end() ? 1 : slow->second) *
                                                   std::clamp(noise(m_random), 0.7, 1.3));
        const auto callNs = static_cast<int64_t>(m_job.launchNs);
        const int64_t startNs = std::max(m_deviceNs, m_hostNs + callNs + kLatency);
        if (m_job.hostRecorded) {
            m_trace.launchedKernel(m_rank, startNs, duration, name, grid, m_hostNs, callNs);
        } else {
            m_trace.kernel(m_rank, startNs, duration, name, grid);
        }
        m_hostNs += callNs;
        m_deviceNs = startNs + duration;
    }

    void wait(const char* name, store::ApiKind kind, double ownNs) {
        const int64_t endNs = std::max(m_hostNs, m_deviceNs) + static_cast<int64_t>(ownNs);
        if (m_job.hostRecorded) m_trace.call(m_rank, m_hostNs, endNs - m_hostNs, name, kind);
        m_hostNs = endNs;
    }

    void call(const char* name, double ns) {
        if (m_job.hostRecorded) m_trace.call(m_rank, m_hostNs, static_cast<int64_t>(ns), name, store::ApiKind::event);
        m_hostNs += static_cast<int64_t>(ns);
    }

    void allocate() {
        const auto ns = static_cast<int64_t>(m_job.allocatorNs);
        if (m_job.hostRecorded) m_trace.call(m_rank, m_hostNs, ns, "cudaMalloc", store::ApiKind::allocate);
        m_hostNs += ns;
    }

    void copyPageable(double bytes) {
        const int64_t startNs = std::max(m_deviceNs, m_hostNs + kLatency);
        const auto duration = static_cast<int64_t>(bytes / 10);
        m_trace.hostCopy(m_rank, startNs, duration, static_cast<int64_t>(bytes), true, m_hostNs,
                         startNs + duration + 2 * kUs - m_hostNs);
        m_deviceNs = startNs + duration;
        m_hostNs = m_deviceNs + 2 * kUs;
    }

    void copyPinned(double bytes) {
        const int64_t callNs = 2 * kUs, startNs = std::max(m_deviceNs, m_hostNs + callNs + kLatency);
        const auto duration = kUs + static_cast<int64_t>(bytes / 25);
        m_trace.hostCopy(m_rank, startNs, duration, static_cast<int64_t>(bytes), false, m_hostNs, callNs);
        m_deviceNs = startNs + duration;
        m_hostNs += callNs;
    }

    int64_t hostNs() const { return m_hostNs; }
    int64_t deviceNs() const { return m_deviceNs; }
    void deviceBusyUntil(int64_t ns) { m_deviceNs = ns; }

  private:
    const HostedJob& m_job;
    TraceFixture& m_trace;
    int m_rank;
    std::mt19937 m_random;
    int64_t m_hostNs = 0, m_deviceNs = 0;
};

/// Host trouble spread over the launches of a step.
void trouble(const HostedJob& job, HostedPlayer& player, int step, int launch, int launches) {
    if (!player.troubled()) return;
    const auto due = [&](int perStep) {
        return perStep > 0 && (launch + 1) * perStep / launches > launch * perStep / launches;
    };
    if (due(job.readsPerStep)) {
        if (job.copiesInput) player.copyPinned(4096);
        player.wait(job.readCall, store::ApiKind::synchronize, 2e3);
        player.work(job.readNs);
    }
    if (due(job.poolFills ? job.releasesPerStep >> step : job.releasesPerStep)) {
        player.wait("cudaFree", store::ApiKind::free, job.allocatorNs);
        player.allocate();
    }
    if (job.pageableBytes > 0 && launch == launches / 2) player.copyPageable(job.pageableBytes);
}

/// The small calls around a launch, in one of which a starved host stands still.
void smallCalls(const HostedJob& job, HostedPlayer& player, int rank, int step, int launch, int launches) {
    constexpr const char* kNames[] = {"cudaEventRecord",       "cudaEventQuery",      "cudaFuncSetAttribute",
                                      "cudaStreamGetPriority", "cudaPeekAtLastError", "cudaGetDevice"};
    bool pauses = false;
    for (int k = 0; k < job.pausesPerStep; ++k)
        pauses = pauses || launch == (5 * step + 7 * k + (job.pauseTogether ? 0 : 11 * rank)) % launches;
    const int which =
        job.pauseInOneCall ? 0 : (2 * step + launch) % 6;  // another one each time, whatever the launches of a step are
    for (int i = 0; i < 6; ++i)
        player.call(kNames[i], pauses && i == which && job.starved.count(rank) != 0 ? job.pauseNs : 2e3);
}

}  // namespace

TraceFixture playHosted(const HostedJob& job) {
    TraceFixture trace(job.ranks, job.ranksPerHost);
    std::vector<int> ranks;
    std::vector<HostedPlayer> players;
    for (int rank = 0; rank < job.ranks; ++rank) {
        ranks.push_back(rank);
        players.emplace_back(job, trace, rank);
    }
    const int world = trace.communicator(ranks);
    for (int step = 0; step < job.steps; ++step) {
        std::vector<int64_t> starts, arrivals;
        for (int rank = 0; rank < job.ranks; ++rank) {
            HostedPlayer& player = players[static_cast<size_t>(rank)];
            starts.push_back(player.hostNs());
            const auto late = job.lateInputs.find(step);
            const double input = !player.troubled() ? 20e3 : late != job.lateInputs.end() ? late->second : job.inputNs;
            if (job.inputInRange) trace.range(rank, player.hostNs(), static_cast<int64_t>(input), "next_batch");
            player.work(input);
            const auto fewer = job.fewerPieces.find(rank);
            for (int piece = 0;
                 piece < (fewer == job.fewerPieces.end() ? job.pieces : fewer->second) && player.troubled(); ++piece)
                player.launch("piece", 1, 2e3);
            const auto pause = job.pauses.find(step);
            double share = 0;
            for (int key : {-1, step}) {
                const auto extra = job.extraWork.find(key);
                if (extra != job.extraWork.end() && extra->second.first == rank) share = extra->second.second;
            }
            const int launches = 3 * job.layers;
            for (int launch = 0; launch < launches; ++launch) {
                if (launch == 1 && pause != job.pauses.end() && pause->second.first == rank)
                    player.work(pause->second.second);
                if (!job.starved.empty()) smallCalls(job, player, rank, step, launch, launches);
                player.launch(launch < job.layers ? "forward" : "backward",
                              share > 0 ? static_cast<int64_t>(64 * (1 + share)) : 64, job.forwardNs * (1 + share));
                trouble(job, player, step, launch, launches);
            }
            arrivals.push_back(player.deviceNs() + 4 * kUs);
        }
        const auto transfer = static_cast<int64_t>(job.wire.timeNs(store::Op::allReduce, job.layerBytes, job.ranks));
        const int64_t end =
            trace.collective(world, store::Op::allReduce, static_cast<int64_t>(job.layerBytes), arrivals, transfer);
        for (int rank = 0; rank < job.ranks; ++rank) {
            HostedPlayer& player = players[static_cast<size_t>(rank)];
            player.deviceBusyUntil(end);
            player.launch("adam", 32, job.forwardNs / 4);
            player.wait("cudaStreamSynchronize", store::ApiKind::synchronize, 2e3);  // the loss
            trace.step(rank, step, starts[static_cast<size_t>(rank)],
                       player.hostNs() - starts[static_cast<size_t>(rank)], step == 0);
        }
    }
    return trace;
}

std::string notedIn(const report::Report& report) {
    std::string text;
    for (const job::Finding& f : report.notes) text += (text.empty() ? "" : " ") + f.id;
    return text;
}

const job::Finding* findingOf(const report::Report& report, const std::string& id) {
    for (const job::Finding& f : report.findings)
        if (f.id == id) return &f;
    return nullptr;
}

}  // namespace rankscope::test
