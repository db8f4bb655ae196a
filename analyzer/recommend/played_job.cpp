// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/played_job.h"

#include <algorithm>

namespace rankscope::recommend {

EditedStep editedStep(const edits::StepSides& before, const edits::StepSides& after) {
    const edits::SideGain gain = edits::gainOf(before, after);
    return {gain.savingNs, {}, gain.mayDoNothing};
}

PlayedJob::PlayedJob(const job::Analysis& analysis, double noiseNs, Playing playing)
    : m_analysis(&analysis),
      m_noiseNs(noiseNs),
      m_player(std::make_shared<JobPlayer>(analysis, std::move(playing))),
      m_steps(edits::sidesOf(analysis.replay.stepsNs(analysis.replay.graph, analysis.replay.unchanged))) {}

std::optional<PlayedJob> PlayedJob::with(const JobChange& change) const {
    return with(change, Depth::whole);
}

std::optional<PlayedJob> PlayedJob::with(const JobChange& change, Depth depth) const {
    if (change.transfers && m_state.transfers) return std::nullopt;
    PlayedJob next = *this;
    if (change.transfers) next.m_state.transfers = change.transfers;
    next.m_state.edits.insert(next.m_state.edits.end(), change.edits.begin(), change.edits.end());
    next.m_recorded = false;
    const JobPlayer::Played* played = m_player->play(m_state.edits, change.edits, next.m_state.transfers);
    if (played == nullptr) return std::nullopt;
    next.m_steps = played->sides;
    next.m_effect = played->effect;
    const auto mayLose = [&](const edits::StepSides& sides) { return edits::gainOf(m_steps, sides).savingNs.low < 0; };
    const bool candidate = depth == Depth::candidate;
    if (!next.m_effect.open ||
        (candidate && (mayLose(next.m_steps) ||
                       edits::typicalSaving(m_steps.expected, next.m_steps.expected).expected <= m_noiseNs)))
        return next;
    const auto stepsWith = [&](edits::Outlook outlook) {
        // What is no more than a candidate is often given up after the first outlook.
        if (!candidate || outlook != edits::kOutlooks[0])
            m_player->prepare(next.m_state, {std::begin(edits::kOutlooks), std::end(edits::kOutlooks)});
        const std::vector<double>* steps = m_player->play(next.m_state, outlook);
        if (steps == nullptr) throw edits::EditError("this outlook cannot be played");
        return *steps;
    };
    const replay::ReplayModel& replay = m_analysis->replay;
    edits::addOutlooks(replay.stepsNs(replay.graph, replay.unchanged), next.m_effect, stepsWith, next.m_steps,
                       candidate ? mayLose : std::function<bool(const edits::StepSides&)>());
    return next;
}

std::optional<EditedStep> PlayedJob::gainBy(const std::string& edit) const {
    const auto after = with({{edit}, {}}, Depth::candidate);
    if (!after) return std::nullopt;
    EditedStep gain = editedStep(m_steps, after->m_steps);
    const std::vector<std::string>& known = m_effect.assumed;
    for (const std::string& sentence : after->m_effect.assumed)
        if (std::find(known.begin(), known.end(), sentence) == known.end()) gain.assumed.push_back(sentence);
    return gain;
}

std::vector<std::optional<double>> PlayedJob::expectedGains(const std::vector<std::string>& changes) const {
    m_player->prepare(m_state.edits, changes, m_state.transfers);
    std::vector<std::optional<double>> gains;
    for (const std::string& edit : changes) {
        const JobPlayer::Played* played = m_player->play(m_state.edits, {edit}, m_state.transfers);
        gains.push_back(played == nullptr
                            ? std::nullopt
                            : std::optional(edits::typicalSaving(m_steps.expected, played->sides.expected).expected));
    }
    return gains;
}

std::vector<double> PlayedJob::savedBy(const TransferScale& scale) const {
    std::vector<double> saved = m_steps.expected;
    const std::vector<double>& after = m_player->stepsNs(m_state.edits, scale);
    saved.resize(std::min(saved.size(), after.size()));
    for (size_t i = 0; i < saved.size(); ++i) saved[i] -= after[i] / m_effect.tokens;
    return saved;
}

MessageList PlayedJob::messages() const {
    return m_recorded ? m_player->messages() : m_player->messages(m_state.edits);
}

}  // namespace rankscope::recommend
