// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/link_probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyzer/costs/reached_share.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::job {
namespace {

/// Kinks of published tables, whose sizes are powers of two, lie from 32 KiB to 64 MiB: of messages of 64 MiB to the
/// nearest power of two, as a bucket of bucket_cap_mb=64 is, which holds some kilobytes more.
constexpr int kLastKinkOctave = 26;

/// Bytes of a rank's kernel of messages, out and in, by class of links.
struct Load {
    int64_t out[2] = {0, 0};  // inside the node, to other nodes
    int64_t in[2] = {0, 0};
    int64_t busiest(bool across) const { return std::max(out[across], in[across]); }
};

using Loads = std::map<std::pair<int, int64_t>, Load>;  // by rank and start of the kernel

Loads loadsOf(const Analysis& analysis) {
    Loads loads;
    for (const store::P2p& row : analysis.facts.pointToPoint) {
        if (!row.bytes || !row.sendArrivalNs || !row.recvArrivalNs ||
            analysis.layout.role(row.communicatorId, store::Op::send) != facts::CommRole::experts)
            continue;
        const bool across = !analysis.facts.sameHost({row.srcRank, row.dstRank});
        loads[{row.srcRank, *row.sendArrivalNs}].out[across] += *row.bytes;
        loads[{row.dstRank, *row.recvArrivalNs}].in[across] += *row.bytes;
    }
    return loads;
}

/// What a kernel's messages take at peak: of start-up, and in all. Nothing where a link's peak is unknown.
struct AtPeak {
    double startupNs = 0;
    double ns = 0;
};
std::optional<AtPeak> atPeak(const costs::LinkPeaks& peaks, const Load& load) {
    AtPeak result;
    for (const bool across : {false, true}) {
        if (load.busiest(across) == 0) continue;
        const std::optional<costs::LinkModel> link =
            costs::linkToCompare(peaks, costs::pairOfRanks(across), store::Op::send);
        if (!link) return std::nullopt;
        const double ns = link->alphaNs + static_cast<double>(load.busiest(across)) / link->bytesPerNs;
        if (ns > result.ns) result = {link->alphaNs, ns};
    }
    return result;
}

/// What a probe is to be made of.
struct Samples {
    LinkProbe probe;  // but for the numbers
    std::vector<double> slowness, rates;

    bool enough() const { return slowness.size() >= CollectiveSpeedThresholds::kFewest; }
    /// `unit`: the slowness that counts as 1; times it the peak is what the expectation rests on.
    LinkProbe measured(double unit = 1) const {
        LinkProbe result = probe;
        result.samples = slowness.size();
        result.slowness = facts::median(slowness) / unit;
        result.busBytesPerNs = facts::median(rates);
        result.peakBytesPerNs /= unit;
        return result;
    }
};

class Reader {
  public:
    Reader(const Analysis& analysis, const facts::Communicator& communicator, const Loads& loads)
        : m_analysis(analysis), m_communicator(communicator), m_loads(loads) {
        for (int rank : communicator.ranks)
            if (const facts::RankSummary* summary = analysis.findRank(rank)) m_ranks.push_back(summary);
        for (const facts::RankSummary* rank : m_ranks) m_disturbed.merge(disturbedTasks(*rank));
    }

    Samples read() const {
        Samples result{{.communicatorId = m_communicator.id,
                        .betweenNodes = m_communicator.nodes > 1,
                        .ranks = m_communicator.ranks}};
        if (m_ranks.size() != static_cast<size_t>(m_communicator.size)) return result;
        std::vector<std::map<int, Kernels>> byStep;
        for (const facts::RankSummary* rank : m_ranks) byStep.push_back(kernelsOf(*rank));
        for (int step : m_analysis.steps) {
            std::vector<Kernels> kernels;
            for (auto& steps : byStep) kernels.push_back(std::move(steps[step]));
            if (std::ranges::any_of(kernels, [&](const Kernels& own) { return own.size() != kernels.front().size(); }))
                continue;
            for (size_t k = 0; k < kernels.front().size(); ++k) add(kernels, k, result);
        }
        return result;
    }

  private:
    using Kernels = std::vector<const facts::CommTask*>;

    std::map<int, Kernels> kernelsOf(const facts::RankSummary& rank) const {
        std::map<int, Kernels> kernels;
        for (const facts::CommTask& task : rank.communication)
            if (task.communicatorId == m_communicator.id && task.pointToPoint()) kernels[task.step].push_back(&task);
        return kernels;
    }

