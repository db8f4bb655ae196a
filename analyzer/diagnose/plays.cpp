// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/plays.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "analyzer/edits/graph_changes.h"

namespace rankscope::diagnose {
namespace {

/// A play that nobody has asked for yet does not begin while one that takes so many times longer is under way: it can
/// be made in time later, and its hand stays free for another long one. Plays that change times take 1 to 3, those that
/// are played anew 8 and more (edits::effortOf()): anything between tells them apart.
constexpr double kMuchLonger = 4;

Played playInstantTransfers(const job::Analysis& analysis) {
    replay::TaskGraph instant = analysis.replay.graph;
    edits::changeTransfers(instant, [](const edits::TransferTask&, const replay::Exchange&, int64_t) { return 0; });
    Played played;
    played.stepsNs = analysis.replay.stepsNs(instant, replay::simulate(instant));
    return played;
}

/// Makes a play when it is asked for.
class OnePlayer : public Players {
  public:
    explicit OnePlayer(const job::Analysis& analysis) : m_player(analysis) {}
    size_t hands() const override { return 1; }
    size_t free() const override { return m_begun ? 0 : 1; }
    void begin(size_t number, const Play& what) override { m_begun = {number, what}; }
    std::pair<size_t, Played> ended() override {
        const auto [number, what] = *std::exchange(m_begun, std::nullopt);
        return {number, m_player.play(what)};
    }

  private:
    Player m_player;
    std::optional<std::pair<size_t, Play>> m_begun;
};

/// Makes plays in threads that last as long as it does: where each has a heap (keepFreedMemory()), it keeps there what
/// it has freed for its next play. What is begun and not taken up when it is destroyed is not made.
class ThreadPlayers : public Players {
  public:
    ThreadPlayers(const job::Analysis& analysis, size_t threads) : m_player(analysis) {
        for (size_t thread = 0; thread < threads; ++thread)
            m_threads.emplace_back([this](const std::stop_token& stop) { makePlays(stop); });
    }
    void prepare() override {
        m_prepared = std::async(std::launch::async, [this] { m_player.prepare(); });
    }
    size_t hands() const override { return m_threads.size(); }
    size_t free() const override { return m_threads.size() - m_plays.size(); }
    void begin(size_t number, const Play& what) override {
        std::packaged_task<Played()> task([this, what] { return m_player.play(what); });
        m_plays[number] = task.get_future();
        const std::lock_guard lock(m_lock);
        m_begun.emplace_back(number, std::move(task));
        m_isBegun.notify_one();
    }
    std::pair<size_t, Played> ended() override {
        std::unique_lock lock(m_lock);
        m_hasEnded.wait(lock, [this] { return !m_ended.empty(); });
        const size_t number = m_ended.back();
        m_ended.pop_back();
        lock.unlock();
        return {number, m_plays.extract(number).mapped().get()};
    }

  private:
    void makePlays(const std::stop_token& stop) {
        for (std::unique_lock lock(m_lock);;) {
            m_isBegun.wait(lock, stop, [this] { return !m_begun.empty(); });
            if (stop.stop_requested()) return;
            auto [number, task] = std::move(m_begun.back());
            m_begun.pop_back();
            lock.unlock();
            task();
            lock.lock();
            m_ended.push_back(number);
            m_hasEnded.notify_one();
        }
    }

    const Player m_player;
    std::future<void> m_prepared;
    std::map<size_t, std::future<Played>> m_plays;  // begun, and not taken yet
    std::mutex m_lock;                              // of what follows
    std::condition_variable_any m_isBegun;
    std::condition_variable m_hasEnded;
    std::vector<std::pair<size_t, std::packaged_task<Played()>>> m_begun;  // that no thread is at
    std::vector<size_t> m_ended;
    std::vector<std::jthread> m_threads;
};

std::unique_ptr<Players> playersOf(const job::Analysis& analysis, size_t threads) {
    if (threads < 2) return std::make_unique<OnePlayer>(analysis);
    return std::make_unique<ThreadPlayers>(analysis, std::min(threads, kPlaysAtOnce));
}

}  // namespace

Played Player::play(const Play& what) const {
    if (what.instant) return playInstantTransfers(m_analysis);
    Played played;
    try {
        edits::Edits made;
        for (const job::Change& change : what.changes) made.push_back(edits::makeEdit(change));
        if (made.empty()) return {.stepsNs = m_recorded.stepsNs()};
        edits::ChangedJob job = m_recorded.with(made, what.outlook);
        played.stepsNs = std::move(job.stepsNs);
        played.open = job.effect.open;
        played.hostMaySlow = job.effect.hostMaySlow;
        played.chanceNs = job.effect.chanceNs;
    } catch (const edits::EditError& error) {
        played.impossible = error.what();
    }
    return played;
}

void Player::prepare() const {
    if (!m_analysis.replay.available()) return;
    try {
        m_recorded.readPipeline();
    } catch (const std::exception&) {
        // The play that asks for it meets it again, and tells.
    }
}

Plays::Plays(const job::Analysis& analysis, unsigned threads) : Plays(playersOf(analysis, threads)) {}

void Plays::expect(std::vector<Play> plays) {
    plays.insert(plays.end(), m_atEnd.begin(), m_atEnd.end());
    std::ranges::stable_sort(plays, std::ranges::greater(),
                             [](const Play& play) { return edits::effortOf(play.changes); });
    m_expected = std::move(plays);
}

Plays::Made* Plays::find(const Play& what) {
    const auto at = std::ranges::find(m_made, what, &Made::what);
    return at == m_made.end() ? nullptr : &*at;
}

void Plays::begin(const Play& what) {
    m_players->begin(m_made.size(), what);
    m_made.push_back({what, nullptr});
    ++m_underWay;
}

void Plays::beginExpected(const Play& asked) {
    if (oneByOne()) return;
    for (const Play& what : m_expected) {
        if (m_players->idle() == 0) return;
        if (find(what) == nullptr && edits::effortOf(what.changes) * kMuchLonger > longestBeside(asked)) begin(what);
    }
}

double Plays::longestBeside(const Play& asked) const {
    double longest = 0;
    for (const Made& made : m_made)
        if (made.played == nullptr && made.what != asked)
            longest = std::max(longest, edits::effortOf(made.what.changes));
    return longest;
}

void Plays::takeEnded() {
    auto [number, played] = m_players->ended();
    m_made[number].played = std::make_unique<Played>(std::move(played));
    --m_underWay;
}

const Played& Plays::of(const Play& what) {
    if (find(what) == nullptr) {
        while (m_players->free() == 0) takeEnded();
        // Expected plays that take much longer begin before this one, as long as a hand is left for it: each goes to
        // the hand that has had least to do.
        for (const Play& longer : m_expected) {
            if (m_players->free() < 2 || m_players->idle() == 0) break;
            if (edits::effortOf(longer.changes) < edits::effortOf(what.changes) * kMuchLonger) break;
            if (find(longer) == nullptr) begin(longer);
        }
        begin(what);
    }
    beginExpected(what);
    while (find(what)->played == nullptr) {
        takeEnded();
        beginExpected(what);
    }
    return *find(what)->played;
}

void Plays::finish() {
    while (m_underWay > 0) takeEnded();
}

}  // namespace rankscope::diagnose
