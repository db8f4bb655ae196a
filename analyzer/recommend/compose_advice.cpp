// SPDX-License-Identifier: Apache-2.0
// Which settings go together: the one that gains most is accepted, all others are judged anew on top of it, until
// nothing gains more than chance.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <map>

#include "analyzer/recommend/advice_context.h"
#include "analyzer/recommend/algorithm_candidates.h"
#include "analyzer/recommend/recommend.h"
#include "analyzer/text/units.h"

namespace rankscope::recommend {
namespace {

/// Giving a choice back to NCCL is judged by what is expected of it (advise_algorithms.cpp). A size of buckets that may
/// be the present one is no change that gains.
bool isSure(const Recommendation& r, const edits::SideGain& gained) {
    return r.area == "algorithm" || (r.area == "buckets" ? gained.savingNs.low > 0 : gained.surelyGains());
}

/// What all advisers say of the job as it is now. Settings that can be played are told by what they gain in it.
Advice ask(const AdviceContext& context, const AdviceContext& recorded) {
    Advice advice;
    if (context.open("algorithm")) adviseAlgorithms(context, advice);
    adviseBuckets(context, advice);
    adviseSchedule(context, advice);
    advisePrefetch(context, advice);
    adviseFromFindings(context, advice);
    for (Recommendation& r : advice.recommendations) {
        if (auto change = transferChangeOf(recorded, r.settings)) r.change.transfers = std::move(change);
        if (!context.predictor.after || r.change.empty()) continue;
        const auto played = context.predictor.after(r.change);
        if (played) {
            r.savingNs = played->gained.savingNs;
            r.savingKnown = true;
        }
        if (!played || !isSure(r, played->gained)) r.certainty = Certainty::tryAndMeasure;
    }
    for (Recommendation& r : advice.recommendations)
        if (r.mayCureLess) r.savingNs.low = std::min(r.savingNs.low, 0.0);
    std::erase_if(advice.recommendations, [&](const Recommendation& r) { return r.worthNs() <= context.noiseNs; });
    std::ranges::stable_sort(advice.recommendations, std::ranges::greater{}, &Recommendation::worthNs);
    return advice;
}

bool contradict(const auto& a, const auto& b) {
    return std::ranges::any_of(a, [&](const auto& one) {
        const auto other = b.find(one.first);
        return other != b.end() && other->second != one.second;
    });
}

/// Both set the same thing; a tuner table is a choice of algorithms as variables are.
bool excludeEachOther(const Recommendation& a, const Recommendation& b) {
    if (a.area == b.area || contradict(a.settings.environment, b.settings.environment)) return true;
    const auto ones = a.settings.programs(), others = b.settings.programs();
    return !std::ranges::equal(
        ones, others, [](const auto& one, const auto& other) { return !contradict(*one.second, *other.second); });
}

/// Areas that are not to be judged again once it is accepted.
void settle(const Recommendation& r, std::set<std::string>& settled) {
    settled.insert(r.area);
    if (r.settings.ddp.contains("bucket_cap_mb")) settled.insert("buckets");
}

/// The settings accepted so far, and the job with them.
struct Accepted {
    std::list<AdviceContext> contexts;  // the last one: with all of them
    std::vector<Recommendation> settings;

