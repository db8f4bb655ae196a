// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/accounting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "analyzer/diagnose/critical_step.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/facts/rank_summary.h"
#include "analyzer/job/light_recording.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
namespace {

constexpr size_t kCategories = 5;
constexpr const char* kSchedule = "the pipeline's schedule";
constexpr const char* kEnds = "the first gather and the last reduction of a step, which nothing can hide";
constexpr const char* kActivations = "collectives of activations and tokens, which compute waits for in such a layout";

size_t at(Exposed category) {
    return static_cast<size_t>(category);
}

/// What is left of a rank's step to be accounted for, by category.
using Rest = std::array<double, kCategories>;

/// Sums over all ranks and analysed steps, ns.
struct Ledger {
    double stepNs = 0;
    Rest total{}, rest{};
    std::array<std::map<std::string, double>, kCategories> parts;
    std::map<int, Rest> byRank;  // of the rest
    std::map<int, double> stepOfRank;
    std::map<std::string, double> taken;  // in the step at hand

    /// Takes up to `ns` from the categories in their order; returns what was not to be had.
    double take(int rank, Rest& left, const std::string& by, double ns, std::initializer_list<Exposed> order) {
        for (Exposed category : order) {
            const double part = std::min(ns, left[at(category)]);
            if (part <= 0) continue;
            left[at(category)] -= part;
            rest[at(category)] -= part;
            byRank[rank][at(category)] -= part;
            parts[at(category)][by] += part;
            taken[by] += part;
            ns -= part;
        }
        return ns;
    }
};

/// Diagnoses that are told as findings or notes, and the most of a step that each may account for, ns: of one step
/// where some steps alone are hit, all that it costs them on average. An inconclusive one accounts for nothing.
std::map<std::string, double> certain(const job::Analysis& analysis, const std::vector<job::Finding>& findings) {
    std::map<std::string, double> most;
    for (const job::Finding& finding : findings) {
        if (finding.verdict == job::Verdict::inconclusive) continue;
        double costNs = std::max(finding.severity * analysis.stepNs, finding.worthNs());
        if (finding.meanStepNs > 0 && !finding.steps.empty())
            costNs *= static_cast<double>(analysis.steps.size()) / static_cast<double>(finding.steps.size());
        // The whole of what a finding's detector claimed is its own, in however long a step; a note is worth what it
        // says, but by calls alone, where most of what ranks wait for a late one may cost them nothing.
        const bool isWhole =
            finding.verdict == job::Verdict::found || (isByCalls(analysis) && finding.id == kStraggler.id);
        most[finding.id] = std::max(most[finding.id], isWhole ? std::numeric_limits<double>::max() : costNs);
    }
    return most;
}

bool stallsOnHost(const std::string& id) {
    return familyOf(id) == Family::host;
}

/// Its ranks are late, and the others wait for them.
bool holdsOthersUp(const std::string& id) {
    return familyOf(id) == Family::imbalance || stallsOnHost(id) || id == kSlowLink.id;
}

Rest exposedIn(const facts::Attribution& step) {
    Rest left{};
    const double unsplit = static_cast<double>(step.unsplitNs);
    // What cannot be split stands in both columns as it happened to fall; it is taken out of transfer first, where
    // unmatched kernels are.
    const double fromTransfer = std::min(unsplit, static_cast<double>(step.exposedTransferNs));
    const double late =
        std::min(static_cast<double>(step.lateTransferNs), static_cast<double>(step.exposedTransferNs) - fromTransfer);
    left[at(Exposed::communication)] = unsplit;
    left[at(Exposed::transfer)] = static_cast<double>(step.exposedTransferNs) - fromTransfer - late;
    left[at(Exposed::waiting)] = static_cast<double>(step.exposedWaitNs) - (unsplit - fromTransfer) + late;
    left[at(Exposed::memory)] = static_cast<double>(step.memoryNs);
    left[at(Exposed::idle)] = static_cast<double>(step.idleNs);
    return left;
}

/// By communicator: transfer of a rank's step that is exposed for no lateness of others.
std::map<int64_t, double> transferByCommunicator(std::span<const facts::CommTask> tasks) {
    std::map<int64_t, double> sums;
    for (const facts::CommTask& task : tasks)
        if (task.splitKnown())
            sums[task.communicatorId] += static_cast<double>(task.exposedTransferNs - task.lateTransferNs);
    return sums;
}

/// The last message and the first one of a step stick out of any plan: nothing runs behind the one, nothing in front of
/// the other. Of this rank's step, ns; at most what is still unexplained of their communicators, `open`.
double endsNs(const job::Analysis& analysis, std::span<const facts::CommTask> tasks, std::map<int64_t, double> open) {
    const facts::CommTask* firstGather = nullptr;
    const facts::CommTask* lastReduction = nullptr;
    for (const facts::CommTask& task : tasks) {
        const facts::CommRole role = roleOf(analysis, task);
        if (role != facts::CommRole::gradients && role != facts::CommRole::shardedParameters &&
            role != facts::CommRole::replicas)
            continue;
        if (task.op != store::Op::allGather) lastReduction = &task;
        if (task.op == store::Op::allGather && firstGather == nullptr) firstGather = &task;
    }
    double sum = 0;
    for (const facts::CommTask* task : {firstGather, lastReduction}) {
        if (task == nullptr || !task->splitKnown()) continue;
        double& left = open[task->communicatorId];
        const double part =
            std::clamp(static_cast<double>(task->exposedTransferNs - task->lateTransferNs), 0.0, std::max(0.0, left));
        left -= part;
        sum += part;
    }
    return sum;
}

/// Communicators whose time is what bytes and link make of it: the peak is known, their messages are not slower than
/// that, and no member's link is called slow, found, noted or suspected: by other messages perhaps, but these go over
/// it, too.
std::set<int64_t> runningAsTheyShould(const job::Analysis& analysis, const std::set<int>& withSlowLinks) {
    std::set<int64_t> slow;
    for (const job::LinkProbe& probe : analysis.linkProbes)
        if (probe.slow()) slow.insert(probe.communicatorId);
    std::set<int64_t> running;
    for (const auto& [id, communicator] : analysis.facts.communicators)
        if (!slow.contains(id) && peakIsKnown(analysis, communicator) &&
            std::ranges::none_of(communicator.ranks, [&](int rank) { return withSlowLinks.contains(rank); }))
            running.insert(id);
    return running;
}

class Accountant {
  public:
    Accountant(const job::Analysis& analysis, const Claims& claims, const std::vector<job::Finding>& findings)
        : m_analysis(analysis), m_claims(claims), m_findings(findings), m_certain(certain(analysis, findings)) {
        for (const CommunicatorClass& where : communicatorClasses(analysis))
            for (const job::Finding& finding : findings)
                if (finding.id == kSaturation.id && finding.verdict != job::Verdict::inconclusive &&
                    finding.communicator && where.ids.count(*finding.communicator) != 0)
                    m_saturated.insert(where.ids.begin(), where.ids.end());
        for (const job::Finding& finding : findings) {
            if (finding.verdict == job::Verdict::found) addExpected(finding);
            m_named[finding.id].insert(finding.ranks.begin(), finding.ranks.end());
        }
        m_healthy = runningAsTheyShould(analysis, m_named[kSlowLink.id]);
        for (const facts::Pipeline& pipeline : analysis.layout.pipelines) {
            m_bubble = std::max(m_bubble, pipeline.theoreticalBubble());
            m_inPipelines.insert(pipeline.stages.begin(), pipeline.stages.end());
        }
    }

