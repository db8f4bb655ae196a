// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/recommend/advice_context.h"
#include "analyzer/text/units.h"

namespace rankscope::recommend {
namespace {

/// MiB. From where start-up dominates to where nothing overlaps; about 1.5 times apart, since the step changes slowly
/// with the size.
constexpr std::array kSizes{1, 2, 3, 5, 8, 12, 18, 25, 35, 50, 75, 100, 150, 200, 300, 400};

constexpr int kDefaultMebibytes = 25;  // DistributedDataParallel's bucket_cap_mb

struct Tried {
    int mebibytes = 0;
    double savingNs = 0;
};

std::string changeTo(int mebibytes, bool overlap) {
    return fmt::format("buckets:mb={}{}", mebibytes, overlap ? ",overlap=yes" : "");
}

/// What the finding of this fault proposes; 0: none does. It stands among the sizes that are tried, and is the one
/// advised where chance cannot tell it from the best: one fault has one fix.
int proposedMebibytes(const AdviceContext& context, bool overlap) {
    const auto bytes =
        context.proposed(overlap ? diagnose::kOverlap : diagnose::kSmallMessages, "proposed_bucket_bytes");
    return static_cast<int>(std::llround(bytes.value_or(0) / (1 << 20)));
}

std::vector<Tried> tryAll(const AdviceContext& context, bool overlap) {
    std::set<int> sizes(kSizes.begin(), kSizes.end());
    if (const int proposed = proposedMebibytes(context, overlap); proposed > 0) sizes.insert(proposed);
    std::vector<std::string> changes;
    for (int size : sizes) changes.push_back(changeTo(size, overlap));
    if (!context.predictor.expected({changes.front()}).front()) return {};  // no buckets in this job
    std::vector<Tried> tried;
    auto size = sizes.begin();
    for (const std::optional<double>& savingNs : context.predictor.expected(changes)) {
        if (savingNs) tried.push_back({*size, *savingNs});
        ++size;
    }
    return tried;
}

/// The best by itself and its neighbours: a size that is only good if everything is as predicted to the last
/// microsecond is no advice. Of sizes that chance cannot tell from it the one next to `preferred`. Where sizes gain
/// whatever the trace leaves open the best of these; what it leaves open is asked of no more sizes than need be.
size_t bestOf(const std::vector<Tried>& tried, double noiseNs, int preferred,
              const std::function<bool(int mebibytes)>& surelyGains) {
    const auto score = [&](size_t i) {
        const double before = tried[i > 0 ? i - 1 : i].savingNs,
                     after = tried[std::min(i + 1, tried.size() - 1)].savingNs;
        return tried[i].savingNs / 2 + before / 4 + after / 4;
    };
    const auto distance = [&](size_t i) {
        return std::abs(std::log(static_cast<double>(tried[i].mebibytes) / preferred));
    };
    const auto isSure = [&](size_t i) { return tried[i].savingNs > noiseNs && surelyGains(tried[i].mebibytes); };
    std::vector<size_t> sizes(tried.size());
    std::iota(sizes.begin(), sizes.end(), size_t{0});
    std::ranges::stable_sort(sizes, std::ranges::greater{}, score);
    const auto sure = std::ranges::find_if(sizes, isSure);
    const bool any = sure != sizes.end();
    const double highest = score(any ? *sure : sizes.front());
    std::erase_if(sizes, [&](size_t i) { return score(i) < highest - noiseNs; });
    std::ranges::sort(sizes, {}, [&](size_t i) { return std::pair(distance(i), i); });
    return any ? *std::ranges::find_if(sizes, isSure) : sizes.front();
}

/// The size to advise, and what it gains where that is worth it: surely, or by enough to be tried.
std::pair<Tried, std::optional<edits::SideGain>> advised(const AdviceContext& context, const std::vector<Tried>& tried,
                                                         bool overlap) {
    const int proposed = proposedMebibytes(context, overlap);
    const auto gainOf = [&](int mebibytes) { return context.predictor.edited(changeTo(mebibytes, overlap)); };
    // A size that may be the present one does no harm, and is worth a trial where it may gain much.
    const auto isSure = [overlap](const std::optional<edits::SideGain>& step) {
        return step && (overlap ? step->surelyGains() : step->savingNs.low > 0);
    };
    const auto surelyGains = [&](int mebibytes) { return isSure(gainOf(mebibytes)); };
    const Tried& best = tried[bestOf(tried, context.noiseNs, proposed > 0 ? proposed : kDefaultMebibytes, surelyGains)];
    auto step = best.savingNs > context.noiseNs ? gainOf(best.mebibytes) : std::nullopt;
    // An order that overlaps is the finding's to propose where it is not sure to gain.
    const bool worthATrial = !overlap && best.savingNs > RecommendThresholds::kTryShare * context.analysis.stepNs;
    if (!isSure(step) && !worthATrial) step.reset();
    return {best, step};
}

/// Some of the sizes, ascending: the first, the last, the best, and those about four times smaller and larger than it.
std::string sweepText(const AdviceContext& context, const std::vector<Tried>& tried, int bestMebibytes) {
    constexpr int kBeside = 4;  // nearer ones differ by little: neighbours among the sizes are 1.5 times apart
    const auto next = [&](int mebibytes) {  // the first that is as large
        const auto at = std::ranges::lower_bound(tried, mebibytes, {}, &Tried::mebibytes);
        return static_cast<size_t>(std::min(at, tried.end() - 1) - tried.begin());
    };
    std::vector<std::string> parts;
    for (const size_t at : std::set{size_t{0}, next(bestMebibytes / kBeside), next(bestMebibytes),
                                    next(bestMebibytes * kBeside), tried.size() - 1})
        parts.push_back(
            fmt::format("{} MiB {:+.1f} %", tried[at].mebibytes, -100 * tried[at].savingNs / context.analysis.stepNs));
    return fmt::format("step time by size: {}; {} sizes were tried", fmt::join(parts, ", "), tried.size());
}

/// Tells a finding that nothing but reducing earlier cures: other sizes of buckets by themselves are no answer to it.
bool wantsOverlap(const job::Finding& finding) {
    return finding.changes.size() == 1 &&
           (finding.changes[0].family == "overlap" || finding.changes[0].value("overlap") == "yes");
}

Recommendation adviceOf(const AdviceContext& context, const std::vector<Tried>& tried, const Tried& best,
                        const edits::SideGain& step, bool overlap) {
    Recommendation r;
    r.area = overlap ? "overlap" : "buckets";
    r.title = overlap ? fmt::format("reduce gradients while backward still runs, in buckets of {} MiB", best.mebibytes)
                      : fmt::format("gradient buckets of {} MiB", best.mebibytes);
    // Sizes are those of messages; a hook may cast gradients on their way.
    const int held = gradientElementBytes(context.analysis),
              sent = context.open("precision") ? held : std::min(held, 2);
    setBuckets(best.mebibytes, held, sent, r);
    r.change.edits = {changeTo(best.mebibytes, overlap)};
    r.evidence = {sweepText(context, tried, best.mebibytes)};
    r.evidence.insert(r.evidence.end(), step.assumed.begin(), step.assumed.end());
    if (step.mayDoNothing) r.evidence.push_back("nothing changes should each present bucket be a single tensor");
    r.basis = "each size: buckets leave when their last gradient is ready; " + context.predictor.name;
    r.savingNs = step.savingNs;
    r.risk = "memory: gradients of one bucket more";
    r.verify = "run again with it and compare the steps (rankscope analyze)";
    if (overlap) {
        r.settings.ddp["static_graph"] = "True";
        r.settings.deepspeed["zero_optimization.overlap_comm"] = "true";
        r.risk +=
            "; static_graph=True needs the same parameters to be used in every step: leave it out where they vary";
    }
    for (const job::Finding& finding : context.findings)
        if (finding.verdict == job::Verdict::found &&
            (finding.id == diagnose::kSmallMessages.id ||
             (finding.id == diagnose::kOverlap.id && (overlap || !wantsOverlap(finding)))))
            r.findings.push_back(finding.id);
    return r;
}

/// Gradients that all leave when backward is over: the sizes are judged with overlap on. Nothing where what the finding
/// proposes, its sizes included, is better by more than chance.
std::optional<Recommendation> overlapped(const AdviceContext& context) {
    const auto finding = std::ranges::find_if(context.findings, [](const job::Finding& one) {
        return one.id == diagnose::kOverlap.id && one.verdict == job::Verdict::found && wantsOverlap(one);
    });
    if (finding == context.findings.end() || !context.open("overlap")) return std::nullopt;
    const std::vector<Tried> tried = tryAll(context, true);
    if (tried.empty()) return std::nullopt;
    const auto [best, step] = advised(context, tried, true);
    const auto proposed = step ? context.predictor.expected({finding->changes[0].text()}).front() : std::nullopt;
    if (!step || (proposed && *proposed > best.savingNs + context.noiseNs)) return std::nullopt;
    return adviceOf(context, tried, best, *step, true);
}

}  // namespace

int gradientElementBytes(const job::Analysis& analysis) {
    for (const facts::RankSummary& rank : analysis.ranks)
        for (const facts::CommTask& task : rank.communication)
            if (analysis.layout.role(task) == facts::CommRole::gradients && store::elementBytes(task.dataType) > 0)
                return store::elementBytes(task.dataType);
    return 2;
}

void setBuckets(int64_t mebibytes, int heldBytes, int sentBytes, Recommendation& r) {
    r.settings.ddp["bucket_cap_mb"] = std::to_string(mebibytes * heldBytes / sentBytes);
    r.settings.deepspeed["zero_optimization.reduce_bucket_size"] = std::to_string((mebibytes << 20) / sentBytes);
}

void adviseBuckets(const AdviceContext& context, Advice& advice) {
    if (!context.predictor.edited || !context.open("buckets")) return;
    const auto earlier = overlapped(context);
    if (earlier) advice.recommendations.push_back(*earlier);
    const std::vector<Tried> tried = tryAll(context, false);
    if (tried.empty()) return;
    const auto [best, step] = advised(context, tried, false);
    if (step)
        advice.recommendations.push_back(adviceOf(context, tried, best, *step, false));
    else if (!earlier && tried.size() > 1)  // where no other size can be priced, nothing was compared
        advice.kept.push_back(
            {"buckets", best.savingNs <= 0
                            ? fmt::format("keep the present ones: none of {} sizes is better", tried.size())
                            : fmt::format("keep the present ones: the best of {} sizes, {} MiB, gains {} a step{}",
                                          tried.size(), best.mebibytes, text::durationText(best.savingNs),
                                          best.savingNs > context.noiseNs
                                              ? " as expected, but not for sure"
                                              : ", which is no more than chance or the model's error")});
}

}  // namespace rankscope::recommend
