// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/gradient_curve.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "analyzer/facts/statistics.h"

namespace rankscope::edits {
namespace {

// What kernels of both sides count against a turn. Beyond the true one the shorter side grows by kernels that the
// longer one has more of: at 1 that costs nothing, at 2 as much as it gains, and a turn where they are half is none.
constexpr double kMixed = 2;
constexpr double kOpenKernel = 0.3;  // a kernel that never ends a bucket makes less than its share by time: some make
                                     // no gradients of weights at all
constexpr int kRounds = 60;          // of fitting bytes per kernel: the error halves in each, as a rule
constexpr double kClose = 1e-6;      // of a cap: rounding of sums

uint32_t keyOf(const TaskGraph& graph, const ComputeLane& compute, int64_t i) {
    return graph.info[compute.at(i)].detail;
}
double timeOf(const TaskGraph& graph, const ComputeLane& compute, int64_t i) {
    return static_cast<double>(graph.durationNs[compute.at(i)]);
}

/// First kernel of the step that `last` belongs to.
int64_t stepBegin(const TaskGraph& graph, const ComputeLane& compute, int64_t last) {
    const int step = graph.info[compute.at(last)].step;
    while (last > 0 && graph.info[compute.at(last - 1)].step == step) --last;
    return last;
}

/// Where the kernels of [from, last] change most: forward before, backward behind. -1: they do not.
int64_t turningPoint(const TaskGraph& graph, const ComputeLane& compute, int64_t from, int64_t last) {
    std::map<uint32_t, double> before, behind;
    double beforeNs = 0, behindNs = 0, sharedNs = 0, best = 0;
    for (int64_t i = from; i <= last; ++i) {
        behind[keyOf(graph, compute, i)] += timeOf(graph, compute, i);
        behindNs += timeOf(graph, compute, i);
    }
    int64_t found = -1;
    for (int64_t i = from; i < last; ++i) {
        const uint32_t key = keyOf(graph, compute, i);
        const double time = timeOf(graph, compute, i);
        sharedNs -= std::min(before[key], behind[key]);
        before[key] += time;
        behind[key] -= time;
        sharedNs += std::min(before[key], behind[key]);
        beforeNs += time;
        behindNs -= time;
        const double parted = std::min(beforeNs, behindNs) - kMixed * sharedNs;
        if (parted <= best) continue;
        best = parted;
        found = i + 1;
    }
    return found;
}

/// First kernel that makes gradients of this round.
int64_t backwardBegin(const TaskGraph& graph, const ComputeLane& compute, const std::vector<int64_t>& ready) {
    const int64_t from = stepBegin(graph, compute, ready.back());
    if (ready.front() == ready.back()) return turningPoint(graph, compute, from, ready.back());
    // Layers are alike: what made the later buckets makes the first one, too.
    std::set<uint32_t> keys;
    for (int64_t i = ready.front(); i <= ready.back(); ++i) keys.insert(keyOf(graph, compute, i));
    int64_t first = ready.front();
    while (first > from && keys.contains(keyOf(graph, compute, first - 1))) --first;
    return first;
}

struct Stretch {
    int64_t first = 0;  // kernels [first, last]
    int64_t last = 0;
    double bytes = 0;
    std::map<size_t, int> kernels;  // of each kind that it has: how many
};

/// The kinds of kernels of a backward pass, by number: names and shapes in the order of their keys.
struct KernelKinds {
    std::vector<size_t> of;  // by kernel, from the first one of the pass
    size_t count = 0;

