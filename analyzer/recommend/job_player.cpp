// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/job_player.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "analyzer/diagnose/plays.h"
#include "collector/team/team.h"

namespace rankscope::recommend {
namespace {

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& then) {
    first.insert(first.end(), then.begin(), then.end());
    return first;
}

}  // namespace

JobPlayer::JobPlayer(const job::Analysis& analysis, Playing playing)
    : m_analysis(analysis), m_playing(std::move(playing)), m_messages(messagesOf(analysis)) {
    m_playing.workers = team::threadsFor(m_playing.workers, nullptr);
    m_recorded.job = std::make_shared<const edits::TrialJob>(analysis);
}

edits::ChangedJob JobPlayer::make(const Held& base, const Added& added) const {
    edits::ChangedJob job = base.job->with(edits::parseEdits(added.edits), added.outlook);
    if (m_playing.played) {
        const std::lock_guard lock(m_telling);
        m_playing.played();
    }
    return job;
}

JobPlayer::Held& JobPlayer::hold(const std::vector<std::string>& edits) {
    if (edits.empty()) return m_recorded;
    if (m_changed.job && m_changed.edits == edits) return m_changed;
    const size_t known = m_changed.edits.size();
    const bool further = m_changed.job && known < edits.size() &&
                         std::equal(m_changed.edits.begin(), m_changed.edits.end(), edits.begin());
    if (!further) m_changed = {};
    edits::ChangedJob job = make(further ? m_changed : m_recorded,
                                 {{edits.begin() + static_cast<std::ptrdiff_t>(further ? known : 0), edits.end()}});
    std::shared_ptr<const edits::TrialJob> of = (further ? m_changed : m_recorded).job;
    m_changed = {};
    m_changed = {edits, std::make_shared<const edits::TrialJob>(std::move(job), m_analysis, std::move(of)), nullptr,
                 std::nullopt};
    return m_changed;
}

std::optional<JobPlayer::Played> JobPlayer::sidesOf(const replay::TaskGraph& graph, const edits::EditEffect& effect,
                                                    std::vector<double> stepsNs,
                                                    const TransferChange& transfers) const {
    if (!transfers) return Played{edits::sidesOf(std::move(stepsNs)), effect};
    const auto scales = transfers.of(messagesOf(m_analysis, m_messages, graph));
    if (!scales) return std::nullopt;
    ScaledTransfers scaled(m_analysis, graph, effect, stepsNs);
    const auto stepsWith = [&](const TransferScale& scale) { return scaled.stepsNs(scale); };
    return Played{{stepsWith(scales->expected), stepsWith(scales->pessimistic), stepsWith(scales->optimistic)}, effect};
}

std::optional<JobPlayer::Played> JobPlayer::playOn(const Held& base, const Added& added,
                                                   const TransferChange& transfers) const {
    try {
        if (added.edits.empty()) return sidesOf(base.job->graph(), base.job->effect(), base.job->stepsNs(), transfers);
        edits::ChangedJob job = make(base, added);
        return sidesOf(job.graph, job.effect, std::move(job.stepsNs), transfers);
    } catch (const edits::EditError&) {
        return std::nullopt;  // not for this job
    }
}

const JobPlayer::Played* JobPlayer::play(const std::vector<std::string>& base, const Added& added,
                                         const TransferChange& transfers) {
    prepare(base, {added}, transfers);
    const std::optional<Played>& played = m_played.at(Key(joined(base, added.edits), transfers.name, added.outlook));
    return played ? &*played : nullptr;
}

void JobPlayer::prepare(const std::vector<std::string>& base, const std::vector<Added>& all,
                        const TransferChange& transfers) {
    std::vector<std::pair<const Added*, std::optional<Played>*>> open;
    for (const Added& added : all) {
        const auto [at, isNew] = m_played.try_emplace(Key(joined(base, added.edits), transfers.name, added.outlook));
        if (isNew) open.emplace_back(&added, &at->second);
    }
    if (open.empty()) return;
    const Held* held = nullptr;
    try {
        held = &hold(base);
    } catch (const edits::EditError&) {
        return;  // none of them is for this job
    }
    const auto playOne = [&](size_t i) { *open[i].second = playOn(*held, *open[i].first, transfers); };
    const auto share = [&](const Next& next) {
        const auto trialOf = [&](size_t i) { return Trial{base, open[i].first->edits, open[i].first->outlook}; };
        const auto take = [&](size_t i, std::optional<Played> played) { *open[i].second = std::move(played); };
        m_playing.helpers->share(next, trialOf, take);
    };
    // Scaled transfers are this process's: what they are scaled by is a function.
    const bool isShared = isHelped() && open.size() > 1 && !transfers;
    eachAtOnce(open.size(), held->job->graph().size(), playOne, isShared ? share : std::function<void(const Next&)>());
}

