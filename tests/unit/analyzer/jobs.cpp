// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/analyzer/jobs.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "analyzer/facts/operation.h"

namespace rankscope::test {
namespace {

constexpr int64_t kGap = 4 * kUs;  // launch gap

/// Durations with noise and a rank's slowness.
class Durations {
  public:
    explicit Durations(const JobShape& job) : m_job(job), m_random(job.seed) {}
    int64_t compute(int rank, double ns) {
        const auto slow = m_job.slow.find(rank);
        return noisy(ns * (slow == m_job.slow.end() ? 1 : slow->second));
    }
    int64_t noisy(double ns) {
        std::normal_distribution<double> normal(1, m_job.noise);
        return static_cast<int64_t>(ns * std::clamp(normal(m_random), 0.7, 1.3));
    }

  private:
    const JobShape& m_job;
    std::mt19937 m_random;
};

TraceFixture emptyTrace(const JobShape& job) {
    TraceFixture trace(job.ranks, job.ranksPerHost);
    const std::string rate = std::to_string(job.wire.busBytesPerNs);
    if (job.linksKnown) trace.links("intra:gbps=" + rate + ";inter:gbps=" + rate);
    return trace;
}

std::vector<int> allRanks(int count) {
    std::vector<int> ranks;
    for (int rank = 0; rank < count; ++rank) ranks.push_back(rank);
    return ranks;
}

/// Compute and communication streams of all ranks.
struct Streams {
    std::vector<int64_t> compute, communication;
    explicit Streams(int ranks)
        : compute(static_cast<size_t>(ranks), 0), communication(static_cast<size_t>(ranks), 0) {}
    void meet() {
        for (size_t r = 0; r < compute.size(); ++r)
            compute[r] = communication[r] = std::max(compute[r], communication[r]) + kGap;
    }
};

}  // namespace

double Wire::timeNs(store::Op op, double bytes, int ranks) const {
    return alphaNs + bytes * facts::busFactor(op, ranks) / busBytesPerNs;
}

TraceFixture playDdp(const DdpJob& job) {
    TraceFixture trace = emptyTrace(job);
    Durations durations(job);
    const int world = trace.communicator(allRanks(job.ranks));
    Streams at(job.ranks);
    bool slowNow = true;
    int stepsSince = 0;
    const auto run = [&](int rank, const char* name, int64_t grid, double ns) {
        const auto r = static_cast<size_t>(rank);
        if (const auto slow = job.slowKernels.find(name); slowNow && slow != job.slowKernels.end()) ns *= slow->second;
        const bool isSlow = (slowNow || job.ranksAlwaysSlow) && job.slow.contains(rank);
        if (isSlow) ns *= 1 + job.growth * stepsSince;
        const int64_t duration = isSlow ? durations.compute(rank, ns) : durations.noisy(ns);
        trace.kernel(rank, at.compute[r] + kGap, duration, name, grid);
        at.compute[r] += kGap + duration;
    };
    const auto reduce = [&](double bytes) {
        std::vector<int64_t> arrivals;
        for (size_t r = 0; r < at.compute.size(); ++r)
            arrivals.push_back(std::max(at.compute[r], at.communication[r]) + kGap);
        const Lane lane = job.buckets == Buckets::computeStream ? Lane::compute : Lane::communication;
        const int64_t transfer = durations.noisy(job.wire.timeNs(store::Op::allReduce, bytes, job.ranks));
        const int64_t end =
            trace.collective(world, store::Op::allReduce, static_cast<int64_t>(bytes), arrivals, transfer, lane);
        for (size_t r = 0; r < at.compute.size(); ++r) {
            at.communication[r] = end;
            if (lane == Lane::compute || job.buckets == Buckets::awaited) at.compute[r] = end;
        }
    };
    for (int step = 0; step < job.steps; ++step) {
        slowNow = step >= job.slowFrom && step < job.slowUntil;
        stepsSince = step - job.slowFrom;
        const std::vector<int64_t> starts = at.compute;
        for (int layer = 0; layer < job.layers; ++layer)
            for (int rank = 0; rank < job.ranks; ++rank) run(rank, "forward", 64, job.forwardNs);
        const double message = job.layerBytes / job.messagesPerLayer;
        const bool single = job.buckets == Buckets::single || (step > 0 && step <= job.singleSteps);
        for (int layer = 0; layer < job.layers; ++layer) {
            // A layer's backward is as many kernels as it sends messages.
            for (int m = 0; m < std::min(job.messagesPerLayer, 4); ++m) {
                for (int rank = 0; rank < job.ranks; ++rank)
                    run(rank, "backward", 96, 2 * job.forwardNs / std::min(job.messagesPerLayer, 4));
                const int now = job.messagesPerLayer / std::min(job.messagesPerLayer, 4);
                if (job.buckets != Buckets::afterBackward && !single)
                    for (int i = 0; i < now; ++i) reduce(message);
            }
        }
        if (job.buckets == Buckets::afterBackward)
            for (int m = 0; m < job.layers * job.messagesPerLayer; ++m) reduce(message);
        if (single) reduce(job.layers * job.layerBytes);
        at.meet();
        for (int rank = 0; rank < job.ranks; ++rank) {
            run(rank, "adam", 32, job.forwardNs / 4);
            const auto r = static_cast<size_t>(rank);
            trace.step(rank, step, starts[r], at.compute[r] - starts[r], step == 0);
        }
    }
    return trace;
}

TraceFixture playFsdp(const FsdpJob& job) {
    TraceFixture trace = emptyTrace(job);
    Durations durations(job);
    const int world = trace.communicator(allRanks(job.ranks));
    Streams at(job.ranks);
    const size_t ranks = static_cast<size_t>(job.ranks);
    const auto communicate = [&](store::Op op, bool afterCompute, const std::vector<int64_t>* notBefore) {
        std::vector<int64_t> arrivals;
        for (size_t r = 0; r < ranks; ++r) {
            int64_t ready = at.communication[r];
            if (afterCompute) ready = std::max(ready, at.compute[r]);
            if (notBefore != nullptr) ready = std::max(ready, (*notBefore)[r]);
            arrivals.push_back(ready + kGap);
        }
        const int64_t transfer = durations.noisy(job.wire.timeNs(op, job.layerBytes, job.ranks));
        const int64_t end = trace.collective(world, op, static_cast<int64_t>(job.layerBytes), arrivals, transfer);
        std::fill(at.communication.begin(), at.communication.end(), end);
        return end;
    };
    for (int step = 0; step < job.steps; ++step) {
        const std::vector<int64_t> starts = at.compute;
        const int uses = 2 * job.layers;
        std::vector<int64_t> gathered(static_cast<size_t>(uses), 0);
        std::vector<int64_t> useStart = at.compute;  // start of the use before: a prefetch is issued there
        int issued = 0;
        for (int i = 0; i < uses; ++i) {
            const auto isDue = [&](int use) {
                return !job.prefetch || !job.overlap || (job.dueEvery > 0 && use % job.dueEvery == 0);
            };
            const int until = std::min(uses, isDue(i + 1) ? i + 1 : i + 2);
            for (; issued < until; ++issued) {
                const bool first = issued == 0 || isDue(issued);
                gathered[static_cast<size_t>(issued)] = communicate(store::Op::allGather, first, &useStart);
            }
            const bool forward = i < job.layers;
            for (size_t r = 0; r < ranks; ++r) {
                const int64_t start = std::max(at.compute[r], gathered[static_cast<size_t>(i)]) + kGap;
                const int64_t duration =
                    durations.compute(static_cast<int>(r), forward ? job.forwardNs : 2 * job.forwardNs);
                trace.kernel(static_cast<int>(r), start, duration, forward ? "forward" : "backward", 64);
                useStart[r] = start;
                at.compute[r] = start + duration;
            }
            if (forward) continue;
            const int64_t end = communicate(store::Op::reduceScatter, true, nullptr);
            if (!job.overlap) std::fill(at.compute.begin(), at.compute.end(), end);
        }
        at.meet();
        for (size_t r = 0; r < ranks; ++r) {
            const int64_t duration = durations.compute(static_cast<int>(r), job.forwardNs / 4);
            trace.kernel(static_cast<int>(r), at.compute[r], duration, "adam", 32);
            at.compute[r] += duration;
            at.communication[r] = at.compute[r];
            trace.step(static_cast<int>(r), step, starts[r], at.compute[r] - starts[r], step == 0);
        }
    }
    return trace;
}

namespace {

struct Action {
    bool forward;
    int micro;
    int chunk = 0;  // virtual stage of the rank
};

/// Interleaved 1F1B as Megatron-LM orders it: groups of P micro-batches, chunk by chunk (arXiv:2104.04473).
std::vector<Action> interleavedActions(const PipelineJob& job, int stage) {
    const int total = job.microBatches * job.virtualStages;
    const int group = job.stages * job.virtualStages;
    const int ahead = std::min(total, (job.stages - stage - 1) * 2 + (job.virtualStages - 1) * job.stages);
    const auto action = [&](int k, bool forward) {
        const int chunk = k % group / job.stages;
        return Action{forward, k / group * job.stages + k % job.stages,
                      forward ? chunk : job.virtualStages - 1 - chunk};
    };
    std::vector<Action> actions;
    for (int k = 0; k < ahead; ++k) actions.push_back(action(k, true));
    for (int k = 0; k < total; ++k) {
        if (ahead + k < total) actions.push_back(action(ahead + k, true));
        actions.push_back(action(k, false));
    }
    return actions;
}

std::vector<Action> actionsOf(const PipelineJob& job, int stage) {
    if (job.virtualStages > 1) return interleavedActions(job, stage);
    std::vector<Action> actions;
    const int ahead = job.gpipe ? job.microBatches : std::min(job.microBatches, job.stages - stage);
    int forward = 0, backward = 0;
    while (forward < ahead) actions.push_back({true, forward++});
    while (backward < job.microBatches) {
        actions.push_back({false, backward++});
        if (forward < job.microBatches) actions.push_back({true, forward++});
    }
    return actions;
}

}  // namespace

TraceFixture playPipeline(const PipelineJob& job) {
    TraceFixture trace = emptyTrace(job);
    Durations durations(job);
    const int replicas = job.ranks / job.stages;
    const int chain = trace.communicator(allRanks(job.ranks));
    std::vector<int> gradients;  // communicator per stage
    for (int stage = 0; stage < job.stages && replicas > 1; ++stage) {
        std::vector<int> members;
        for (int replica = 0; replica < replicas; ++replica) members.push_back(stage * replicas + replica);
        gradients.push_back(trace.communicator(members));
    }
    std::vector<int64_t> now(static_cast<size_t>(job.ranks), 0);
    const double activationNs = job.wire.timeNs(store::Op::send, job.messageBytes, 2);
    for (int step = 0; step < job.steps; ++step) {
        const std::vector<int64_t> starts = now;
        for (int replica = 0; replica < replicas; ++replica) {
            std::vector<std::vector<Action>> todo;
            std::vector<size_t> done(static_cast<size_t>(job.stages), 0);
            // End of the compute that a neighbour waits for; -1: not yet.
            const auto table = [&] {
                return std::vector<std::vector<int64_t>>(
                    static_cast<size_t>(job.stages * job.virtualStages),
                    std::vector<int64_t>(static_cast<size_t>(job.microBatches), -1));
            };
            auto forwardEnd = table();
            auto backwardEnd = table();
            for (int stage = 0; stage < job.stages; ++stage) todo.push_back(actionsOf(job, stage));
            for (bool moved = true; moved;) {
                moved = false;
                for (int stage = 0; stage < job.stages; ++stage) {
                    const auto s = static_cast<size_t>(stage);
                    const int rank = stage * replicas + replica;
                    const auto r = static_cast<size_t>(rank);
                    if (done[s] == todo[s].size()) continue;
                    const Action action = todo[s][done[s]];
                    const auto m = static_cast<size_t>(action.micro);
                    // Stages as the model sees them: chunk c of stage s holds the layers of place c P + s.
                    const int place = action.chunk * job.stages + stage;
                    const int from = action.forward ? place - 1 : place + 1;
                    const bool receives = from >= 0 && from < job.stages * job.virtualStages;
                    int64_t input = 0;
                    if (receives) {
                        input = (action.forward ? forwardEnd : backwardEnd)[static_cast<size_t>(from)][m];
                        if (input < 0) continue;
                        now[r] = trace.message(chain, from % job.stages * replicas + replica, rank,
                                               static_cast<int64_t>(job.messageBytes), input + kGap, now[r] + kGap,
                                               durations.noisy(activationNs));
                    }
                    const auto heavy = job.heavy.find(stage);
                    const double work = (action.forward ? 1 : 2) * job.forwardNs *
                                        (heavy == job.heavy.end() ? 1 : heavy->second) / job.virtualStages;
                    const int layers = job.head && place + 1 == job.stages * job.virtualStages ? 3 : 2;
                    for (int layer = 0; layer < layers; ++layer) {
                        const int64_t duration = durations.compute(rank, work / 2);
                        trace.kernel(rank, now[r] + kGap, duration, action.forward ? "forward" : "backward",
                                     heavy == job.heavy.end() ? 64 : 128);
                        now[r] += kGap + duration;
                    }
                    (action.forward ? forwardEnd : backwardEnd)[static_cast<size_t>(place)][m] = now[r];
                    ++done[s];
                    moved = true;
                }
            }
        }
        for (size_t stage = 0; stage < gradients.size(); ++stage) {
            std::vector<int64_t> arrivals;
            for (int replica = 0; replica < replicas; ++replica)
                arrivals.push_back(now[stage * static_cast<size_t>(replicas) + static_cast<size_t>(replica)] + kGap);
            const int64_t end =
                trace.collective(gradients[stage], store::Op::allReduce, static_cast<int64_t>(job.layerBytes), arrivals,
                                 durations.noisy(job.wire.timeNs(store::Op::allReduce, job.layerBytes, replicas)));
            for (int replica = 0; replica < replicas; ++replica)
                now[stage * static_cast<size_t>(replicas) + static_cast<size_t>(replica)] = end;
        }
        for (int rank = 0; rank < job.ranks; ++rank) {
            const auto r = static_cast<size_t>(rank);
            const int64_t duration = durations.compute(rank, job.forwardNs / 4);
            trace.kernel(rank, now[r] + kGap, duration, "adam", 32);
            now[r] += kGap + duration;
        }
        // The host synchronises at the end of the step, each rank for itself.
        for (int rank = 0; rank < job.ranks; ++rank) {
            const auto r = static_cast<size_t>(rank);
            trace.step(rank, step, starts[r], now[r] - starts[r], step == 0);
        }
    }
    return trace;
}

}  // namespace rankscope::test
