// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/gradient_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "analyzer/edits/edit.h"
#include "analyzer/facts/comm_usage.h"
#include "analyzer/facts/layout.h"

namespace rankscope::edits {
namespace {

constexpr double kSpacing =
    0.1;  // rounds of one step begin this evenly in its compute: they are micro-steps of the same work
constexpr size_t kMostRounds = 128;  // per step tried

/// By arrival: the last compute kernel of its rank that its stream was told to wait for, as index into
/// ComputeLane::kernels; -1: none.
std::vector<int64_t> readyKernels(const TaskGraph& graph, const LaunchIndex& index) {
    std::vector<int64_t> ready(graph.size(), -1);
    std::vector<int64_t> ofLane(graph.lanes.size(), -1);
    for (TaskId task = 0; task < graph.size(); ++task) {
        if (graph.info[task].kind != TaskKind::arrival) continue;
        const uint32_t lane = graph.info[task].lane;
        const ComputeLane& compute = index.compute(graph.lanes[lane].rank);
        bool told = false;
        for (const Edge& edge : graph.edgesOf(task, WaitKind::event)) {
            const int64_t at = compute.find(edge.from);
            told = told || at >= 0;
            ofLane[lane] = std::max(ofLane[lane], at);
        }
        const TaskId launch = index.launchOf(task);
        // Where nothing is said about waits on this stream: what had been launched before.
        const bool unknown = !told && ofLane[lane] < 0 && launch != kNoTask;
        ready[task] = unknown ? index.launchedBefore(compute, launch) - 1 : ofLane[lane];
    }
    return ready;
}

bool sameSizes(const std::vector<double>& bytes, size_t period) {
    return std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(period), bytes.end(), bytes.begin());
}

/// The places behind the buckets that end each of `count` parts of as many bytes; empty: there are none. DDP sends all
/// gradients of its very first micro-step in one bucket.
std::vector<size_t> equalParts(const std::vector<double>& bytes, size_t count) {
    const double total = std::accumulate(bytes.begin(), bytes.end(), 0.0);
    std::vector<size_t> ends;
    double sum = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
        sum += bytes[i];
        if (sum * static_cast<double>(count) == total * static_cast<double>(ends.size() + 1)) ends.push_back(i + 1);
    }
    return ends.size() == count ? ends : std::vector<size_t>();
}

/// The parts are ready one after the other in equal shares of the step's compute: micro-steps.
bool evenlySpaced(const GradientRound& round, const ComputeLane& compute, int64_t beginNs,
                  const std::vector<size_t>& ends) {
    const std::vector<int64_t>& ready = round.members.front().ready;
    if (ready.front() < 0) return false;
    const auto progress = [&](size_t i) { return static_cast<double>(compute.doneBy(ready[i]) - beginNs); };
    const double micro = progress(ready.size() - 1) / static_cast<double>(ends.size());
    double before = progress(ends.front() - 1);
    if (micro <= 0 || before > micro * (1 + kSpacing)) return false;
    for (size_t part = 1; part < ends.size(); ++part) {
        const double now = progress(ends[part] - 1);
        if (std::abs(now - before - micro) > kSpacing * micro) return false;
        before = now;
    }
    return true;
}

GradientRound part(const GradientRound& whole, size_t first, size_t count) {
    const auto cut = [&](auto& values) {
        values.assign(values.begin() + static_cast<std::ptrdiff_t>(first),
                      values.begin() + static_cast<std::ptrdiff_t>(first + count));
    };
    GradientRound round = whole;
    cut(round.exchanges);
    cut(round.bytes);
    for (RoundMember& member : round.members) {
        cut(member.arrivals);
        cut(member.transfers);
        cut(member.launches);
        cut(member.ready);
    }
    return round;
}

class Reader {
  public:
    Reader(const TaskGraph& graph, const Analysis& analysis, const LaunchIndex& index)
        : m_graph(graph), m_analysis(analysis), m_index(index), m_ready(readyKernels(graph, index)) {}

