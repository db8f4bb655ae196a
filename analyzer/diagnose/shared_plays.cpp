// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/shared_plays.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <future>
#include <optional>
#include <ranges>
#include <thread>
#include <utility>

#include "analyzer/edits/edit.h"
#include "collector/team/packing.h"

namespace rankscope::diagnose {
namespace {

/// Between two looks at who has ended: little of a play, which takes tens of milliseconds where it is worth sharing
/// out, and next to nothing of a processor.
constexpr std::chrono::milliseconds kNap{1};

/// Seconds of a processor for each task of the graph in a play of edits::effortOf() 1, until a play has told what it
/// took (256 ranks, 4 million tasks: 0.16 s).
constexpr double kSecondsATask = 40e-9;

struct Hand {
    int process = 0;
    std::optional<size_t> number;  // of the play that it is at
    double seconds = 0;            // of a processor, that it has taken in all, with the play that it is at
    double told = 0;               // the same without it, as it has told
    double effort = 0;             // of the play that it is at
};

double ownSeconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

class TeamPlayers : public Players {
  public:
    TeamPlayers(const job::Analysis& analysis, team::Team& team, const std::vector<int>& taking)
        : m_player(analysis),
          m_team(team),
          m_secondsOfEffort(kSecondsATask * static_cast<double>(analysis.replay.graph.size())) {
        for (int process : taking) {
            Hand& hand = m_hands.emplace_back(Hand{process});
            if (process == team.self()) continue;
            const std::string message = team.receiveFrom(process);
            hand.seconds = hand.told = team::Unpacker(message, team.nameOf(process)).get<double>();
        }
    }

    size_t hands() const override { return m_hands.size(); }
    size_t free() const override { return static_cast<size_t>(std::ranges::count_if(m_hands, isFree)); }
    /// This process has joined the ranks, and has the rest of the analysis to do alone: it makes nothing ahead where it
    /// has had more to do than one of the others.
    size_t idle() const override {
        const double least = std::ranges::min(
            m_hands | std::views::filter([this](const Hand& hand) { return hand.process != m_team.self(); }) |
            std::views::transform(&Hand::seconds));
        const bool helps = ownSeconds() < least;
        return static_cast<size_t>(std::ranges::count_if(
            m_hands, [&](const Hand& hand) { return isFree(hand) && (helps || hand.process != m_team.self()); }));
    }

    /// To the one that has had least to do.
    void begin(size_t number, const Play& what) override {
        for (Hand& hand : m_hands)
            if (hand.process == m_team.self() && isFree(hand)) hand.seconds = hand.told = ownSeconds();
        Hand& hand = *std::ranges::min_element(
            m_hands, {}, [](const Hand& one) { return std::pair(one.number.has_value(), one.seconds); });
        hand.number = number;
        hand.effort = edits::effortOf(what.changes);
        hand.seconds = hand.told + hand.effort * m_secondsOfEffort;
        if (hand.process == m_team.self())
            m_own = std::async(std::launch::async, [this, what] { return m_player.play(what); });
        else
            m_team.sendTo(hand.process, team::Packer()(what).take());
    }

    std::pair<size_t, Played> ended() override {
        for (;; std::this_thread::sleep_for(kNap))
            for (Hand& hand : m_hands)
                if (hand.number && hasEnded(hand)) return {*std::exchange(hand.number, std::nullopt), resultOf(hand)};
    }

  private:
    static bool isFree(const Hand& hand) { return !hand.number; }

    bool hasEnded(const Hand& hand) const {
        if (hand.process != m_team.self()) return m_team.isWaiting(hand.process);
        return m_own.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    }

    Played resultOf(Hand& hand) {
        if (hand.process == m_team.self()) return m_own.get();
        const std::string message = m_team.receiveFrom(hand.process);
        Played played;
        team::Unpacker(message, m_team.nameOf(hand.process))(played)(hand.seconds);
        if (played.impossible.empty()) m_secondsOfEffort = (hand.seconds - hand.told) / hand.effort;
        hand.told = hand.seconds;
        return played;
    }

    const Player m_player;
    team::Team& m_team;
    std::vector<Hand> m_hands;
    std::future<Played> m_own;
    double m_secondsOfEffort;  // of a processor, by the last play that told
};

}  // namespace

std::unique_ptr<Players> sharedPlayers(const job::Analysis& analysis, team::Team& team,
                                       const std::vector<int>& taking) {
    return std::make_unique<TeamPlayers>(analysis, team, taking);
}

Plays playsBy(const job::Analysis& analysis, team::Team* team, const std::vector<int>& taking, unsigned workers) {
    if (taking.size() > 1) return Plays(sharedPlayers(analysis, *team, taking));
    return Plays(analysis, team::threadsFor(workers, team));
}

void endSharedPlays(team::Team& team, const std::vector<int>& taking) {
    for (const int process : taking)
        if (process != team.self()) team.sendTo(process, {});
}

void helpPlay(const job::Analysis& analysis, team::Team& team) {
    team.send(team::Packer()(ownSeconds()).take());
    const Player player(analysis);
    for (;;) {
        const std::string message = team.await();
        if (message.empty()) return;
        const auto what = team::Unpacker(message, team.nameOf(0)).get<Play>();
        const Played played = player.play(what);
        team.send(team::Packer()(played)(ownSeconds()).take());
    }
}

}  // namespace rankscope::diagnose
