// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/gradient_plan.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/comm_usage.h"
#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs201 {
namespace {

constexpr Threshold kBucketMebi{"bucket", 25, "MiB", "bucket the saving is predicted with: DDP's default"};
constexpr Threshold kSlackUs{
    "launched too late", 20, "us",
    "from data to call, and from call to kernel: a launch takes 5 to 10 us, and events are signalled in some us"};
constexpr Threshold kLateCallShare{"late call share", 0.5, "of what overlap would save",
                                   "with less than half of it late calls are not the cause"};
constexpr Threshold kOverlapTarget{"overlap target", 0.8, "of communication hidden",
                                   "the field's target: above it overlap is good"};

/// What could have been hidden in one step, and by which of the mistakes.
struct Hideable {
    double ns = 0;
    double gatherNs = 0;   // all-gathers that could start during the compute before them
    double scatterNs = 0;  // reduce-scatters that the compute behind them did not have to wait for
    double returnNs = 0;   // all-gathers of updated parameters that the next forward pass could hide
    size_t gathers = 0;    // all-gathers of shards
    size_t due = 0;        // of them: run mostly after the compute that could hide them, when their layer waits
    size_t awaited = 0;    // sums of gradients that stop the backward pass, which does not need them
    bool sameStream = false;
    bool oneMessage = false;
    bool late = false;
};

/// Of all gradients, those in one bucket. Without sizes eight buckets stand for any sensible number.
double bucketShare(double bytes) {
    return bytes > 0 ? std::min(1.0, kBucketMebi * 1024 * 1024 / bytes) : 1.0 / 8;
}

/// Gradients leave during backward as they appear: it hides no more of them than it is long. Nothing is claimed when
/// they do leave then: what is exposed is the tail or the volume.
Hideable hideableGradients(const CriticalStep& step) {
    Hideable result;
    const GradientPlan plan = planOf(step);
    result.oneMessage = plan.messages == 1;
    result.late = plan.lateness() > GradientPlan::kLateStart;
    if (!result.late) return result;
    const double hideable = plan.transferNs * (1 - bucketShare(plan.bytes));  // the last bucket follows backward
    result.ns = std::min({hideable, plan.backwardNs(), step.exposedTransferNs()});
    return result;
}

/// The message has the device to itself: nothing computes beside it, and no other message runs that compute may be
/// waiting for instead.
bool standsAlone(const CriticalStep& step, const facts::CommTask& task) {
    if (static_cast<double>(task.computeAtEndNs - task.computeBeforeNs) >
        facts::CommUsage::kStill * static_cast<double>(task.transferNs()))
        return false;
    return std::ranges::none_of(step.tasks, [&](const facts::CommTask& other) {
        return other.kernelId != task.kernelId && other.startNs < task.endNs && other.endNs > task.startNs;
    });
}

/// Gradients that leave in time, but backward stands still until they are summed, although nothing needs the sums
/// before it is over (a hook that waits for its own message, a back-end that does so on the device). Left alone, they
/// would run one after the other beside it: what is then left at its end is not hidden. `stallsNs`: what the host was
/// charged with.
void addAwaited(const CriticalStep& step, double stallsNs, Hideable& result) {
    const double backwardEnd = planOf(step).backwardEnd;
    double exposed = 0, besideStalls = 0, networkFree = 0;
    for (size_t i : step.own) {
        const facts::CommTask& task = step.tasks[i];
        networkFree =
            std::max(networkFree, static_cast<double>(task.computeBeforeNs)) + static_cast<double>(task.transferNs());
        if (static_cast<double>(task.computeAtEndNs) >= backwardEnd || !standsAlone(step, task)) continue;
        ++result.awaited;
        exposed += static_cast<double>(task.exposedTransferNs);
        besideStalls += step.besideHostStallsNs(task);
    }
    const double left = std::max(0.0, networkFree - backwardEnd);
    result.ns = std::max(0.0, exposed - std::min(besideStalls, stallsNs) - left);
}

/// ZeRO-1 and 2: updated parameters may return under the next forward pass, all but the bucket that its first layer
/// waits for. `claimedNs` of what is exposed the host was charged with.
double hideableReturn(const CriticalStep& step, const std::set<int64_t>& communicators, double claimedNs) {
    double exposed = 0, transfer = 0, bytes = 0, besideStalls = 0;
    double among = 0;  // compute from one all-gather to the next
    const facts::CommTask* previous = nullptr;
    for (const facts::CommTask& task : step.tasks) {
        if (communicators.count(task.communicatorId) == 0) continue;
        const facts::CommTask* before = std::exchange(previous, &task);
        if (task.op != store::Op::allGather) continue;
        if (before != nullptr && before->op == task.op)
            among += static_cast<double>(task.computeBeforeNs - before->computeBeforeNs);
        exposed += static_cast<double>(task.exposedTransferNs);
        transfer += static_cast<double>(task.transferNs());
        bytes += static_cast<double>(std::max<int64_t>(task.bytes, 0));
        besideStalls += step.besideHostStallsNs(task);
    }
    exposed -= std::min(besideStalls, claimedNs);
    if (exposed <= (1 - kOverlapTarget) * transfer) return 0;
    const double first = transfer * bucketShare(bytes);
    // Forward that has begun among them hides what it can: only what runs between them is left. Else the whole of it is
    // to come.
    const bool begun = among > (1 - kOverlapTarget) * transfer;
    const double room = (begun ? among : planOf(step).backwardStart) - (transfer - exposed);
    return std::max(0.0, std::min(exposed - first, room));
}

/// Sharded parameters: an all-gather may run under the compute before it, a reduce-scatter under the compute behind it.
/// Each stretch of compute without communication hides only as much as it is long. The last reduction is followed by
/// the optimizer, which needs it. Of a hybrid sharding the reductions are the reduce-scatter of a shard and the
/// all-reduce of it between the replicas.
Hideable hideableShards(const CriticalStep& step) {
    Hideable result;
    // Sums of gradients: scattered, or added up between replicas. An all-reduce among those that scatter is another
    // thing, a norm that waits for all of them.
    std::set<int64_t> scatters;
    for (size_t i : step.own)
        if (step.tasks[i].op == store::Op::reduceScatter) scatters.insert(step.tasks[i].communicatorId);
    const auto sums = [&](const facts::CommTask& task) {
        return task.op == store::Op::reduceScatter ||
               (task.op != store::Op::allGather && scatters.count(task.communicatorId) == 0);
    };
    size_t lastScatter = step.tasks.size();
    for (size_t i : step.own)
        if (sums(step.tasks[i])) lastScatter = i;
    std::vector<double> gap(step.tasks.size() + 1, 0);  // gap[i]: compute without communication in front of task i
    for (size_t i = 0; i < step.tasks.size(); ++i) gap[i] = static_cast<double>(step.tasks[i].idleNetworkBeforeNs);
    const auto take = [&](size_t at, double wanted) {
        const double taken = std::min(gap[at], wanted);
        gap[at] -= taken;
        return taken;
    };
    for (size_t i : step.own) {
        const facts::CommTask& task = step.tasks[i];
        const auto exposed = static_cast<double>(task.exposedTransferNs);
        if (task.op == store::Op::allGather) {
            ++result.gathers;
            if (exposed > static_cast<double>(task.transferNs()) / 2) ++result.due;
        }
        if (exposed <= 0) continue;
        if (task.op == store::Op::allGather) {
            for (size_t at = i + 1; at-- > 0;) {
                if (step.tasks[at].idleNetworkBeforeNs == 0) continue;  // follows another communication at once
                result.gatherNs += take(at, exposed);
                break;
            }
        } else if (i != lastScatter && sums(task)) {
            for (size_t at = i + 1; at <= lastScatter && at < step.tasks.size(); ++at) {
                if (step.tasks[at].idleNetworkBeforeNs == 0) continue;
                result.scatterNs += take(at, exposed);
                break;
            }
        }
    }
    result.ns = result.gatherNs + result.scatterNs;
    return result;
}

/// Adds what replicas of the shards reduce among themselves to the steps' own collectives: it follows the
/// reduce-scatters and hides, or not, as they do.
void addReplicas(const job::Analysis& analysis, std::vector<CriticalStep>& steps) {
    for (CriticalStep& step : steps) {
        for (size_t i = 0; i < step.tasks.size(); ++i)
            if (roleOf(analysis, step.tasks[i]) == facts::CommRole::replicas) step.own.push_back(i);
        std::sort(step.own.begin(), step.own.end());
    }
}

/// Communication whose host calls come late: its data are there, its stream is free, compute goes on or has nothing
/// more to do, and the kernel starts only when it is called.
struct LateLaunch {
    double savedNs = 0;     // of the step, with calls in time
    size_t calls = 0;       // of the communicators, with known readiness
    size_t late = 0;        // of them: began as soon as they were called, well after their data were there
    double latenessNs = 0;  // median of the late ones
};

/// Of the step's own tasks.
LateLaunch lateLaunch(const CriticalStep& step) {
    LateLaunch result;
    std::vector<double> lateness;
    double exposedLateNs = 0;
    int64_t streamFreeNs = 0;
    for (size_t i : step.own) {
        const facts::CommTask& task = step.tasks[i];
        if (task.readyNs < 0) continue;
        ++result.calls;
        const double late = static_cast<double>(task.launchNs - std::max(task.readyNs, streamFreeNs));
        streamFreeNs = task.endNs;
        if (late <= 1e3 * kSlackUs || static_cast<double>(task.startNs - task.launchNs) > 1e3 * kSlackUs) continue;
        ++result.late;
        lateness.push_back(late);
        if (task.exposedTransferNs > 0)  // else compute hides it
            exposedLateNs += static_cast<double>(task.launchNs - task.readyNs);
    }
    if (result.late == 0) return result;
    result.latenessNs = facts::median(lateness);
    result.savedNs =
        std::min(exposedLateNs, static_cast<double>(step.attribution->stepNs - step.attribution->computeNs));
    return result;
}

/// Median over the steps.
template <typename Number>
double medianOf(const std::vector<Hideable>& steps, Number Hideable::*member) {
    std::vector<double> numbers;
    for (const Hideable& step : steps) numbers.push_back(static_cast<double>(step.*member));
    return facts::median(numbers);
}

void explainGradients(const std::vector<Hideable>& steps, bool sameStream, job::Finding& finding) {
    const double awaited = medianOf(steps, &Hideable::awaited);
    const bool one = std::ranges::all_of(steps, &Hideable::oneMessage);
    if (one) finding.evidence.numbers.emplace_back("proposed_bucket_bytes", kBucketMebi * 1024 * 1024);
    if (awaited > 0 && !sameStream) {
        finding.cause = fmt::format(
            "backward stands still behind {:.0f} reductions of a step until they are over, although nothing needs "
            "their sums before the optimizer",
            awaited);
        finding.evidence.numbers.emplace_back("awaited_per_step", awaited);
        finding.fix = {"own communication hooks: return the future of the reduction instead of waiting for it",
                       "DDP of PyTorch 2.15, whose new NCCL back-end lets the compute stream wait behind each "
                       "all-reduce: TORCH_DIST_USE_NCCL2=0 chooses the former one"};
        return;
    }
    if (sameStream) {
        finding.cause =
            "gradients are communicated on the compute stream: compute and communication exclude each other";
    } else {
        finding.cause = one ? "one bucket: all gradients leave in a single message after backward"
                            : "all gradient communication starts only after backward: overlap is off";
        if (medianOf(steps, &Hideable::returnNs) > 0)
            finding.cause += one ? ", and return as parameters in one more that forward waits for"
                                 : "; updated parameters return before forward begins, not under it";
    }
    finding.fix = {fmt::format("DDP: bucket_cap_mb={:.0f} and the default hooks (do not reduce by hand after "
                               "backward())",
                               kBucketMebi),
                   "DeepSpeed: \"overlap_comm\": true, \"reduce_bucket_size\": 25e6; Megatron: --overlap-grad-reduce"};
}

void explainParameters(const std::vector<Hideable>& steps, bool sameStream, job::Finding& finding) {
    if (sameStream) {
        finding.cause =
            "parameters and gradients are communicated on the compute stream: compute and communication exclude each "
            "other";
    } else {
        const double all = medianOf(steps, &Hideable::gathers), due = medianOf(steps, &Hideable::due);
        // Where most gathers hide, somebody prefetches: the others are out of its reach.
        finding.cause = due > all / 2
                            ? "prefetch is off: each all-gather starts only when its layer is due"
                            : fmt::format(
                                  "{:.0f} of {:.0f} all-gathers of a step are not under the compute before them, where "
                                  "prefetch does not reach",
                                  due, all);
        if (medianOf(steps, &Hideable::scatterNs) > medianOf(steps, &Hideable::gatherNs) / 4)
            finding.cause += ", and compute waits for the reduce-scatters in front of it too";
    }
    finding.fix = {
        "FSDP: forward_prefetch=True, backward_prefetch=BackwardPrefetch.BACKWARD_PRE, limit_all_gathers as default",
        "FSDP2: set_modules_to_forward_prefetch / set_modules_to_backward_prefetch; DeepSpeed: \"overlap_comm\": true, "
        "stage3_prefetch_bucket_size"};
}

void explain(const std::vector<Hideable>& steps, facts::CommRole role, job::Finding& finding) {
    const bool sameStream = std::ranges::all_of(steps, &Hideable::sameStream);
    (role == facts::CommRole::gradients ? explainGradients : explainParameters)(steps, sameStream, finding);
    finding.evidence.numbers.emplace_back("all_gather_hideable_ns", medianOf(steps, &Hideable::gatherNs));
    finding.evidence.numbers.emplace_back("reduce_scatter_hideable_ns", medianOf(steps, &Hideable::scatterNs));
}

void explainLate(const std::vector<LateLaunch>& steps, job::Finding& finding) {
    std::vector<double> calls, late, lateness;
    for (const LateLaunch& step : steps) {
        calls.push_back(static_cast<double>(step.calls));
        late.push_back(static_cast<double>(step.late));
        lateness.push_back(step.latenessNs);
    }
    finding.cause = fmt::format(
        "launched too late: the host calls {:.0f} of {:.0f} collectives of a step only {} after their data are there "
        "(median), and they start at once",
        facts::median(late), facts::median(calls), text::durationText(facts::median(lateness)));
    finding.fix = {
        "call communication where its data are made (DDP's hooks, FSDP's pre- and post-hooks), not from a thread or a "
        "callback that runs later",
        "look at what the host does meanwhile on the launching thread (garbage collection, logging, other processes on "
        "its core): pin it, or move that work away"};
    finding.evidence.numbers.emplace_back("late_calls_per_step", facts::median(late));
    finding.evidence.numbers.emplace_back("lateness_ns", facts::median(lateness));
}

/// What calls in time would save per step, beyond what a host that stalls as a whole has been charged with (RS4xx,
/// RS303).
std::vector<double> lateCosts(const job::Analysis& analysis, const Claims& claims,
                              const std::vector<CriticalStep>& steps, const std::vector<LateLaunch>& late) {
    std::vector<double> costs;
    for (size_t s = 0; s < steps.size(); ++s)
        costs.push_back(std::max(0.0, late[s].savedNs - claims.explainedNs(analysis, steps[s].rank->rank)));
    return costs;
}

void detectPoorOverlap(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    for (const CommunicatorClass& where : communicatorClasses(analysis)) {
        const facts::CommRole role = where.role;
        if (role != facts::CommRole::gradients && role != facts::CommRole::shardedParameters &&
            role != facts::CommRole::replicas)
            continue;
        const int64_t id = where.first->id;
        std::vector<CriticalStep> steps = criticalSteps(analysis, where.ids);
        std::vector<LateLaunch> late;
        for (const CriticalStep& step : steps) late.push_back(lateLaunch(step));
        const std::vector<double> whenInTime = lateCosts(analysis, claims, steps, late);
        const std::vector<CriticalStep> all = steps;
        if (role == facts::CommRole::gradients) keepReductions(steps);
        if (role == facts::CommRole::shardedParameters) addReplicas(analysis, steps);
        if (all.empty()) continue;
        std::vector<Hideable> hideable;
        std::vector<double> costs, exposed, overlap;
        for (const CriticalStep& step : steps) {
            if (role == facts::CommRole::replicas)
                break;  // they follow the reduce-scatters of their shards: what overlaps is told there
            Hideable h = role == facts::CommRole::gradients ? hideableGradients(step) : hideableShards(step);
            h.sameStream = std::all_of(step.own.begin(), step.own.end(),
                                       [&](size_t i) { return step.tasks[i].streamId == step.rank->computeStreamId; });
            if (role == facts::CommRole::gradients) {
                const double byHost = claimedByHostNs(claims, step.rank->rank, step.tasks[step.own.front()].step);
                // The stages of a pipeline wait for each other between their passes, too.
                if (!h.late && analysis.layout.pipelineOf(step.rank->rank) == nullptr) addAwaited(step, byHost, h);
                h.returnNs = hideableReturn(step, where.ids, byHost);
            }
            hideable.push_back(h);
            costs.push_back(h.ns);
            overlap.push_back(step.transferNs() > 0 ? 1 - step.exposedTransferNs() / step.transferNs() : 1);
        }
        const bool overlapIsGood = facts::median(overlap) > kOverlapTarget;
        for (size_t s = 0; s < costs.size(); ++s) costs[s] = (overlapIsGood ? 0 : costs[s]) + hideable[s].returnNs;
        overlap.clear();
        // A storm explains its own part.
        for (double& cost : costs) cost = std::max(0.0, cost - claims.explainedTransferNs(id, "RS201"));
        // Calls in time mend what else looks like missing overlap; what they would mend only a part of has another
        // cause.
        const bool isLate =
            facts::median(whenInTime) > 0 && facts::median(whenInTime) >= kLateCallShare * facts::median(costs);
        if (isLate) steps = all;
        for (const CriticalStep& step : steps) {
            exposed.push_back(step.exposedTransferNs());
            overlap.push_back(step.transferNs() > 0 ? 1 - step.exposedTransferNs() / step.transferNs() : 1);
        }
        if (!isLate && facts::median(costs) <= 0) continue;
        if (isLate) costs = whenInTime;

        job::Finding finding;
        finding.id = "RS201";
        finding.ranks = where.ranks;
        finding.affectedRanks = finding.ranks;
        finding.communicator = id;
        // A pipeline accumulates gradients over its micro-batches and sends them once, in the cool-down: only the last
        // backward could hide them.
        if (analysis.layout.pipelineOf(steps.front().rank->rank) != nullptr)
            finding.whyNote = "in a pipeline only the last backward could hide it";
        setCost(analysis, costs, finding);
        setTypicalStep(analysis, costs, steps.front().rank->rank, finding);
        isLate ? explainLate(late, finding) : explain(hideable, role, finding);
        finding.evidence.facts = {
            fmt::format("{} of communication a step is exposed, {} is hidden behind compute (target: over {})",
                        text::durationText(facts::median(exposed)), text::percentText(facts::median(overlap)),
                        text::percentText(kOverlapTarget)),
            isLate ? fmt::format("with calls in time the step would be about {} shorter",
                                 text::durationText(facts::median(costs)))
                   : fmt::format("{} of it would fit under compute it may overlap",
                                 text::durationText(facts::median(costs))),
        };
        finding.evidence.numbers.insert(
            finding.evidence.numbers.begin(),
            {{"exposed_transfer_ns_per_step", facts::median(exposed)}, {"overlap_ratio", facts::median(overlap)}});
        if (!isLate) finding.evidence.numbers.emplace_back("hideable_ns_per_step", facts::median(costs));
        std::vector<facts::CommTask> longest;
        const CriticalStep& shown = shownStep(analysis, steps, finding);
        for (size_t i : shown.own) longest.push_back(shown.tasks[i]);
        std::stable_sort(longest.begin(), longest.end(), [](const facts::CommTask& a, const facts::CommTask& b) {
            return a.exposedTransferNs > b.exposedTransferNs;
        });
        for (size_t k = 0; k < std::min<size_t>(3, longest.size()); ++k)
            finding.evidence.rows.push_back(
                {"kernel", longest[k].kernelId, shown.rank->rank,
                 fmt::format("{} exposed for {}", store::toText(longest[k].op),
                             text::durationText(static_cast<double>(longest[k].exposedTransferNs)))});
        if (finding.verdict == job::Verdict::found)
            for (int64_t each : where.ids) claims.takeTransfer("RS201", each, finding.costNs);
        findings.push_back(std::move(finding));
    }
}

std::string missingForPoorOverlap(const job::Analysis& analysis) {
    return withoutCommunicators(analysis);
}

Changes overlapped(const job::Analysis&, const job::Finding& f) {
    if (number(f, "lateness_ns")) return {{"launch-early"}};
    const std::optional<double> bytes = number(f, "proposed_bucket_bytes");  // a single one has nothing to overlap with
    if (!bytes) return {{"overlap"}};
    return {{"buckets", {{"mb", fmt::format("{:g}", *bytes / (1024 * 1024))}, {"overlap", "yes"}}}};
}

}  // namespace

