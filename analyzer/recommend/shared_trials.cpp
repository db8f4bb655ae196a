// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/shared_trials.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "collector/team/packing.h"

namespace rankscope::recommend {
namespace {

/// Between two looks at who has answered: next to nothing of a trial and of a processor.
constexpr std::chrono::milliseconds kNap{1};

}  // namespace

TeamTrials::TeamTrials(team::Team& team, const std::vector<int>& taking) : m_team(team) {
    for (const int process : taking)
        if (process != team.self()) m_hands.push_back({process});
}

void TeamTrials::share(const std::function<std::optional<size_t>()>& next,
                       const std::function<Trial(size_t number)>& trialOf,
                       const std::function<void(size_t number, std::optional<PlayedTrial>)>& take) {
    const auto begin = [&](Hand& hand) {
        hand.number = next();
        if (hand.number) m_team.sendTo(hand.process, team::Packer()(trialOf(*hand.number)).take());
    };
    for (Hand& hand : m_hands) begin(hand);
    while (std::ranges::any_of(m_hands, [](const Hand& hand) { return hand.number.has_value(); })) {
        for (Hand& hand : m_hands) {
            if (!hand.number || !m_team.isWaiting(hand.process)) continue;
            const std::string message = m_team.receiveFrom(hand.process);
            team::Unpacker unpacker(message, m_team.nameOf(hand.process));
            std::optional<PlayedTrial> played;
            if (unpacker.get<bool>()) unpacker(played.emplace());
            take(*hand.number, std::move(played));
            begin(hand);
        }
        std::this_thread::sleep_for(kNap);
    }
}

void helpWithTrials(const job::Analysis& analysis, team::Team& team) {
    JobPlayer player(analysis, {.workers = 1, .played = {}});
    for (;;) {
        const std::string message = team.await();
        const auto trial = team::Unpacker(message, team.nameOf(0)).get<Trial>();
        const PlayedTrial* played = player.play(trial.base, {trial.edits, trial.outlook}, {});
        team::Packer answer;
        answer(played != nullptr);
        if (played != nullptr) answer(*played);
        team.send(answer.take());
    }
}

}  // namespace rankscope::recommend