void JobPlayer::eachAtOnce(size_t count, size_t tasks, const std::function<void(size_t)>& play,
                           const std::function<void(const Next&)>& beside) const {
    // Changed jobs may be larger than the recorded one.
    const size_t fit = diagnose::kPlaysAtOnce * m_recorded.job->graph().size() / std::max<size_t>(1, tasks);
    const size_t workers = std::clamp<size_t>(fit, 1, std::max<size_t>(1, std::min<size_t>(m_playing.workers, count)));
    std::atomic<size_t> begun{0};
    const Next next = [&]() -> std::optional<size_t> {
        const size_t number = begun++;
        return number < count ? std::optional(number) : std::nullopt;
    };
    std::vector<std::exception_ptr> failures(workers + 1);
    const auto caught = [&](size_t worker, const auto& work) {
        try {
            work();
        } catch (...) {
            failures[worker] = std::current_exception();
            begun = count;  // the others need not begin another one
        }
    };
    const auto work = [&](size_t worker) {
        caught(worker, [&] {
            while (const auto number = next()) play(*number);
        });
    };
    {
        std::vector<std::jthread> threads;
        for (size_t worker = beside ? 0 : 1; worker < workers; ++worker) threads.emplace_back(work, worker);
        if (beside)
            caught(workers, [&] { beside(next); });
        else
            work(0);
    }
    for (const std::exception_ptr& failure : failures)
        if (failure) std::rethrow_exception(failure);
}

MessageList JobPlayer::messages(const std::vector<std::string>& edits) {
    Held& held = hold(edits);
    if (!held.messages) held.messages = messagesOf(m_analysis, m_messages, held.job->graph());
    return *held.messages;
}

const std::vector<double>& JobPlayer::stepsNs(const std::vector<std::string>& edits, const TransferScale& scale) {
    Held& held = hold(edits);
    if (!held.transfers)
        held.transfers =
            std::make_unique<ScaledTransfers>(m_analysis, held.job->graph(), held.job->effect(), held.job->stepsNs());
    return held.transfers->stepsNs(scale);
}

PlayedJob::PlayedJob(const job::Analysis& analysis, double noiseNs, Playing playing)
    : m_analysis(&analysis),
      m_noiseNs(noiseNs),
      m_player(std::make_shared<JobPlayer>(analysis, std::move(playing))),
      m_steps(edits::sidesOf(analysis.replay.unchangedStepsNs)) {}