    /// The k-th kernel of all members. The one that was done first tells how fast all were.
    void add(const std::vector<Kernels>& kernels, size_t k, Samples& result) const {
        AtPeak expected;
        int64_t bytes = 0;
        double ns = 0;
        for (size_t m = 0; m < m_ranks.size(); ++m) {
            const facts::CommTask& task = *kernels[m][k];
            const auto load = m_loads.find({m_ranks[m]->rank, task.startNs});
            if (load == m_loads.end() || !task.waitKnown || task.transferNs() <= 0 || m_disturbed.count(&task) != 0)
                return;
            const std::optional<AtPeak> own = atPeak(m_analysis.peaks, load->second);
            if (!own) return;
            if (own->ns > expected.ns) expected = *own;
            bytes = std::max({bytes, load->second.busiest(false), load->second.busiest(true)});
            ns = m == 0 ? static_cast<double>(task.transferNs()) : std::min(ns, static_cast<double>(task.transferNs()));
        }
        if (expected.startupNs > CollectiveSpeedThresholds::kStartupShare * expected.ns) return;
        // Between hosts the arrivals are known to the clock's bound only.
        if (m_communicator.nodes > 1 && static_cast<double>(m_analysis.facts.clock.boundNs) > 0.1 * expected.ns) return;
        result.slowness.push_back(ns / expected.ns);
        result.rates.push_back(static_cast<double>(bytes) / ns);
        result.probe.keep(m_analysis, {"kernel", kernels[0][k]->kernelId, m_ranks[0]->rank, {}, kernels[0][k]->startNs},
                          [&] {
                              return fmt::format("all-to-all of up to {} a rank took {}",
                                                 text::bytesText(static_cast<double>(bytes)), text::durationText(ns));
                          });
    }

    const Analysis& m_analysis;
    const facts::Communicator& m_communicator;
    const Loads& m_loads;
    std::vector<const facts::RankSummary*> m_ranks;
    std::set<const facts::CommTask*> m_disturbed;
};

}  // namespace

std::vector<LinkProbe> exchangeProbes(const Analysis& analysis) {
    std::vector<LinkProbe> probes;
    const Loads loads = loadsOf(analysis);
    if (loads.empty()) return probes;
    std::map<bool, std::vector<double>> byClass;
    for (const auto& [id, communicator] : analysis.facts.communicators) {
        if (communicator.size < 2 || analysis.layout.role(id, store::Op::send) != facts::CommRole::experts) continue;
        const Samples samples = Reader(analysis, communicator, loads).read();
        if (!samples.enough()) continue;
        const LinkProbe& probe = probes.emplace_back(samples.measured());
        byClass[probe.betweenNodes].push_back(probe.slowness);
    }
    std::erase_if(probes, [&](const LinkProbe& probe) { return byClass[probe.betweenNodes].size() < 2; });
    for (LinkProbe& probe : probes) {
        probe.exchange = true;
        probe.alone = false;
        const std::vector<double>& alike = byClass[probe.betweenNodes];
        probe.slowness /= *std::ranges::min_element(alike);
        probe.peakBytesPerNs = probe.busBytesPerNs * probe.slowness;
    }
    return probes;
}

