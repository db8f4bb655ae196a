// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/edits/buckets.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/replay/edits/edit_arguments.h"
#include "analyzer/replay/edits/gradient_curve.h"
#include "analyzer/replay/edits/parameter_uses.h"
#include "analyzer/replay/edits/resend.h"
#include "analyzer/replay/edits/transfer_prices.h"

namespace rankscope::analyzer {
namespace {

/// Measured over priced transfer time of a round: its noise, and what else was on the network.
double strain(const GradientRound& round, const TaskGraph& graph, const TransferPrices& prices) {
    double measured = 0, priced = 0;
    for (size_t b = 0; b < round.bytes.size(); ++b) {
        double sum = 0;
        for (const RoundMember& member : round.members) sum += static_cast<double>(graph.durationNs[member.transfers[b]]);
        measured += sum / static_cast<double>(round.members.size());
        priced += prices.timeNs(round.communicator, round.op, round.bytes[b]).value_or(0);
    }
    return priced > 0 && measured > 0 ? measured / priced : 1;
}

/// Cumulative sizes of a round's present buckets.
std::vector<double> presentEnds(const GradientRound& round) {
    std::vector<double> ends;
    for (double bytes : round.bytes) ends.push_back((ends.empty() ? 0 : ends.back()) + bytes);
    return ends;
}

class Rebucket {
  public:
    Rebucket(const TaskGraph& graph, const Analysis& analysis, std::optional<double> mebibytes, bool overlap)
        : m_graph(graph), m_index(graph), m_prices(graph, analysis), m_mebibytes(mebibytes), m_overlap(overlap), m_resend(graph, m_index),
          m_rounds(gradientRounds(graph, analysis, m_index)) {}

    TaskGraph run() {
        // Parameters of ZeRO are gathered bucket by bucket in the order in which they are updated: the plan of the gradients comes first.
        std::stable_partition(m_rounds.begin(), m_rounds.end(), [](const GradientRound& round) { return round.op != store::Op::allGather; });
        for (const GradientRound& round : m_rounds) resend(round);
        if (m_sent == 0)
            throw EditError(m_mebibytes ? "no gradients are sent in buckets" : "no buckets wait for the end of the backward pass", "ddp, ZeRO-1 and ZeRO-2 have buckets");
        return std::move(m_resend).finish();
    }

  private:
    void resend(const GradientRound& round) {
        const bool gathers = round.op == store::Op::allGather;
        if (!m_mebibytes && gathers) return awaitWhereUsed(round);
        const bool moves = m_mebibytes || round.late();
        std::vector<std::optional<GradientCurve>> curves;
        for (const RoundMember& member : round.members) {
            curves.push_back(GradientCurve::of(m_graph, m_index.compute(member.rank), round, member));
            if (moves && !curves.back() && (!gathers || member.ready.back() < 0))
                throw EditError(fmt::format("rank {}: where the backward pass begins cannot be told from its kernels", member.rank), "when gradients are ready is unknown");
            if (!gathers && curves.back()) m_curves[{round.communicator, member.rank}].emplace(round.step, *curves.back());
        }
        if (!moves) return;
        NewBuckets buckets;
        buckets.ends = !m_mebibytes ? presentEnds(round) : gathers ? mirrored(round) : curves.front()->plan({*m_mebibytes * BucketCaps::kMebi});
        if (buckets.ends.empty()) return;
        if (!gathers) m_plans[{round.communicator, round.step}] = buckets.ends;
        // A single gather leaves behind the whole update, of which no part is to be seen.
        const bool together = gathers && round.exchanges.size() == 1;
        for (size_t m = 0; m < round.members.size(); ++m) {
            std::vector<int64_t> ready;
            const std::vector<int64_t>& present = round.members[m].ready;
            for (double end : buckets.ends) ready.push_back(!curves[m] || together || (round.late() && !m_overlap) ? present.back() : curves[m]->readyAt(end));
            buckets.ready.push_back(std::move(ready));
        }
        for (const RoundMember& member : round.members)
            if (gathers) buckets.uses.push_back(usesOf(round, member, buckets.ends));
        const double factor = strain(round, m_graph, m_prices);
        for (size_t b = 0; b < buckets.ends.size(); ++b) {
            const double bytes = buckets.ends[b] - (b == 0 ? 0 : buckets.ends[b - 1]);
            const std::optional<double> time = m_prices.timeNs(round.communicator, round.op, bytes);
            if (!time)
                throw EditError(fmt::format("what {:.1f} MiB take on communicator {} is unknown: its messages differ too little in size", bytes / BucketCaps::kMebi,
                                            round.communicator),
                                "state the links: RANKSCOPE_LINKS");
            buckets.transferNs.push_back(*time * factor);
        }
        m_resend.add(round, buckets);
        for (size_t m = 0; gathers && m < round.members.size(); ++m) m_resend.mergeUpdates(round.members[m], buckets.ready[m]);
        ++m_sent;
    }