std::optional<PlayedJob> PlayedJob::with(const JobChange& change, Depth depth) const {
    if (change.transfers && m_state.transfers) return std::nullopt;
    PlayedJob next = *this;
    if (change.transfers) next.m_state.transfers = change.transfers;
    next.m_state.edits.insert(next.m_state.edits.end(), change.edits.begin(), change.edits.end());
    next.m_recorded = false;
    const JobPlayer::Played* played = m_player->play(m_state.edits, {change.edits}, next.m_state.transfers);
    if (played == nullptr) return std::nullopt;
    next.m_steps = played->sides;
    next.m_effect = played->effect;
    const bool candidate = depth == Depth::candidate;
    const std::vector<double>& unchanged = m_analysis->replay.unchangedStepsNs;
    if (next.m_effect.chanceNs > 0) edits::addChance(unchanged, next.m_effect, next.m_steps);
    const bool leavesOpen = next.m_effect.open || next.m_effect.hostMaySlow;
    if (!leavesOpen || (candidate && isNoGain(next.m_steps))) return next;
    const JobChange& state = next.m_state;
    const auto stepsWith = [&](edits::Outlook outlook) {
        // What is no more than a candidate is often given up after the first outlook.
        if (!candidate || outlook != edits::kOutlooks[0] || (m_player->isHelped() && !state.transfers)) {
            std::vector<JobPlayer::Added> all;
            for (edits::Outlook each : edits::kOutlooks) all.push_back({state.edits, each});
            m_player->prepare({}, all, state.transfers);
        }
        const JobPlayer::Played* with = m_player->play({}, {state.edits, outlook}, state.transfers);
        if (with == nullptr) throw edits::EditError("this outlook cannot be played");
        return with->sides.expected;
    };
    if (!next.m_effect.open) {
        if (const JobPlayer::Played* dear = m_player->play({}, {state.edits, edits::Outlook::dear}, state.transfers))
            next.m_steps.outlooks[edits::Outlook::dear] = dear->sides.expected;
        return next;
    }
    edits::addOutlooks(unchanged, next.m_effect, stepsWith, next.m_steps,
                       candidate ? [this](const edits::StepSides& sides) { return mayLose(sides); }
                                 : std::function<bool(const edits::StepSides&)>());
    return next;
}

bool PlayedJob::mayLose(const edits::StepSides& after) const {
    return edits::gainOf(m_steps, after).savingNs.low < 0;
}

bool PlayedJob::isNoGain(const edits::StepSides& after) const {
    return mayLose(after) || edits::typicalSaving(m_steps.expected, after.expected).expected <= m_noiseNs;
}

void PlayedJob::playAhead(const std::vector<std::string>& changes) const {
    if (!m_player->isHelped() || m_state.transfers) return;  // such trials are this process's
    std::vector<JobPlayer::Added> all;
    for (const std::string& edit : changes) all.push_back({{edit}});
    m_player->prepare(m_state.edits, all, m_state.transfers);
    std::vector<JobPlayer::Added> outlooks;
    for (const JobPlayer::Added& added : all) {
        const JobPlayer::Played* played = m_player->play(m_state.edits, added, m_state.transfers);
        if (played == nullptr || !(played->effect.open || played->effect.hostMaySlow) || isNoGain(played->sides))
            continue;
        for (edits::Outlook outlook : edits::kOutlooks)
            if (played->effect.open || outlook == edits::Outlook::dear)
                outlooks.push_back({joined(m_state.edits, added.edits), outlook});
    }
    m_player->prepare({}, outlooks, m_state.transfers);
}

std::optional<edits::SideGain> PlayedJob::gainBy(const std::string& edit) const {
    const auto after = with({{edit}, {}}, Depth::candidate);
    if (!after) return std::nullopt;
    edits::SideGain gain = edits::gainOf(m_steps, after->m_steps);
    const std::vector<std::string>& known = m_effect.assumed;
    for (const std::string& sentence : after->m_effect.assumed)
        if (std::ranges::find(known, sentence) == known.end()) gain.assumed.push_back(sentence);
    return gain;
}

std::vector<std::optional<double>> PlayedJob::expectedGains(const std::vector<std::string>& changes) const {
    std::vector<JobPlayer::Added> all;
    for (const std::string& edit : changes) all.push_back({{edit}});
    m_player->prepare(m_state.edits, all, m_state.transfers);
    std::vector<std::optional<double>> gains;
    for (const JobPlayer::Added& added : all) {
        std::optional<double>& gain = gains.emplace_back();
        if (const JobPlayer::Played* played = m_player->play(m_state.edits, added, m_state.transfers))
            gain = edits::typicalSaving(m_steps.expected, played->sides.expected).expected;
    }
    return gains;
}

std::vector<double> PlayedJob::savedBy(const TransferScale& scale) const {
    std::vector<double> saved = m_steps.expected;
    const std::vector<double>& after = m_player->stepsNs(m_state.edits, scale);
    saved.resize(std::min(saved.size(), after.size()));
    for (size_t i = 0; i < saved.size(); ++i) saved[i] -= after[i];
    return saved;
}

MessageList PlayedJob::messages() const {
    return m_recorded ? m_player->messages() : m_player->messages(m_state.edits);
}

}  // namespace rankscope::recommend