    Accounting run() {
        for (const facts::RankSummary& rank : m_analysis.ranks)
            for (int step : m_analysis.steps)
                if (const facts::Attribution* attribution = m_analysis.attribution(rank, step))
                    account(rank, step, *attribution);
        return judge();
    }

  private:
    void account(const facts::RankSummary& rank, int step, const facts::Attribution& attribution) {
        Rest left = exposedIn(attribution);
        m_ledger.taken.clear();
        m_ledger.stepNs += static_cast<double>(attribution.stepNs);
        m_ledger.stepOfRank[rank.rank] += static_cast<double>(attribution.stepNs);
        for (size_t c = 0; c < kCategories; ++c) {
            m_ledger.total[c] += left[c];
            m_ledger.rest[c] += left[c];
            m_ledger.byRank[rank.rank][c] += left[c];
        }
        accountForStandstill(rank.rank, step, left);
        accountForTransfer(rank, step, left);
        accountForSavings(rank.rank, left);
        // The schedule's own bubble, where no finding has taken it.
        if (m_inPipelines.contains(rank.rank))
            m_ledger.take(rank.rank, left, kSchedule,
                          std::max(0.0, m_bubble * static_cast<double>(attribution.stepNs) - m_taken),
                          {Exposed::waiting, Exposed::idle});
    }

