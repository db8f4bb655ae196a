// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analyzer/edits/edit_arguments.h"
#include "analyzer/edits/gradient_curve.h"
#include "analyzer/edits/resend.h"
#include "analyzer/edits/trial_graph.h"
#include "analyzer/facts/layout.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::edits {
namespace {

constexpr double kMostBuckets =
    1e4;  // of a round: smaller ones than any framework makes, and a graph that no memory holds

bool sameEnds(const std::vector<double>& a, const std::vector<double>& b) {
    return std::ranges::equal(a, b, [](double one, double other) { return std::abs(one - other) <= 1e-6 * other; });
}

/// A bucket is full with the first tensor that reaches the cap. So the cap lies below the smallest of the full ones by
/// less than a tensor, and a tensor is at least as large as what they differ by. The first bucket has a cap of its own,
/// the last one is what was left.
bool isPresentCap(const GradientRound& round, double cap) {
    if (round.bytes.size() < 4) return false;
    const auto [smallest, largest] = std::minmax_element(round.bytes.begin() + 1, round.bytes.end() - 1);
    return cap <= *smallest && cap > *smallest - (*largest - *smallest);
}

class Rebucket {
  public:
    Rebucket(const TrialGraph& of, std::optional<double> mebibytes, bool overlap, Outlook outlook)
        : m_graph(of.graph()),
          m_analysis(of.analysis()),
          m_traffic(of.gradients()),
          m_mebibytes(mebibytes),
          m_overlap(overlap),
          m_outlook(outlook),
          m_resend(m_graph, m_analysis, m_traffic.index()) {}

    TaskGraph run(EditEffect& effect) {
        for (size_t i = 0; i < m_traffic.rounds().size(); ++i) resend(i);
        if (m_sent + m_kept == 0)
            throw EditError(m_mebibytes
                                ? "no gradients are sent in buckets"
                                : "no buckets wait for the end of the backward pass, and it waits for none of them",
                            "ddp, ZeRO-1 and ZeRO-2 have buckets");
        if (m_sent == 0) return m_graph;
        TaskGraph graph = std::move(m_resend).finish();
        m_traffic.besideCompute().reprice(graph, effect);
        return graph;
    }

    /// Buckets of other sizes are sent: what they take and where tensors end inside the present ones is an estimate.
    bool open() const { return m_open || m_newlyBeside; }
    /// Gradients are sent while more of them are made, which they were not: what a framework lets wait for them then is
    /// not to be seen.
    bool newlyBeside() const { return m_newlyBeside; }

    /// Standard deviation of a step by the chances of its transfers, where they have any: fewer and larger ones even
    /// out less. ns.
    double chanceNs() const {
        std::map<int64_t, std::vector<double>> byCommunicator;
        for (const auto& [who, variance] : m_variance) byCommunicator[who.first].push_back(variance);
        double largest = 0;
        for (const auto& [communicator, ofSteps] : byCommunicator) largest = std::max(largest, facts::mean(ofSteps));
        return std::sqrt(largest);
    }