    std::vector<GradientRound> read() {
        std::map<std::tuple<int64_t, store::Op, int>, std::vector<uint32_t>> found;
        for (uint32_t i = 0; i < m_graph.exchanges.size(); ++i) {
            const Exchange& exchange = m_graph.exchanges[i];
            if (exchange.join == kNoTask || exchange.bytes < facts::CommUsage::kTinyBytes) continue;
            if (exchange.op != store::Op::allReduce && exchange.op != store::Op::reduceScatter &&
                exchange.op != store::Op::allGather)
                continue;
            if (m_analysis.layout.role(exchange.communicatorId, exchange.op) != facts::CommRole::gradients) continue;
            found[{exchange.communicatorId, exchange.op, exchange.step}].push_back(i);
        }
        for (auto& [who, exchanges] : found) add(std::move(exchanges));
        return std::move(m_rounds);
    }

  private:
    void add(std::vector<uint32_t> exchanges) {
        int64_t largest = 0;
        for (uint32_t i : exchanges) largest = std::max(largest, m_graph.exchanges[i].bytes);
        std::erase_if(exchanges,
                      [&](uint32_t i) { return m_graph.exchanges[i].bytes * facts::CommUsage::kTinyShare < largest; });
        const auto arrivalOf = [&](uint32_t i) { return m_graph.membersOf(m_graph.exchanges[i]).front().arrival; };
        std::ranges::sort(exchanges, {}, arrivalOf);
        const Exchange& first = m_graph.exchanges[exchanges.front()];
        GradientRound round{first.communicatorId, first.op, first.step, exchanges, {}, {}};
        for (const ExchangeMember& member : m_graph.membersOf(first))
            round.members.push_back({member.rank, {}, {}, {}, {}});
        for (uint32_t i : exchanges) {
            const auto members = m_graph.membersOf(m_graph.exchanges[i]);
            if (members.size() != round.members.size())
                throw EditError(
                    fmt::format("a reduction of {} lacks members",
                                facts::communicatorName(m_analysis.facts, m_analysis.layout, round.communicator)));
            round.bytes.push_back(static_cast<double>(m_graph.exchanges[i].bytes));
            for (size_t m = 0; m < members.size(); ++m) {
                RoundMember& member = round.members[m];
                member.arrivals.push_back(members[m].arrival);
                member.transfers.push_back(members[m].transfer);
                member.launches.push_back(m_index.launchOf(members[m].arrival));
                member.ready.push_back(m_ready[members[m].arrival]);
            }
        }
        size_t begin = 0;
        for (size_t end : roundEnds(round)) {
            m_rounds.push_back(part(round, begin, end - begin));
            begin = end;
        }
    }

    /// A pipeline rank has as many sets of buckets as virtual stages, and every micro-step without no_sync sends them
    /// again.
    std::vector<size_t> roundEnds(const GradientRound& round) const {
        const size_t count = round.bytes.size();
        const int rank = round.members.front().rank;
        const facts::Pipeline* pipeline = m_analysis.layout.pipelineOf(rank);
        const size_t chunks = pipeline != nullptr ? static_cast<size_t>(std::max(1, pipeline->virtualStages)) : 1;
        const ComputeLane& compute = m_index.compute(rank);
        int64_t beginNs = 0;
        for (size_t i = 0; i < compute.kernels.size() && m_graph.info[compute.kernels[i]].step < round.step; ++i)
            beginNs = compute.doneNs[i];
        for (size_t k = std::min(count, kMostRounds); k >= 2; --k)
            if (std::vector<size_t> ends = equalParts(round.bytes, k);
                !ends.empty() && evenlySpaced(round, compute, beginNs, ends))
                return ends;
        std::vector<size_t> ends;
        if (chunks > 1 && count % chunks == 0 && sameSizes(round.bytes, count / chunks))
            for (size_t chunk = 1; chunk < chunks; ++chunk) ends.push_back(chunk * count / chunks);
        ends.push_back(count);
        return ends;
    }

    const TaskGraph& m_graph;
    const Analysis& m_analysis;
    const LaunchIndex& m_index;
    std::vector<int64_t> m_ready;
    std::vector<GradientRound> m_rounds;
};

}  // namespace

std::vector<double> GradientRound::ends() const {
    std::vector<double> ends(bytes.size());
    std::partial_sum(bytes.begin(), bytes.end(), ends.begin());
    return ends;
}

bool GradientRound::late() const {
    const std::vector<int64_t>& ready = members.front().ready;
    return ready.size() > 1 && ready.front() == ready.back();
}

std::vector<GradientRound> gradientRounds(const TaskGraph& graph, const Analysis& analysis, const LaunchIndex& index) {
    return Reader(graph, analysis, index).read();
}

}  // namespace rankscope::edits