const Diagnosis kOverlap{
    .id = "RS201",
    .title = "poor overlap",
    .definition =
        "Communication that is exposed although it would fit under compute it may legally overlap: gradients under the "
        "backward pass (its last two thirds of the compute in front of them, since backward costs twice the forward's "
        "flop), also where they leave in time and the pass stands still until they are summed, all-gathers of sharded "
        "parameters under the compute before them, reduce-scatters under the compute "
        "behind them, updated parameters (ZeRO-1 and 2) under the next forward pass. Also communication of any size "
        "that the host calls only well after the work has ended that its stream was told to wait for, while its kernel "
        "starts as soon as it is called. Waiting for a late rank is not communication and does not count.",
    .thresholds =
        {{"late start", GradientPlan::kLateStart, "of backward",
          "with hooks the first gradients leave in the first layers of backward; later ones did not try to overlap"},
         kBucketMebi,
         kSlackUs,
         kLateCallShare,
         kOverlapTarget},
    .falsePositives =
        "A model of one layer cannot overlap its gradients. The last bucket, the first all-gather and the last "
        "reduce-scatter of a step cannot be hidden and are not counted. In a pipeline only the last micro-batch's "
        "backward could hide the gradients: there it is a note.",
    .fix =
        "Buckets of 25 MiB and the framework's hooks (DDP), forward and backward prefetch (FSDP), overlap_comm "
        "(DeepSpeed), an own stream for communication.",
    .hasSettings = true,
    .hint =
        "Red is transfer with no compute beside it: the GPU could have computed meanwhile. Hidden "
        "communication would be green.",
    .detect = detectPoorOverlap,
    .missing = missingForPoorOverlap,
    .repair = overlapped,
};

}  // namespace rs201
}  // namespace rankscope::diagnose