  private:
    void resend(size_t number) {
        const GradientRound& round = m_traffic.rounds()[number];
        const bool gathers = round.op == store::Op::allGather;
        if (!m_mebibytes && gathers) return awaitWhereUsed(round);
        const bool aside = m_overlap && onComputeStream(round);
        if (!m_mebibytes && !round.late() && !aside) return awaitBehindLast(round);
        const bool moves = m_mebibytes || round.late();
        const std::vector<std::optional<GradientCurve>>& curves = m_traffic.curves(number);
        for (size_t m = 0; m < round.members.size(); ++m) {
            const RoundMember& member = round.members[m];
            if (moves && !curves[m] && (!gathers || member.ready.back() < 0))
                throw EditError(
                    fmt::format("rank {}: where the backward pass begins cannot be told from its kernels", member.rank),
                    "when gradients are ready is unknown");
            if (!gathers && curves[m]) m_curves[{round.communicator, member.rank}].emplace(round.step, &*curves[m]);
        }
        if (!moves && !aside) return;
        if (m_mebibytes && round.totalBytes() > kMostBuckets * *m_mebibytes * kMebi)
            throw EditError(
                fmt::format("buckets of {:g} MiB would be more than {:g} a step", *m_mebibytes, kMostBuckets),
                "larger buckets can be judged");
        NewBuckets buckets;
        buckets.aside = aside;
        const bool newlyBeside = m_overlap && !gathers && (aside || round.late());
        buckets.held = newlyBeside && m_outlook == Outlook::dear;
        m_newlyBeside = m_newlyBeside || newlyBeside;
        buckets.ends = !m_mebibytes ? round.ends()
                       : gathers    ? mirrored(round)
                                    : curves.front()->plan(*m_mebibytes * kMebi, tensorEnds());
        if (buckets.ends.empty()) {
            if (m_overlap) awaitWhereUsed(round);
            return;
        }
        bool kept = sameEnds(buckets.ends, round.ends());
        if (m_mebibytes && !gathers) {
            const bool present = isPresentCap(round, *m_mebibytes * kMebi);
            m_open = m_open || !kept || !present;
            if (present && m_outlook == Outlook::expected) kept = true;
            if (kept) buckets.ends = round.ends();
        }
        if (kept && !aside && !(m_overlap && (round.late() || gathers))) {
            ++m_kept;
            return;
        }
        if (!gathers && !kept) m_plans[{round.communicator, round.step}] = buckets.ends;
        // A single gather leaves behind the whole update, of which no part is to be seen.
        const bool together = gathers && round.exchanges.size() == 1;
        for (size_t m = 0; m < round.members.size(); ++m) {
            std::vector<int64_t> ready;
            const std::vector<int64_t>& present = round.members[m].ready;
            for (double end : buckets.ends)
                ready.push_back(!curves[m] || together || (round.late() && !m_overlap) ? present.back()
                                                                                       : curves[m]->readyAt(end));
            if (kept && aside && !round.late()) ready = present;  // they leave when they do now
            buckets.ready.push_back(std::move(ready));
        }
        for (size_t m = 0; m < round.members.size(); ++m)
            if (gathers)
                buckets.uses.push_back(usesOf(round, round.members[m], buckets.ends));
            else if (!m_overlap)
                buckets.uses.push_back(usesWithin(m_traffic.waits(number)[m],
                                                  m_traffic.index().compute(round.members[m].rank), buckets.ready[m]));
        priceBuckets(round, m_traffic.strain(number), buckets);
        m_resend.add(round, buckets);
        for (size_t m = 0; gathers && m < round.members.size(); ++m)
            m_resend.mergeUpdates(round.members[m], buckets.ready[m]);
        ++m_sent;
    }

    bool onComputeStream(const GradientRound& round) const {
        return std::ranges::all_of(round.members, [&](const RoundMember& member) {
            return m_graph.info[member.arrivals.front()].lane == m_traffic.index().compute(member.rank).lane;
        });
    }

    void priceBuckets(const GradientRound& round, const Strain& strain, NewBuckets& buckets) {
        buckets.transferNs.assign(round.members.size(), {});
        const double alone = aloneOver(round);
        for (size_t b = 0; b < buckets.ends.size(); ++b) {
            const double bytes = std::round(buckets.ends[b] - (b == 0 ? 0 : buckets.ends[b - 1]));
            const std::optional<facts::Estimate> price = m_traffic.prices().ns(round.communicator, round.op, bytes);
            if (!price)
                throw EditError(
                    fmt::format("what {:.1f} MiB take on {} is unknown: its messages differ too little in size",
                                bytes / kMebi,
                                facts::communicatorName(m_analysis.facts, m_analysis.layout, round.communicator)),
                    "tell them: --links \"intra:gbps=…,alpha_us=…;inter:gbps=…,alpha_us=…\"");
            const double ns = m_outlook == Outlook::dear    ? price->high
                              : m_outlook == Outlook::cheap ? price->low
                                                            : price->expected;
            for (size_t m = 0; m < round.members.size(); ++m)
                buckets.transferNs[m].push_back(ns * strain.factor * strain.shares[m] * alone);
            const double deviation = ns * m_traffic.prices().scatter(round.communicator, round.op);
            m_variance[{round.communicator, round.step}] += deviation * deviation;
        }
    }

    /// What the round's transfers would take without compute beside them, over what they are expected to take then.
    double aloneOver(const GradientRound& round) const {
        double here = 0, expected = 0;
        for (uint32_t exchange : round.exchanges) {
            const auto ns = static_cast<double>(m_graph.longestNs(m_graph.exchanges[exchange]));
            here += ns - m_traffic.besideCompute().lostNs(exchange, m_outlook);
            expected += ns - m_traffic.besideCompute().lostNs(exchange, Outlook::expected);
        }
        return expected > 0 ? here / expected : 1;
    }

    /// Forward waits for each gather of parameters where it needs them, instead of for all of them where it begins.
    void awaitWhereUsed(const GradientRound& round) {
        for (const RoundMember& member : round.members) {
            const std::vector<int64_t> uses = usesOf(round, member, round.ends());
            if (uses.empty()) return;
            m_resend.awaitAt(member, uses);
        }
        ++m_sent;
    }