    KernelKinds(const TaskGraph& graph, const ComputeLane& compute, int64_t first, int64_t last) {
        std::map<uint32_t, size_t> kinds;
        for (int64_t i = first; i <= last; ++i) kinds[keyOf(graph, compute, i)] = 0;
        for (auto& [key, kind] : kinds) kind = count++;
        for (int64_t i = first; i <= last; ++i) of.push_back(kinds.at(keyOf(graph, compute, i)));
    }
};

}  // namespace

std::optional<GradientCurve> GradientCurve::of(const TaskGraph& graph, const ComputeLane& compute,
                                               const GradientRound& round, const RoundMember& member) {
    const std::vector<int64_t>& ready = member.ready;
    if (ready.empty() || ready.front() < 0) return std::nullopt;
    GradientCurve curve;
    curve.m_first = backwardBegin(graph, compute, ready);
    if (curve.m_first < 0) return std::nullopt;
    std::vector<Stretch> stretches;
    for (size_t i = 0; i < ready.size(); ++i) {
        if (stretches.empty() || ready[i] > stretches.back().last)
            stretches.push_back({stretches.empty() ? curve.m_first : stretches.back().last + 1, ready[i], 0, {}});
        stretches.back().bytes += round.bytes[i];
    }
    const KernelKinds kinds(graph, compute, curve.m_first, stretches.back().last);
    const auto kindOf = [&](int64_t kernel) { return kinds.of[static_cast<size_t>(kernel - curve.m_first)]; };
    std::vector<double> ofKind(kinds.count, 0);  // bytes that a kernel of it makes
    std::vector<int> counts(kinds.count, 0);
    for (Stretch& stretch : stretches) {
        for (int64_t i = stretch.first; i <= stretch.last; ++i) {
            ofKind[kindOf(i)] += kOpenKernel * timeOf(graph, compute, i);
            ++counts[kindOf(i)];
            ++stretch.kernels[kindOf(i)];
        }
    }
    for (size_t kind = 0; kind < kinds.count; ++kind) ofKind[kind] /= counts[kind];
    if (stretches.size() > 1)
        for (const Stretch& stretch : stretches)
            if (int& count = counts[kindOf(stretch.last)]; count > 0) {
                ofKind[kindOf(stretch.last)] /= kOpenKernel;
                count = 0;  // once
            }
    const auto sumOf = [&](const Stretch& stretch) {
        double sum = 0;
        for (const auto& [kind, count] : stretch.kernels) sum += count * ofKind[kind];
        return sum;
    };
    // Iterative proportional fitting (Deming and Stephan 1940), damped: kinds are shared by stretches.
    bool moved = true;
    for (int turn = 0; turn < kRounds && moved; ++turn) {
        moved = false;
        for (const Stretch& stretch : stretches) {
            const double sum = sumOf(stretch);
            if (sum <= 0) continue;
            const double factor = stretch.bytes / sum;
            moved = moved || factor != 1;
            for (const auto& [kind, count] : stretch.kernels) ofKind[kind] *= factor;
        }
    }
    double done = 0;
    curve.m_sent = round.ends();
    for (const Stretch& stretch : stretches) {
        const double sum = sumOf(stretch);
        for (int64_t i = stretch.first; i <= stretch.last; ++i) {
            const double share = sum > 0 ? ofKind[kindOf(i)] / sum : (i == stretch.last ? 1 : 0);
            curve.m_bytes.push_back((curve.m_bytes.empty() ? 0 : curve.m_bytes.back()) + stretch.bytes * share);
        }
        done += stretch.bytes;
        curve.m_bytes.back() = done;
    }
    return curve;
}

std::vector<double> GradientCurve::plan(double most, TensorEnds tensors) const {
    // Where a present bucket ends a tensor ends, even if several leave behind one kernel.
    std::vector<double> tensorEnds = m_sent;
    if (tensors != TensorEnds::known) {
        tensorEnds.insert(tensorEnds.end(), m_bytes.begin(), m_bytes.end());
        std::ranges::sort(tensorEnds);
    }
    std::vector<double> ends;
    double begin = 0;
    for (double bytes : tensorEnds) {
        const auto capOf = [&] { return ends.empty() ? std::min(kMebi, most) : most; };
        while (tensors == TensorEnds::anywhere && bytes - begin >= capOf()) ends.push_back(begin += capOf());
        if (bytes - begin < capOf() * (1 - kClose)) continue;
        ends.push_back(begin = bytes);
    }
    if (ends.empty() || m_bytes.back() - begin > kClose * m_bytes.back())
        ends.push_back(m_bytes.back());
    else
        ends.back() = m_bytes.back();
    return ends;
}

int64_t GradientCurve::readyAt(double bytes) const {
    // The same tensors end at the same bytes on every rank, up to how their kernels' times differ: the nearest one.
    const auto above = std::ranges::lower_bound(m_bytes, bytes);
    if (above == m_bytes.end()) return last();
    const bool nearer = above == m_bytes.begin() || *above - bytes <= bytes - *(above - 1);
    return m_first + (above - m_bytes.begin()) - (nearer ? 0 : 1);
}

FirstUse firstUse(const TaskGraph& graph, const ComputeLane& compute, const std::vector<TaskId>& transfers) {
    const auto behind = std::ranges::lower_bound(compute.kernels, transfers.front());
    for (size_t i = static_cast<size_t>(behind - compute.kernels.begin()); i < compute.kernels.size(); ++i) {
        bool waits = false;
        // A copy in front of the kernel may be what waits: what reads the loss back, where parameters are there at the
        // end of the step.
        for (TaskId task = compute.kernels[i];
             task != kNoTask && task > transfers.front() && (i == 0 || task != compute.kernels[i - 1]);
             task = graph.before[task]) {
            for (const Edge& edge : graph.edgesOf(task, WaitKind::event)) {
                if (edge.from == transfers.back())
                    return {static_cast<int64_t>(i), true};  // the last one of its stream: for those before it, too
                waits = waits || std::ranges::find(transfers, edge.from) != transfers.end();
            }
        }
        if (waits) return {static_cast<int64_t>(i), false};
    }
    return {};
}

std::optional<BackwardWait> backwardWait(const TaskGraph& graph, const ComputeLane& compute,
                                         const RoundMember& member) {
    std::map<TaskId, size_t> open;  // transfers that nothing was seen to wait for
    for (size_t i = 0; i < member.transfers.size(); ++i) open.emplace(member.transfers[i], i);
    std::vector<double> buckets, kernels;  // by bucket that is awaited
    for (int64_t use = std::max<int64_t>(0, member.ready.front()) + 1; use <= member.ready.back(); ++use)
        for (TaskId task = compute.at(use); task != kNoTask && task != compute.at(use - 1); task = graph.before[task])
            for (const Edge& edge : graph.edgesOf(task, WaitKind::event)) {
                const auto awaited = open.find(edge.from);
                if (awaited == open.end()) continue;
                const auto next = std::ranges::lower_bound(member.ready, use) - member.ready.begin();
                const size_t last = std::max(awaited->second, static_cast<size_t>(next) - 1);
                buckets.push_back(static_cast<double>(last - awaited->second));
                kernels.push_back(static_cast<double>(use - member.ready[last]));
                open.erase(awaited);
            }
    // The last one is awaited behind all gradients, whatever the framework does.
    if (buckets.empty() || 2 * buckets.size() + 1 < member.transfers.size()) return std::nullopt;
    return BackwardWait{static_cast<size_t>(facts::median(std::move(buckets))),
                        std::max<int64_t>(1, static_cast<int64_t>(facts::median(std::move(kernels))))};
}

std::vector<int64_t> parameterUses(const ComputeLane& compute, int64_t firstUse, const std::vector<double>& ends,
                                   const GradientCurve& curve) {
    const auto doneBy = [&](int64_t kernel) { return static_cast<double>(compute.doneBy(kernel)); };
    const double beginNs = doneBy(curve.first() - 1), backwardNs = doneBy(curve.last()) - beginNs;
    const double forwardNs = beginNs - doneBy(firstUse - 1);
    std::vector<int64_t> uses;
    double begin = 0;
    for (double end : ends) {
        const double behind = curve.totalBytes() * (1 - begin / ends.back());
        const double done = doneBy(curve.readyAt(behind)) - beginNs;
        const double neededNs = doneBy(firstUse - 1) + forwardNs * (1 - done / backwardNs);
        int64_t kernel = uses.empty() ? firstUse : uses.back();
        while (kernel + 1 < curve.first() && doneBy(kernel) <= neededNs) ++kernel;
        uses.push_back(kernel);
        begin = end;
    }
    return uses;
}

}  // namespace rankscope::edits