    void accountForStandstill(int rank, int step, Rest& left) {
        m_taken = 0;
        for (const auto& [id, ns] : m_claims.explanations(rank, step)) {
            const auto most = m_certain.find(id);
            if (most == m_certain.end()) continue;
            const double claimed = std::min(ns, most->second);
            const bool own = stallsOnHost(id) && namedBy(id, rank);
            const double over =
                id == kPageable.id && own
                    ? m_ledger.take(rank, left, id, claimed, {Exposed::memory, Exposed::idle, Exposed::waiting})
                : own ? m_ledger.take(rank, left, id, claimed, {Exposed::idle, Exposed::waiting})
                      : m_ledger.take(rank, left, id, claimed, {Exposed::waiting, Exposed::idle});
            if (id == kBubble.id) m_taken += claimed - over;
        }
    }

    void accountForTransfer(const facts::RankSummary& rank, int step, Rest& left) {
        const std::span<const facts::CommTask> tasks = m_analysis.tasks(rank, step);
        std::map<int64_t, double> exposed = transferByCommunicator(tasks);
        double activations = 0;
        bool healthy = true;
        for (auto& [communicator, ns] : exposed) {
            if (m_saturated.count(communicator) != 0) {
                m_ledger.take(rank.rank, left, kSaturation.id, ns, {Exposed::transfer});
                ns = 0;
                continue;
            }
            for (const auto& [id, claimed] : m_claims.transferExplanations(communicator)) {
                const auto most = m_certain.find(id);
                if (most == m_certain.end()) continue;
                const double replayed = savingOf(id, communicator);
                // The repair of one link leaves what other links of the communicator take: the replay knows how much
                // that is.
                const double part = std::min(
                    {ns, id == kSlowLink.id && replayed > 0 ? replayed : std::max(claimed, replayed), most->second});
                ns -= part - m_ledger.take(rank.rank, left, id, part, {Exposed::transfer});
            }
            const facts::CommRole role = m_analysis.layout.role(communicator);
            if (ns <= 0 || role == facts::CommRole::unknown || role == facts::CommRole::control) continue;
            const bool asItShould = m_healthy.contains(communicator);
            healthy = healthy && asItShould;
            if (asItShould && (role == facts::CommRole::activations || role == facts::CommRole::experts))
                activations += ns;
        }
        m_ledger.take(rank.rank, left, kActivations, activations, {Exposed::transfer});
        if (healthy) m_ledger.take(rank.rank, left, kEnds, endsNs(m_analysis, tasks, exposed), {Exposed::transfer});
    }

    void addExpected(const job::Finding& finding) {
        m_savings[finding.id] += std::max(0.0, finding.worthNs());
        if (!holdsOthersUp(finding.id)) return;
        for (const int root : finding.ranks)
            for (const auto& [key, ns] : m_analysis.delays.lostTo(root))
                m_lostTo[{finding.id, key.second}] += ns / static_cast<double>(m_analysis.steps.size());
    }