namespace {

double medianBytes(const std::vector<LargeCollective>& collectives) {
    std::vector<double> bytes;
    for (const LargeCollective& one : collectives) bytes.push_back(static_cast<double>(*one.collective->bytes));
    return facts::median(std::move(bytes));
}

/// The slowness of messages by their kind.
using SlownessOfKinds = std::map<LinkKind, std::vector<double>>;

int octaveOf(double bytes) {
    return static_cast<int>(std::lround(std::log2(bytes)));
}

/// Tells the probe what it has of each kind that occurs often enough; where that is one alone, it may be a kink.
void setKinds(const SlownessOfKinds& kinds, double bytes, LinkProbe& probe) {
    for (const auto& [kind, slowness] : kinds)
        if (slowness.size() >= CollectiveSpeedThresholds::kFewest) probe.kinds[kind] = facts::median(slowness);
    if (probe.kinds.size() < 2 && octaveOf(bytes) <= kLastKinkOctave) probe.kink = LinkProbeThresholds::kKink;
}

const char* peakName(bool atLeast) {
    return atLeast ? "the best that this job reached" : "the link's peak";
}

void addCollectives(const Analysis& analysis, std::vector<LinkProbe>& probes) {
    for (const auto& [id, communicator] : analysis.facts.communicators) {
        const std::vector<LargeCollective> large = largeCollectives(analysis, communicator);
        const std::optional<double> slowness = slownessOf(large);
        if (!slowness) continue;
        const store::Op op = large.front().collective->op;
        const costs::LinkModel link = *costs::linkModel(analysis.peaks, communicator, op);
        LinkProbe probe{.communicatorId = id,
                        .betweenNodes = communicator.nodes > 1,
                        .ranks = communicator.ranks,
                        .slowness = *slowness,
                        .busBytesPerNs = busBytesPerNs(large, communicator.size),
                        .peakBytesPerNs = link.bytesPerNs,
                        .atLeast = analysis.peaks.atLeast(communicator),
                        .share = costs::ceilingShare(analysis.peaks, communicator, op).share,
                        .lateness = costs::healthyLateness(link, medianBytes(large)),
                        .samples = large.size()};
        SlownessOfKinds kinds;
        for (const LargeCollective& one : large) {
            const store::Collective& c = *one.collective;
            kinds[{c.op, c.algorithm, c.protocol, octaveOf(*c.bytes), communicator.nodes, communicator.size}].push_back(
                one.slowness());
        }
        setKinds(kinds, medianBytes(large), probe);
        for (const LargeCollective& one : large)
            probe.keep(
                analysis,
                {"collective", one.collective->id, communicator.ranks.front(), {}, one.collective->lastArrivalNs}, [&] {
                    return fmt::format("{} of {} took {:.1f} times what {} gives", store::toText(one.collective->op),
                                       text::bytesText(static_cast<double>(*one.collective->bytes)), one.slowness(),
                                       peakName(probe.atLeast));
                });
        probes.push_back(std::move(probe));
    }
}

void addPairs(const Analysis& analysis, const std::vector<UndisturbedMessage>& messages,
              std::vector<LinkProbe>& probes) {
    struct Pair {
        Samples samples;
        SlownessOfKinds kinds;
        std::vector<double> bytes;
    };
    std::map<std::pair<int, int>, Pair> pairs;
    for (const auto& [row, transferNs] : messages) {
        const store::P2p& message = *row;
        const bool inside = analysis.facts.sameHost({message.srcRank, message.dstRank});
        const facts::Communicator pair = costs::pairOfRanks(!inside);
        const std::optional<costs::LinkModel> link = costs::linkToCompare(analysis.peaks, pair, store::Op::send);
        if (!link) continue;
        const double expected = link->alphaNs + static_cast<double>(*message.bytes) / link->bytesPerNs;
        if (link->alphaNs > CollectiveSpeedThresholds::kStartupShare * expected) continue;
        // Between hosts the arrivals are known to the clock's bound only.
        if (!inside && static_cast<double>(analysis.facts.clock.boundNs) > 0.1 * expected) continue;
        auto& [samples, kinds, sizes] = pairs[{message.srcRank, message.dstRank}];
        samples.slowness.push_back(transferNs / expected);
        kinds[{.op = store::Op::send, .octave = octaveOf(*message.bytes), .nodes = pair.nodes}].push_back(transferNs /
                                                                                                          expected);
        sizes.push_back(static_cast<double>(*message.bytes));
        samples.rates.push_back(static_cast<double>(*message.bytes) / transferNs);
        LinkProbe& probe = samples.probe;
        probe.communicatorId = message.communicatorId;
        probe.peakBytesPerNs = link->bytesPerNs;
        probe.pair = true;
        probe.betweenNodes = !inside;
        probe.ranks = {message.srcRank, message.dstRank};
        probe.atLeast = analysis.peaks.atLeast(pair, store::Op::send);
        probe.share = costs::ceilingShare(analysis.peaks, pair, store::Op::send).share;
        probe.lateness = std::max(probe.lateness, costs::healthyLateness(*link, static_cast<double>(*message.bytes)));
        probe.keep(analysis, {"p2p", message.id, message.srcRank, {}, message.sendArrivalNs}, [&] {
            return fmt::format("{} took {:.1f} times what {} gives",
                               text::bytesText(static_cast<double>(*message.bytes)), samples.slowness.back(),
                               peakName(probe.atLeast));
        });
    }
    // NCCL reaches less of a link with messages than with collectives, and how much less nobody knows: where only what
    // was reached is known, messages are compared with messages.
    std::map<bool, double> fastest;
    for (const auto& [ends, pair] : pairs) {
        const Samples& samples = pair.samples;
        if (!samples.probe.atLeast || !samples.enough()) continue;
        const double slowness = facts::median(samples.slowness);
        const auto [best, fresh] = fastest.try_emplace(samples.probe.betweenNodes, slowness);
        if (!fresh) best->second = std::min(best->second, slowness);
    }
    for (auto& [ends, pair] : pairs) {
        const auto& [samples, kinds, sizes] = pair;
        if (!samples.enough()) continue;
        const double unit = samples.probe.atLeast ? fastest.at(samples.probe.betweenNodes) : 1;
        LinkProbe& probe = probes.emplace_back(samples.measured(unit));
        setKinds(kinds, facts::median(sizes), probe);
        for (auto& [kind, slowness] : probe.kinds) slowness /= unit;
    }
}

/// The slowness of the fastest of these by kind.
std::map<LinkKind, double> fastestByKind(const std::vector<LinkProbe*>& siblings) {
    std::map<LinkKind, double> fastest;
    for (const LinkProbe* sibling : siblings)
        for (const auto& [kind, slowness] : sibling->kinds) {
            double& known = fastest.try_emplace(kind, slowness).first->second;
            known = std::min(known, slowness);
        }
    return fastest;
}

/// Whether messages that have nothing in common but the links are all slow: then it is no kink of one of them.
bool allKindsSlow(const std::vector<LinkProbe*>& siblings) {
    std::vector<LinkKind> kinds;
    for (const LinkProbe* probe : siblings) {
        if (probe->leastSlowness() < LinkProbeThresholds::kSlow * probe->mostSmooth()) return false;
        for (const auto& [kind, slowness] : probe->kinds) kinds.push_back(kind);
    }
    return std::ranges::any_of(kinds, [&](const LinkKind& kind) { return kind.isUnlike(kinds.front()); });
}

/// The fastest of a class shows which share its links reach; beyond what healthy ones do, all are slow.
void compareSiblings(std::vector<LinkProbe>& probes) {
    for (const bool betweenNodes : {false, true}) {
        std::vector<LinkProbe*> siblings;
        for (LinkProbe& probe : probes)
            if (probe.betweenNodes == betweenNodes) siblings.push_back(&probe);
        if (siblings.empty()) continue;
        if (allKindsSlow(siblings))
            for (LinkProbe* probe : siblings) probe->kink = 1;
        const double fastest = (*std::ranges::min_element(siblings, {}, &LinkProbe::slowness))->slowness;
        const std::map<LinkKind, double> ofKind = fastestByKind(siblings);
        for (LinkProbe* probe : siblings) {
            if (siblings.size() == 1) {
                probe->compareWithOthers();
                continue;
            }
            // Of the probe's only kind, itself among them.
            const double alike = probe->kinds.empty()
                                     ? probe->slowness
                                     : std::min(probe->slowness, ofKind.at(probe->kinds.begin()->first));
            probe->compareWithSiblings(fastest, alike);
        }
    }
}

}  // namespace

