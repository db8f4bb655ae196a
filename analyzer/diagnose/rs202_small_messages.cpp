// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/diagnose/critical_step.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/gradient_plan.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs202 {
namespace {

constexpr Threshold kFewestMessages{"fewest messages", 8, "per step", "a handful of small messages is no storm"};
constexpr Threshold kGapShare{"gap share", 0.5, "of a message's time",
                              "with longer gaps something in between needs them apart"};
constexpr Threshold kHostCallUs{
    "host call", 50, "us",
    "gap up to which messages that start when they are called are apart for the host's calls alone"};
constexpr Threshold kAlphaShare{"alpha share", 0.5, "of a message's time",
                                "from here on start-up costs more than bytes: the size is under n*"};
constexpr double kMebi = 1024.0 * 1024.0;

/// Small messages of one op and type that follow each other closely enough to be one: indices into step.tasks.
std::vector<size_t> mergeable(const job::Analysis& analysis, const CriticalStep& step, const costs::CostFit& fit,
                              double byteNs) {
    // Sums of other gradients, on a stream of their own, may run among them: they do not need each other's results.
    const auto adjacent = [&](size_t before, size_t i) {
        return std::all_of(step.tasks.begin() + static_cast<std::ptrdiff_t>(before) + 1,
                           step.tasks.begin() + static_cast<std::ptrdiff_t>(i), [&](const facts::CommTask& between) {
                               return between.streamId != step.tasks[i].streamId &&
                                      roleOf(analysis, between) == facts::CommRole::gradients;
                           });
    };
    std::vector<size_t> result;
    std::vector<size_t> run;
    const auto flush = [&] {
        if (static_cast<int>(run.size()) >= 2) result.insert(result.end(), run.begin(), run.end());
        run.clear();
    };
    for (size_t i : step.own) {
        const facts::CommTask& task = step.tasks[i];
        const bool small =
            task.op == fit.op && task.bytes > 0 &&
            byteNs * static_cast<double>(task.bytes) < (1 - kAlphaShare) * fit.timeNs(static_cast<double>(task.bytes));
        if (!small) {
            flush();
            continue;
        }
        if (!run.empty()) {
            const facts::CommTask& previous = step.tasks[run.back()];
            const double gap = static_cast<double>(task.startNs - previous.endNs);
            // One that starts when it is called was kept from following at once by the host alone, busy with calling
            // the one before it.
            const bool asCalled = task.launchNs >= 0 && task.startNs - task.launchNs <= (1e3 * kHostCallUs);
            const double allowed =
                std::max(kGapShare * static_cast<double>(task.transferNs()), asCalled ? (1e3 * kHostCallUs) : 0);
            const bool follows = adjacent(run.back(), i) && task.dataType == previous.dataType && gap <= allowed;
            if (!follows) flush();
        }
        run.push_back(i);
    }
    flush();
    return result;
}

/// Start-up that configured links explain at most (half as much again for what is unknown about them); more is a slow
/// link. Of a link that tells no start-up the usual one counts; unlimited without a link.
double longestStartupNs(const job::Analysis& analysis, const facts::Communicator& communicator, store::Op op) {
    constexpr double kSpread = 1.5;
    const std::optional<costs::LinkModel> link = costs::linkWithLatency(analysis.peaks, communicator, op);
    if (!link) return std::numeric_limits<double>::infinity();
    return kSpread * costs::latencyHops(*link, op, communicator.size, {}).high * link->alphaNs;
}

/// A bucket size, and what the steps save with it.
struct Proposal {
    double bucketBytes = 0;
    std::vector<double> savings;  // per step
    bool replayed = false;
};

job::Change buckets(double bytes) {
    return {"buckets", {{"mb", fmt::format("{:g}", bytes / kMebi)}}};
}

/// The power of two that saves most in the replayed job, of sizes that save alike the smallest. Where none can be
/// played, one whose start-up is a quarter of its time, at which the messages save their start-up.
Proposal bestBucket(const job::Analysis& analysis, const costs::CostFit& fit, const std::vector<double>& counts,
                    double messageBytes) {
    constexpr double kMost = 512 * kMebi;
    Proposal best;
    double bucket = kMebi;
    while (bucket < fit.crossoverBytes() && bucket < kMost) bucket *= 2;
    const double largest = std::clamp(2 * messageBytes, bucket, kMost);
    for (double bytes = bucket; bytes <= largest; bytes *= 2) {
        std::optional<std::vector<double>> savings = savingsAlone(analysis, {buckets(bytes)});
        if (savings && (!best.replayed || facts::median(*savings) >= facts::median(best.savings) +
                                                                         PriceThresholds::kNoteShare * analysis.stepNs))
            best = {bytes, std::move(*savings), true};
    }
    if (best.replayed) return best;
    best.bucketBytes = std::min(4 * bucket, kMost);
    for (double count : counts) best.savings.push_back(count * fit.alphaNs);
    return best;
}

void detectSmallMessages(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    const std::vector<CommunicatorClass> classes = communicatorClasses(analysis);
    std::set<int64_t>
        merged;  // communicators whose buckets a replay has merged: their other operations are in the same buckets
    for (const costs::CostFit& fit : analysis.cost.lines()) {
        if (merged.count(fit.communicatorId) != 0) continue;
        const facts::CommRole role = analysis.layout.role(fit.communicatorId);
        if (role != facts::CommRole::gradients && role != facts::CommRole::shardedParameters)
            continue;  // the others' calls need each other's results
        const facts::Communicator& communicator = analysis.facts.communicators.at(fit.communicatorId);
        // Sibling groups run in parallel: one finding, from the first.
        const auto where = std::find_if(classes.begin(), classes.end(),
                                        [&](const CommunicatorClass& c) { return c.first->id == communicator.id; });
        if (where == classes.end()) continue;
        // Where the peak is the prior, all that a slow link or protocol adds looks like start-up.
        if (fit.source != "fit" && (claims.explainedTransferNs(communicator.id, "RS202") > 0 ||
                                    fit.alphaNs > longestStartupNs(analysis, communicator, fit.op)))
            continue;
        const std::vector<CriticalStep> steps = criticalSteps(analysis, where->ids);
        // Large messages get a faster protocol, too: what a byte costs in them is the link's rate, unless that is known
        // to be out of reach.
        double byteNs = fit.betaNsPerByte;
        if (fit.ceiling && claims.explainedTransferNs(communicator.id, "RS202") <= 0)
            byteNs = std::min(byteNs, facts::busFactor(fit.op, communicator.size) / *fit.ceiling);
        std::vector<std::vector<size_t>> runs;
        std::vector<double> counts, exposed, bytes;
        for (const CriticalStep& step : steps) {
            runs.push_back(mergeable(analysis, step, fit, byteNs));
            double exposedNs = 0, total = 0, besideStalls = 0;
            for (size_t i : runs.back()) {
                exposedNs += static_cast<double>(step.tasks[i].exposedTransferNs);
                besideStalls += step.besideHostStallsNs(step.tasks[i]);
                total += static_cast<double>(step.tasks[i].bytes);
            }
            exposedNs -=
                std::min(besideStalls, claimedByHostNs(claims, step.rank->rank, step.tasks[step.own.front()].step));
            counts.push_back(static_cast<double>(runs.back().size()));
            exposed.push_back(exposedNs);
            bytes.push_back(total);
        }
        if (facts::median(counts) < kFewestMessages || facts::median(exposed) <= 0) continue;
        Proposal proposal = bestBucket(analysis, fit, counts, facts::median(bytes));
        // What is not exposed cannot be saved, but where calls of small messages keep the host from launching compute.
        if (!proposal.replayed)
            for (size_t s = 0; s < proposal.savings.size(); ++s)
                proposal.savings[s] = std::min(proposal.savings[s], exposed[s]);
        if (facts::median(proposal.savings) <= 0) continue;

        job::Finding finding;
        finding.id = "RS202";
        finding.ranks = where->ranks;
        finding.affectedRanks = finding.ranks;
        finding.communicator = communicator.id;
        setCost(analysis, proposal.savings, finding);
        setTypicalStep(analysis, proposal.savings, steps.front().rank->rank, finding);
        const double size = facts::median(bytes) / facts::median(counts);
        const bool reached = fit.source != "fit" && analysis.peaks.atLeast(communicator);
        finding.cause = fmt::format("{:.0f} {} calls of about {} per step pay {}{} of start-up each",
                                    facts::median(counts), store::toText(fit.op), text::bytesText(size),
                                    reached ? "at least " : "", text::durationText(fit.alphaNs));
        finding.evidence.facts = {
            fmt::format("alpha {}, beta {:.3g} ns/KiB ({}): n* = {}, the messages are {:.1f} times smaller",
                        text::durationText(fit.alphaNs), fit.betaNsPerByte * 1024, fit.source,
                        text::bytesText(fit.crossoverBytes()), fit.crossoverBytes() / std::max(1.0, size)),
            fmt::format("start-up takes {} of every step, {} of the messages' transfer is exposed",
                        text::durationText(facts::median(counts) * fit.alphaNs),
                        text::durationText(facts::median(exposed))),
        };
        finding.evidence.numbers = {{"messages_per_step", facts::median(counts)},
                                    {"message_bytes", size},
                                    {"alpha_ns", fit.alphaNs},
                                    {"crossover_bytes", fit.crossoverBytes()},
                                    {"exposed_transfer_ns_per_step", facts::median(exposed)},
                                    {"proposed_bucket_bytes", proposal.bucketBytes}};
        const CriticalStep& shown = shownStep(analysis, steps, finding);
        addExposedRows(shown, runs[static_cast<size_t>(&shown - steps.data())], 3, "one of the small messages",
                       finding);
        const double megabytes = proposal.bucketBytes / kMebi;
        // Not every step has such messages: DDP deals out its buckets anew behind the first one.
        const auto some = std::ranges::find_if(runs, [](const auto& run) { return !run.empty(); });
        const CriticalStep& seen = steps[static_cast<size_t>(some - runs.begin())];
        const int elementBytes =
            std::max(1, store::elementBytes(seen.tasks[some->front()].dataType));  // DeepSpeed counts elements
        finding.fix = {fmt::format("merge them into buckets of {:.0f} MiB: DDP bucket_cap_mb={:.0f}; DeepSpeed "
                                   "reduce_bucket_size={:.0f}; FSDP: wrap larger units",
                                   megabytes, megabytes, proposal.bucketBytes / elementBytes),
                       "or communicate less often: gradient accumulation with no_sync()"};
        if (finding.verdict == job::Verdict::found)
            for (int64_t id : where->ids) claims.takeTransfer("RS202", id, finding.costNs);
        if (proposal.replayed && finding.verdict == job::Verdict::found)
            merged.insert(where->ids.begin(), where->ids.end());
        findings.push_back(std::move(finding));
    }
}

std::string missingForSmallMessages(const job::Analysis& analysis) {
    const std::string communicators = withoutCommunicators(analysis);
    if (!communicators.empty()) return communicators;
    const std::string sizes = withoutSizes(analysis, {facts::CommRole::gradients, facts::CommRole::shardedParameters});
    if (!sizes.empty()) return sizes;
    if (!analysis.cost.lines().empty()) return {};
    const std::string peak =
        withoutLinkPeak(analysis, {facts::CommRole::gradients, facts::CommRole::shardedParameters});
    return peak.empty() ? peak : "messages of several sizes, or a link peak";
}

Changes merged(const job::Analysis&, const job::Finding& f) {
    const std::optional<double> bytes = number(f, "proposed_bucket_bytes");
    return bytes ? Changes{buckets(*bytes)} : Changes();
}

}  // namespace

const Diagnosis kSmallMessages{
    .id = "RS202",
    .title = "small-message storm",
    .definition =
        "Many collectives of one communicator, op and type that follow each other, each under n* = alpha/beta: "
        "start-up takes more of their time than bytes do, and they are exposed. alpha and beta are fitted to the run's "
        "own collectives, or taken from the link peak where the sizes differ by less than 4x. The saving is what the "
        "step gains when they are merged into the proposed bucket.",
    .thresholds = {kFewestMessages, kGapShare, kHostCallUs, kAlphaShare},
    .falsePositives =
        "Calls that need each other's results cannot be merged: tensor-parallel all-reduces and all-to-alls are left "
        "out. Small messages that hide behind compute cost nothing.",
    .fix = "The bucket size named in the finding; gradient accumulation; fusing parameters.",
    .hasSettings = true,
    .hint =
        "The communication lane is cut into many short messages; each pays the same start-up, whatever its size. "
        "Framed are some of them.",
    .detect = detectSmallMessages,
    .missing = missingForSmallMessages,
    .repair = merged,
};

}  // namespace rs202
}  // namespace rankscope::diagnose