    /// What detectors' claims have not told of a finding: a step that its repair shortens by so much has so much less
    /// of what is exposed on every rank whose compute stays as it is; and what a rank loses to those that the finding
    /// names is the finding's, also where a repair gives it more work in exchange.
    void accountForSavings(int rank, Rest& left) {
        for (const auto& [id, ns] : m_savings) {
            const auto lost = m_lostTo.find({id, rank});
            const double missing = std::max(ns, lost == m_lostTo.end() ? 0 : lost->second) - m_ledger.taken[id];
            if (missing <= 0) continue;
            if (stallsOnHost(id))
                m_ledger.take(rank, left, id, missing,
                              {Exposed::idle, Exposed::waiting, Exposed::memory, Exposed::transfer});
            else
                m_ledger.take(rank, left, id, missing,
                              {Exposed::waiting, Exposed::transfer, Exposed::idle, Exposed::memory});
        }
    }

    bool namedBy(const std::string& id, int rank) const {
        const auto named = m_named.find(id);
        return named != m_named.end() && named->second.contains(rank);
    }

    double savingOf(const std::string& id, int64_t communicator) const {
        double most = 0;
        for (const job::Finding& finding : m_findings)
            if (finding.id == id && finding.communicator == communicator) most = std::max(most, finding.worthNs());
        return most;
    }

    Accounting judge() const;
    /// `together`: waiting and transfer, each too little to be named alone.
    Unexplained describe(Exposed category, double share, bool together = false) const;
    std::vector<WaitedFor> waitedFor() const;
    std::string idleText(const std::vector<int>& ranks, double leastShare) const;
    std::string doingText(const std::vector<int>& ranks) const;
    std::string settle(const Unexplained& open) const;

    const job::Analysis& m_analysis;
    const Claims& m_claims;
    const std::vector<job::Finding>& m_findings;
    std::map<std::string, double> m_certain;
    std::map<std::string, double> m_savings;  // of findings, ns per step
    std::map<std::pair<std::string, int>, double>
        m_lostTo;  // by finding and victim: what it loses to the ranks that the finding names, ns per step
    std::set<int64_t> m_saturated;                 // communicators whose volume a finding or note calls too much
    std::set<int64_t> m_healthy;                   // communicators that run as they should
    std::set<int> m_inPipelines;                   // ranks
    std::map<std::string, std::set<int>> m_named;  // by diagnosis: ranks that its findings name
    double m_bubble = 0;                           // of the schedule, share of the step
    double m_taken = 0;                            // by the bubble in the step at hand, ns
    Ledger m_ledger;
};

/// "the host launches late 36.5 %, …": of the steps of these ranks.
std::string Accountant::idleText(const std::vector<int>& ranks, double leastShare) const {
    std::map<size_t, double> causes;
    double steps = 0;
    for (int rank : ranks) {
        const facts::RankSummary* summary = m_analysis.findRank(rank);
        if (summary == nullptr) continue;
        for (size_t cause = 0; cause < summary->idleByCauseNs.size(); ++cause)
            causes[cause] += static_cast<double>(summary->idleByCauseNs[cause]);
        const auto step = m_ledger.stepOfRank.find(rank);
        steps += step == m_ledger.stepOfRank.end() ? 0 : step->second;
    }
    std::vector<std::pair<double, size_t>> parts;
    for (const auto& [cause, ns] : causes)
        if (steps > 0 && ns / steps >= leastShare) parts.emplace_back(ns / steps, cause);
    std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text;
    for (const auto& [share, cause] : parts)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                            facts::inWords(toText(static_cast<facts::IdleCause>(cause))), text::percentText(share));
    return text;
}