void LinkProbe::compareWithOthers() {
    alone = true;
    reached = 1 / share.low;
    healthy = mostHealthy();
}

void LinkProbe::compareWithSiblings(double fastest, double alike) {
    alone = false;
    reached = std::clamp(fastest, 1.0, 1 / share.low);
    healthy = std::clamp(std::min(kink * fastest, std::max(fastest, alike)), 1.0, mostHealthy());
}

double LinkProbe::leastSlowness() const {
    if (kinds.size() < 2) return slowness;
    return std::ranges::min_element(kinds, {}, [](const auto& kind) { return kind.second; })->second;
}

double LinkProbe::ceilingTo() const {
    return LinkProbeThresholds::kAtCeiling * reached;
}

double LinkProbe::slowFrom() const {
    return LinkProbeThresholds::kSlow * healthy;
}

bool LinkProbe::slow() const {
    return leastSlowness() >= slowFrom();
}

bool LinkProbe::maybeSlow() const {
    return slow() || (alone && slowness >= LinkProbeThresholds::kSlow);
}

bool LinkProbe::slowForAReason() const {
    return slowness >= LinkProbeThresholds::kSlow / share.low;
}

bool LinkProbe::atCeiling() const {
    return slowness <= ceilingTo();
}

double LinkProbe::excess() const {
    const bool bySiblings = !alone && slow() && healthy < mostHealthy();  // else all are slow alike
    return slowness / std::max(bySiblings ? healthy : 1, 1 / std::min(1.0, share.high));
}

void LinkProbe::keep(const Analysis& analysis, EvidenceRow row, const std::function<std::string()>& note) {
    const facts::RankFacts* known = analysis.facts.findRank(row.rank);
    const auto stepOf = [&](const EvidenceRow& one) {
        return known == nullptr || !one.startNs ? nullptr : facts::stepAt(known->steps, *one.startNs);
    };
    // They come in the order of time: those of a step stand last.
    const facts::StepWindow* step = stepOf(row);
    size_t same = 0;
    while (same < std::min(kRowsOfStep, rows.size()) && stepOf(rows[rows.size() - 1 - same]) == step) ++same;
    if (same >= kRowsOfStep) return;
    row.note = note();
    rows.push_back(std::move(row));
}

bool LinkProbe::touches(int rank) const {
    return text::contains(ranks, rank);
}

std::vector<LinkProbe> probeLinks(const Analysis& analysis, const std::vector<UndisturbedMessage>& messages) {
    std::vector<LinkProbe> probes;
    addCollectives(analysis, probes);
    addPairs(analysis, messages, probes);
    compareSiblings(probes);
    for (LinkProbe& probe : exchangeProbes(analysis)) probes.push_back(std::move(probe));
    return probes;
}

}  // namespace rankscope::job