    const AdviceContext& now() const { return contexts.back(); }
    bool excludes(const Recommendation& r) const {
        return std::ranges::any_of(settings, [&](const Recommendation& one) { return excludeEachOther(one, r); });
    }
    /// Where the replay can make it on top of the others, and it still gains more than chance.
    bool take(Recommendation r) {
        auto played = now().predictor.after(r.change);
        if (!played || played->gained.savingNs.expected <= now().noiseNs) return false;
        if (!isSure(r, played->gained)) return false;
        r.savingNs = played->gained.savingNs;
        AdviceContext next = now();
        next.predictor = std::move(*played);
        settle(r, next.settled);
        contexts.push_back(std::move(next));
        settings.push_back(std::move(r));
        return true;
    }
};

bool playable(const Recommendation& r) {
    return r.certainty == Certainty::recommended && !r.change.empty() && r.batch == 1;
}

bool takeBest(const Advice& candidates, Accepted& accepted) {
    for (const Recommendation& r : candidates.recommendations)
        if (playable(r) && !accepted.excludes(r) && accepted.take(r)) return true;
    return false;
}

/// `first`, then always what gains most on top. `now` becomes what the advisers say of the job with all of them.
void take(const AdviceContext& recorded, const Recommendation& first, Accepted& accepted, Advice& now) {
    accepted.contexts.push_back(recorded);
    bool taken = accepted.take(first);
    while (taken) {
        now = ask(accepted.now(), recorded);
        taken = takeBest(now, accepted);
    }
}

constexpr size_t kStarts = 2;  // settings of the program that are tried as the first one

using Tell = std::function<void(const char* what, int stage)>;
constexpr int kAlone = 2, kFirstWay = 3, kTogether = AdviceProgress::kStages - 1;  // stages
static_assert(kFirstWay + kStarts + 1 == kTogether);

/// NCCL's variables, which need no change to the program, and what gains most by itself.
std::vector<const Recommendation*> startsOf(const Advice& alone) {
    std::vector<const Recommendation*> starts;
    for (const Recommendation& r : alone.recommendations)
        if (playable(r) && r.area != "algorithm" && starts.size() < kStarts) starts.push_back(&r);
    const auto variables = std::ranges::find_if(
        alone.recommendations, [](const Recommendation& r) { return playable(r) && r.area == "algorithm"; });
    if (variables != alone.recommendations.end()) starts.insert(starts.begin(), &*variables);
    return starts;
}

struct Way {
    Accepted accepted;
    Advice then;  // what the advisers say of the job with all of them
    double savingNs() const { return accepted.now().predictor.total.savingNs.expected; }
};

/// What gains most by itself may take the gain of two that would gain more together: the best way of those that begin
/// with the first few. Of ways that chance cannot tell from the best the one with the fewest settings, and of these the
/// first.
void takeAll(const AdviceContext& recorded, const Advice& alone, const Tell& tell, Accepted& accepted, Advice& now) {
    accepted.contexts.push_back(recorded);
    if (!recorded.predictor.after) return;
    std::list<Way> ways;
    int stage = kFirstWay;
    for (const Recommendation* first : startsOf(alone)) {
        tell("settings on top of each other", stage++);
        Way way{{}, alone};
        take(recorded, *first, way.accepted, way.then);
        if (!way.accepted.settings.empty()) ways.push_back(std::move(way));
    }
    double best = 0;
    for (const Way& way : ways) best = std::max(best, way.savingNs());
    Way* chosen = nullptr;
    for (Way& way : ways)
        if (way.savingNs() > 0 && way.savingNs() >= best - recorded.noiseNs &&
            (chosen == nullptr || way.accepted.settings.size() < chosen->accepted.settings.size()))
            chosen = &way;
    if (chosen == nullptr) return;
    accepted = std::move(chosen->accepted);
    now = std::move(chosen->then);
}

/// By title: bucket sizes, say, are chosen anew on top of other settings, and are then another advice.
bool find(const std::vector<Recommendation>& among, const Recommendation& r) {
    return std::ranges::any_of(among,
                               [&](const Recommendation& one) { return one.area == r.area && one.title == r.title; });
}

bool holdsArea(const auto& list, const std::string& area) {
    return std::ranges::any_of(list, [&](const auto& one) { return one.area == area; });
}

/// What each gains on the job as it was recorded.
void setAlone(const AdviceContext& recorded, Recommendation& r) {
    if (!recorded.predictor.after || r.change.empty()) return;
    if (const auto played = recorded.predictor.after(r.change)) r.alone = played->gained.savingNs;
}

/// Rows are for the sizes of the job as the other settings leave it.
void tabulateAgain(const AdviceContext& recorded, const Accepted& accepted, Recommendation& r) {
    if (r.settings.tuner.empty() || !accepted.now().predictor.messages) return;
    const AlgorithmCandidates candidates =
        AlgorithmCandidates(recorded, messagesOf(recorded.analysis)).of(accepted.now().predictor.messages());
    r.settings.tuner = candidates.tableOf(candidates.eachAtItsBest());
}

/// Settings as accepted and fixes by their gain, then what is to be tried.
void rank(std::vector<Recommendation> settings, std::vector<Recommendation> fixes, std::vector<Recommendation> trials,
          Advice& advice) {
    const auto larger = [](const Recommendation& a, const Recommendation& b) {
        return a.certainty != b.certainty ? a.certainty < b.certainty : a.worthNs() > b.worthNs();
    };
    std::ranges::stable_sort(fixes, larger);
    std::ranges::stable_sort(trials, larger);
    std::vector<Recommendation>& all = advice.recommendations;
    auto fix = fixes.begin();
    for (Recommendation& setting : settings) {
        while (fix != fixes.end() && fix->worthNs() > setting.worthNs()) all.push_back(std::move(*fix++));
        all.push_back(std::move(setting));
    }
    std::move(fix, fixes.end(), std::back_inserter(all));
    std::ranges::move(trials, std::back_inserter(all));
    std::vector<int> before;
    for (size_t i = 0; i < all.size(); ++i) {
        Recommendation& r = all[i];
        r.number = static_cast<int>(i) + 1;
        if (r.kind != AdviceKind::setting) continue;
        if (r.alone) r.onTopOf = before;
        if (r.certainty == Certainty::recommended) before.push_back(r.number);
    }
}

/// What sets the same thing, else what it gains nothing beside: the first of the accepted ones, which gains most.
int alternativeTo(const Recommendation& other, const std::vector<Recommendation>& all) {
    int number = 0;
    for (const Recommendation& r : all) {
        if (r.kind != AdviceKind::setting || r.certainty != Certainty::recommended) continue;
        if (excludeEachOther(r, other)) return r.number;
        if (number == 0) number = r.number;
    }
    return number;
}

std::optional<Together> playedTogether(const AdviceContext& recorded, const Accepted& accepted,
                                       const std::vector<Recommendation>& fixes) {
    if (!recorded.predictor.after) return std::nullopt;
    Together together;
    together.noiseNs = recorded.noiseNs;
    together.settings = static_cast<int>(accepted.settings.size());
    together.gain = accepted.now().predictor.total.savingNs;
    JobChange all;
    for (const Recommendation& fix : fixes) {
        if (fix.change.empty()) continue;
        ++together.fixes;
        all.edits.insert(all.edits.end(), fix.change.edits.begin(), fix.change.edits.end());
        together.fixed = fix.savingNs;
    }
    if (together.fixes == 0) return together;
    auto judge = recorded.predictor.after(all);
    // Of one alone it is the same question as the finding's own.
    if (together.fixes > 1) together.fixed = judge ? std::optional(judge->total.savingNs) : std::nullopt;
    for (const Recommendation& setting : accepted.settings)
        if (judge) judge = judge->after(setting.change);
    if (judge) together.both = judge->total.savingNs;
    return together;
}

/// Gains are known no better than the replay knows the step as it is; changes refer to what does not outlive this.
void finish(double errorNs, Advice& advice) {
    for (auto* list : {&advice.recommendations, &advice.alternatives})
        for (Recommendation& r : *list) {
            if (r.savingKnown) r.savingNs = r.savingNs.widened(errorNs);
            if (r.alone) r.alone = r.alone->widened(errorNs);
            r.change = {};
        }
    if (!advice.together) return;
    advice.together->gain = advice.together->gain.widened(errorNs);
    for (std::optional<facts::Estimate>* played : {&advice.together->fixed, &advice.together->both})
        if (*played) *played = (*played)->widened(errorNs);
}

}  // namespace

void composeAdvice(const AdviceContext& recorded, const Tell& tell, Advice& advice) {
    Accepted accepted;
    tell("each setting by itself", kAlone);
    Advice alone = ask(recorded, recorded);
    for (Recommendation& r : alone.recommendations)
        if (recorded.predictor.after && !r.change.empty()) r.alone = r.savingNs;
    Advice now = alone;
    takeAll(recorded, alone, tell, accepted, now);
    tell("all settings together", kTogether);

    std::vector<Recommendation> settings, trials, others;
    for (Recommendation& r : now.recommendations) {
        if (accepted.excludes(r) || r.batch != 1) continue;
        if (!r.alone) setAlone(recorded, r);
        // Without a replay of what is accepted each stands for itself.
        (r.certainty == Certainty::recommended ? settings : trials).push_back(r);
    }
    for (Recommendation& r : alone.recommendations) {
        // A size chosen anew on top of others is no other advice than the one chosen without them.
        if (find(accepted.settings, r) || (r.area == "buckets" && holdsArea(accepted.settings, r.area)) ||
            holdsArea(settings, r.area) || holdsArea(trials, r.area))
            continue;
        others.push_back(r);
        if (r.batch == 1 && !accepted.excludes(r) && !holdsArea(now.kept, r.area))
            now.kept.push_back({r.area, fmt::format("{}: no more than chance", r.title)});
    }
    for (Recommendation& r : accepted.settings) {
        if (!r.alone) setAlone(recorded, r);
        tabulateAgain(recorded, accepted, r);
    }
    Advice judged = now;
    settings.insert(settings.begin(), accepted.settings.begin(), accepted.settings.end());
    judged.recommendations = settings;
    for (const auto* list : {&trials, &others})
        judged.recommendations.insert(judged.recommendations.end(), list->begin(), list->end());
    const std::vector<Recommendation> fixes = fixesFor(recorded, judged);

    advice.together = playedTogether(recorded, accepted, fixes);
    rank(std::move(settings), fixes, trials, advice);
    for (Recommendation& other : others) {
        other.alternativeTo = alternativeTo(other, advice.recommendations);
        advice.alternatives.push_back(std::move(other));
    }
    advice.limits.insert(advice.limits.end(), alone.limits.begin(), alone.limits.end());
    advice.kept = std::move(now.kept);
    finish(recorded.predictor.errorNs, advice);
}

}  // namespace rankscope::recommend