/// "in 'aten::cat' 7.1 %, …": what hosts were in, innermost, in long standstills of their devices, of the steps of
/// these ranks. Empty where nothing of it is recorded.
std::string Accountant::doingText(const std::vector<int>& ranks) const {
    std::map<int32_t, double> byName;
    double steps = 0;
    for (int rank : ranks) {
        const facts::RankSummary* summary = m_analysis.findRank(rank);
        if (summary == nullptr) continue;
        for (const facts::HostStall& stall : summary->hostStalls)
            if (stall.doing.nameId != 0 &&
                std::binary_search(m_analysis.steps.begin(), m_analysis.steps.end(), stall.step))
                byName[stall.doing.nameId] += static_cast<double>(std::min(stall.doing.ns, stall.stallNs));
        const auto step = m_ledger.stepOfRank.find(rank);
        steps += step == m_ledger.stepOfRank.end() ? 0 : step->second;
    }
    std::vector<std::pair<double, int32_t>> most;
    for (const auto& [name, ns] : byName)
        if (steps > 0 && ns / steps >= PriceThresholds::kNoteShare) most.emplace_back(ns / steps, name);
    std::stable_sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    if (most.size() > AccountingThresholds::kMostNamed) most.resize(AccountingThresholds::kMostNamed);
    std::string text;
    for (const auto& [share, name] : most)
        text += fmt::format("{}in '{}' {}", text.empty() ? "" : ", ", nameOr(m_analysis, name, "?"),
                            text::percentText(share));
    return text;
}

std::vector<WaitedFor> Accountant::waitedFor() const {
    // What is waited for a rank that a finding names is that finding's.
    const auto isExplained = [this](int rank) {
        return std::any_of(m_certain.begin(), m_certain.end(),
                           [&](const auto& entry) { return holdsOthersUp(entry.first) && namedBy(entry.first, rank); });
    };
    const auto lostTo = [this](int rank) {
        double sum = 0;
        for (const auto& [key, ns] : m_analysis.delays.lostTo(rank)) sum += ns;
        return sum;
    };
    double all = 0;
    for (const auto& [victim, ns] : m_analysis.delays.lostBy) all += ns;
    for (const job::Delay& delay : m_analysis.delays.byRank)
        if (isExplained(delay.rank)) all -= lostTo(delay.rank);
    std::vector<WaitedFor> most;
    for (const job::Delay& delay : m_analysis.delays.byRank) {
        const double of = isExplained(delay.rank) ? 0 : lostTo(delay.rank);
        if (of > 0 && all > 0 && of >= AccountingThresholds::kNamedShare * all) most.push_back({delay.rank, of / all});
    }
    std::stable_sort(most.begin(), most.end(),
                     [](const WaitedFor& a, const WaitedFor& b) { return a.share > b.share; });
    if (most.size() > AccountingThresholds::kMostNamed) most.resize(AccountingThresholds::kMostNamed);
    return most;
}

/// Long standstills of a rank's device in the analysed steps: "12 standstills of 1 ms or more, the longest 29.1 ms".
std::string standstillsText(const job::Analysis& analysis, const facts::RankSummary& rank) {
    constexpr int64_t kPauseNs = 1'000'000;  // launches take microseconds: a host that keeps its device waiting for
                                             // longer is doing something else
    size_t count = 0;
    int64_t longest = 0;
    for (const facts::IdleGap& gap : rank.idleGaps) {
        if (gap.durNs < kPauseNs || !std::binary_search(analysis.steps.begin(), analysis.steps.end(), gap.step))
            continue;
        ++count;
        longest = std::max(longest, gap.durNs);
    }
    return count == 0 ? std::string()
                      : fmt::format("{} standstill{} of 1 ms or more, the longest {}", count, count == 1 ? "" : "s",
                                    text::durationText(static_cast<double>(longest)));
}