    /// Compute that waits for a sum of gradients before the last gradients are made needs none of them yet: it waits
    /// where it waits for the last one.
    void awaitBehindLast(const GradientRound& round) {
        for (const RoundMember& member : round.members) {
            const ComputeLane& compute = m_traffic.index().compute(member.rank);
            const int64_t made = member.ready.back();
            const int64_t last = firstUse(m_graph, compute, {member.transfers.back()}).kernel;
            const bool early = std::ranges::any_of(member.transfers, [&](TaskId transfer) {
                const int64_t use = firstUse(m_graph, compute, {transfer}).kernel;
                return use >= 0 && use <= made;
            });
            if (!early || last < 0) continue;
            m_resend.awaitAt(member, std::vector<int64_t>(member.transfers.size(), std::max(last, made + 1)));
            ++m_sent;
        }
    }

    /// Where backward itself waits for the present buckets, the kernels that wait for the new ones.
    static std::vector<int64_t> usesWithin(const std::optional<BackwardWait>& wait, const ComputeLane& compute,
                                           const std::vector<int64_t>& ready) {
        if (!wait) return {};
        if (ready.back() + 1 >= static_cast<int64_t>(compute.kernels.size())) return {};  // nothing follows to wait
        // What follows the last gradients may be what needs the sums.
        std::vector<int64_t> uses;
        for (size_t b = 0; b < ready.size(); ++b)
            uses.push_back(
                std::min(ready.back() + 1, ready[std::min(b + wait->buckets, ready.size() - 1)] + wait->kernels));
        return uses;
    }

    TensorEnds tensorEnds() const {
        return m_outlook == Outlook::coarse ? TensorEnds::known
               : m_outlook == Outlook::fine ? TensorEnds::anywhere
                                            : TensorEnds::behindKernels;
    }

    /// The gradients' plan from its end, for as many bytes as the round has.
    std::vector<double> mirrored(const GradientRound& round) const {
        const auto plan = m_plans.find({round.communicator, round.step});
        if (plan == m_plans.end()) return {};
        const double total = plan->second.back();
        std::vector<double> ends;
        for (size_t b = plan->second.size(); b-- > 0;)
            ends.push_back((total - (b == 0 ? 0 : plan->second[b - 1])) * round.totalBytes() / total);
        return ends;
    }

    /// Empty: nothing shows which kernels need the gathered parameters; or what waits for them now goes on: all of
    /// forward where no overlap is asked for, and where each of them is awaited where it is used, the same kernels,
    /// unless smaller pieces can be awaited later.
    std::vector<int64_t> usesOf(const GradientRound& round, const RoundMember& member,
                                const std::vector<double>& ends) const {
        const ComputeLane& compute = m_traffic.index().compute(member.rank);
        const auto [first, ofAll] = firstUse(m_graph, compute, member.transfers);
        if (ofAll ? !m_overlap : ends.size() <= member.transfers.size()) return {};
        const auto curves = m_curves.find({round.communicator, member.rank});
        if (first < 0 || curves == m_curves.end()) return {};
        const auto curve = curves->second.find(m_graph.info[compute.at(first)].step);
        if (curve == curves->second.end() || curve->second->first() <= first) return {};
        return parameterUses(compute, first, ends, *curve->second);
    }

    const TaskGraph& m_graph;
    const Analysis& m_analysis;
    const GradientTraffic& m_traffic;
    std::optional<double> m_mebibytes;
    bool m_overlap;
    Outlook m_outlook;
    Resend m_resend;
    std::map<std::pair<int64_t, int>, std::vector<double>> m_plans;  // by communicator and step
    std::map<std::pair<int64_t, int>, std::map<int, const GradientCurve*>>
        m_curves;  // by communicator and rank, by step: of the first backward pass
    std::map<std::pair<int64_t, int>, double> m_variance;  // of the new transfers, by communicator and step, ns^2
    int m_sent = 0, m_kept = 0;                            // rounds
    bool m_open = false, m_newlyBeside = false;
};

}  // namespace

TaskGraph inBuckets(std::optional<double> mebibytes, bool overlap, const TrialGraph& of, EditEffect& effect) {
    Rebucket rebucket(of, mebibytes, overlap, effect.outlook);
    TaskGraph graph = rebucket.run(effect);
    effect.open = effect.open || rebucket.open();
    effect.chanceNs = std::hypot(effect.chanceNs, rebucket.chanceNs());
    if (rebucket.newlyBeside())
        effect.assume(
            "backward goes on while buckets are sent; at worst the framework has two buffers, so that it waits for the "
            "bucket before, and its host waits for the last one (DeepSpeed does both)");
    effect.assume("gradients are ready as the kernels between two present buckets make them");
    return graph;
}

std::unique_ptr<Edit> parseBuckets(EditArguments& arguments) {
    const double mebibytes = arguments.requiredPositive("mb");
    const bool overlap = arguments.word("overlap", {"yes", "no"}, "no") == "yes";
    return std::make_unique<Edit>(NewGraph([mebibytes, overlap](const TrialGraph& of, EditEffect& effect) {
        return inBuckets(mebibytes, overlap, of, effect);
    }));
}

}  // namespace rankscope::edits