    /// Forward waits for each gather of parameters where it needs them, instead of for all of them where it begins.
    void awaitWhereUsed(const GradientRound& round) {
        for (const RoundMember& member : round.members) {
            const std::vector<int64_t> uses = usesOf(round, member, presentEnds(round));
            if (uses.empty()) return;
            m_resend.awaitAt(member, uses);
        }
        ++m_sent;
    }

    /// The gradients' plan from its end, for as many bytes as the round has.
    std::vector<double> mirrored(const GradientRound& round) const {
        const auto plan = m_plans.find({round.communicator, round.step});
        if (plan == m_plans.end()) return {};
        const double total = plan->second.back();
        std::vector<double> ends;
        for (size_t b = plan->second.size(); b-- > 0;) ends.push_back((total - (b == 0 ? 0 : plan->second[b - 1])) * round.totalBytes() / total);
        return ends;
    }

    /// Empty: nothing shows which kernels need the gathered parameters; or what waits for them now goes on: all of forward where no overlap is asked for, and where each of
    /// them is awaited where it is used, the same kernels, unless smaller pieces can be awaited later.
    std::vector<int64_t> usesOf(const GradientRound& round, const RoundMember& member, const std::vector<double>& ends) const {
        const ComputeLane& compute = m_index.compute(member.rank);
        const FirstUse use = firstUse(m_graph, compute, member.transfers);
        if (use.ofAll ? !m_overlap : ends.size() <= member.transfers.size()) return {};
        const int64_t first = use.kernel;
        const auto curves = m_curves.find({round.communicator, member.rank});
        if (first < 0 || curves == m_curves.end()) return {};
        const auto curve = curves->second.find(m_graph.info[compute.kernels[static_cast<size_t>(first)]].step);
        if (curve == curves->second.end() || curve->second.first() <= first) return {};
        return parameterUses(compute, first, ends, curve->second);
    }

    const TaskGraph& m_graph;
    LaunchIndex m_index;
    TransferPrices m_prices;
    std::optional<double> m_mebibytes;
    bool m_overlap;
    Resend m_resend;
    std::vector<GradientRound> m_rounds;
    std::map<std::pair<int64_t, int>, std::vector<double>> m_plans;  // by communicator and step
    std::map<std::pair<int64_t, int>, std::map<int, GradientCurve>> m_curves;  // by communicator and rank, by step: of the first backward pass
    int m_sent = 0;
};

}  // namespace

void Buckets::apply(TaskGraph& graph, const Analysis& analysis, EditEffect& effect) const {
    graph = Rebucket(graph, analysis, m_mebibytes, m_overlap).run();
    effect.assume("gradients are ready as the kernels between two present buckets make them");
}

std::unique_ptr<Edit> parseBuckets(EditArguments& arguments) {
    const double mebibytes = arguments.requiredPositive("mb");
    const bool overlap = arguments.word("overlap", {"yes", "no"}, "no") == "yes";
    return std::make_unique<Buckets>(mebibytes, overlap);
}

}  // namespace rankscope::analyzer