std::string Accountant::settle(const Unexplained& open) const {
    for (const job::Finding& finding : m_findings) {
        const bool communicates = familyOf(finding.id) == Family::communication || finding.id == kExposedP2p.id;
        const bool stands = familyOf(finding.id) != Family::communication;
        if (finding.verdict == job::Verdict::inconclusive && finding.severity >= open.share / 2 &&
            (open.category == Exposed::transfer || open.category == Exposed::communication ? communicates : stands))
            return fmt::format("what {} below lacks to be certain: {}", finding.id, finding.whyInconclusive);
    }
    Exposed category = open.category;
    // Waiting and transfer that are little each but told apart: the larger of them is to be settled.
    if (category == Exposed::communication && m_ledger.rest[at(category)] <= 0)
        category = m_ledger.rest[at(Exposed::transfer)] >= m_ledger.rest[at(Exposed::waiting)] ? Exposed::transfer
                                                                                               : Exposed::waiting;
    switch (category) {
        case Exposed::communication:
            return "recordings of the ranks it communicates with, which tell waiting from transfer";
        case Exposed::transfer: {
            const std::string communicators = withoutCommunicators(m_analysis);
            if (!communicators.empty())
                return "communicators and sizes of the messages (recorded by NCCL's calls; Kineto: record_shapes or a "
                       "newer PyTorch)";
            const auto slow = std::find_if(m_findings.begin(), m_findings.end(), [&](const job::Finding& finding) {
                return finding.id == kSlowLink.id &&
                       std::any_of(finding.ranks.begin(), finding.ranks.end(), [&](int rank) {
                           return std::find(open.ranks.begin(), open.ranks.end(), rank) != open.ranks.end();
                       });
            });
            if (slow != m_findings.end())
                return fmt::format("the repair of the link that {} names ({}): these messages may go over it, too",
                                   slow->id, text::ranksText(slow->ranks));
            const std::string peak = withoutLinkPeak(m_analysis, {});
            return peak.empty() ? "what these messages carry, and whether compute needs them where they are: no "
                                  "diagnosis knows this pattern"
                                : std::string("the peak of the links, which tells a slow link from too many bytes: ") +
                                      costs::kTellLinks;
        }
        case Exposed::waiting: {
            if (open.waitedFor.empty()) return "arrival times of the ranks that are waited for";
            std::vector<int> late;
            for (const WaitedFor& waited : open.waitedFor) late.push_back(waited.rank);
            for (int rank : late) {
                const facts::RankSummary* summary = m_analysis.findRank(rank);
                if (summary != nullptr && !summary->hostIsKnown)
                    return fmt::format("calls of the hosts of {}: why they come late", text::ranksText(late));
            }
            return fmt::format("what {} {} meanwhile: CPU samples of {} process{} (perf sched, py-spy), more steps",
                               text::ranksText(late), late.size() == 1 ? "does" : "do",
                               late.size() == 1 ? "its" : "their", late.size() == 1 ? "" : "es");
        }
        case Exposed::memory:
            return "which copies these are, and from what memory: sizes and kinds of the copies, and host calls around "
                   "them";
        case Exposed::idle: {
            const std::string calls = withoutHostCalls(m_analysis);
            if (!calls.empty()) return "calls of the host (launches): without them nothing tells why the device idles";
            return "what the hosts do while the device idles: named ranges (NVTX) or CPU samples (perf, py-spy)";
        }
    }
    return {};
}

Unexplained Accountant::describe(Exposed category, double share, bool together) const {
    Unexplained open;
    open.category = category;
    open.share = share;
    open.nsPerStep = share * m_analysis.stepNs;
    for (const auto& [rank, rest] : m_ledger.byRank) {
        const double ns =
            rest[at(category)] + (together ? rest[at(Exposed::waiting)] + rest[at(Exposed::transfer)] : 0);
        if (ns >= share / 2 * m_ledger.stepOfRank.at(rank)) open.ranks.push_back(rank);
    }
    if (category == Exposed::waiting || together) {
        open.waitedFor = waitedFor();
        for (const WaitedFor& waited : open.waitedFor) {
            const facts::RankSummary* summary = m_analysis.findRank(waited.rank);
            if (summary == nullptr) continue;
            const std::string idle = idleText({waited.rank}, PriceThresholds::kFloorShare);
            const std::string pauses = standstillsText(m_analysis, *summary);
            if (!idle.empty())
                open.facts.push_back(fmt::format("the device of rank {} idles meanwhile, in % of its step: {}{}",
                                                 waited.rank, idle, pauses.empty() ? "" : "; " + pauses));
        }
    }
    if (category == Exposed::waiting && isByCalls(m_analysis))
        open.facts.emplace_back(
            "no kernels were recorded (light mode): part of it, or all, may run beside work of the ranks that wait");
    if (category == Exposed::idle) {
        if (const std::string idle = idleText(open.ranks, PriceThresholds::kNoteShare); !idle.empty())
            open.facts.push_back("idle by cause: " + idle);
        if (const std::string doing = doingText(open.ranks); !doing.empty())
            open.facts.push_back("the host was meanwhile " + doing + " (standstills of 1 ms or more)");
    }
    open.settle = settle(open);
    return open;
}

Accounting Accountant::judge() const {
    Accounting result;
    if (m_ledger.stepNs <= 0) return result;
    for (size_t c = 0; c < kCategories; ++c) {
        Account account{static_cast<Exposed>(c),
                        m_ledger.total[c] / m_ledger.stepNs,
                        {},
                        std::max(0.0, m_ledger.rest[c] / m_ledger.stepNs)};
        for (const auto& [by, ns] : m_ledger.parts[c]) {
            account.parts.push_back({by, m_certain.count(by) != 0, ns / m_ledger.stepNs});
        }
        std::stable_sort(account.parts.begin(), account.parts.end(),
                         [](const AccountPart& a, const AccountPart& b) { return a.share > b.share; });
        // What a light recording shows besides is the program's own work, and communication that it may hide.
        const bool isTold = !isLight(m_analysis) || account.category == Exposed::waiting;
        if (isTold && account.unexplained > AccountingThresholds::kWorthSaying)
            result.unexplained.push_back(describe(account.category, account.unexplained));
        result.accounts.push_back(std::move(account));
    }
    const auto& waiting = result.accounts[at(Exposed::waiting)];
    const auto& transfer = result.accounts[at(Exposed::transfer)];
    const auto& unsplit = result.accounts[at(Exposed::communication)];
    const bool alone = std::any_of(result.unexplained.begin(), result.unexplained.end(),
                                   [](const Unexplained& open) { return open.category <= Exposed::communication; });
    const double together = waiting.unexplained + transfer.unexplained + unsplit.unexplained;
    if (!alone && !isLight(m_analysis) && together > AccountingThresholds::kWorthSaying)
        result.unexplained.push_back(describe(Exposed::communication, together, true));
    std::stable_sort(result.unexplained.begin(), result.unexplained.end(),
                     [](const Unexplained& a, const Unexplained& b) { return a.share > b.share; });

    const auto byTheory = [](const Account& account) {
        return std::any_of(account.parts.begin(), account.parts.end(),
                           [](const AccountPart& part) { return !part.finding; });
    };
    const double exposed = waiting.share + transfer.share + unsplit.share;
    for (const Account& account : result.accounts) {
        const bool communication = account.category <= Exposed::communication;
        if ((communication ? exposed : account.share) > AccountingThresholds::kWorthSaying &&
            account.share >= PriceThresholds::kNoteShare && byTheory(account))
            result.said.push_back(account);
    }
    return result;
}

}  // namespace

std::string_view toText(Exposed category) {
    switch (category) {
        case Exposed::waiting:
            return "waiting";
        case Exposed::transfer:
            return "transfer";
        case Exposed::communication:
            return "communication";
        case Exposed::memory:
            return "memory";
        case Exposed::idle:
            return "idle";
    }
    return "unknown";
}

Accounting accountFor(const job::Analysis& analysis, const Claims& claims, const std::vector<job::Finding>& findings) {
    return Accountant(analysis, claims, findings).run();
}

}  // namespace rankscope::diagnose
