// SPDX-License-Identifier: Apache-2.0
// The job played with changes, for the prices of findings. What a play gives depends on nothing but the analysis and
// what is asked, so that plays may be made ahead, and by others.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/edits/edit.h"
#include "analyzer/edits/what_if.h"
#include "analyzer/job/analysis.h"

namespace rankscope::diagnose {

struct Play {
    std::vector<job::Change> changes{};                 // of the recorded job, one after the other
    edits::Outlook outlook = edits::Outlook::expected;  // that all of them are taken with
    bool instant = false;                               // instead of changes: every transfer takes no time
    bool operator==(const Play&) const = default;
};

struct Played {
    std::string impossible;                  // why a change cannot be made; empty: they all can
    std::vector<double> stepsNs;             // of the analysed steps, at equal tokens
    bool open = false, hostMaySlow = false;  // of edits::EditEffect
    double chanceNs = 0;                     // the same
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(Play& value, const Visit& visit) {
    auto& [changes, outlook, instant] = value;
    visit(changes, outlook, instant);
}
template <typename Visit>
void forEachField(Played& value, const Visit& visit) {
    auto& [impossible, stepsNs, open, hostMaySlow, chanceNs] = value;
    visit(impossible, stepsNs, open, hostMaySlow, chanceNs);
}

/// Plays that one process makes beside each other, however many threads it has. Memory bounds them: where a change
/// makes the graph anew, it is in memory up to two times more meanwhile (256 ranks, analysed: 1.0 GiB with one play at
/// a time, 1.5 with two).
inline constexpr size_t kPlaysAtOnce = 2;

/// Makes plays of one job, by any threads at a time. What plays read of it is read once and kept as long as this lives:
/// of a pipeline some 20 bytes a task.
class Player {
  public:
    /// `analysis` must outlive it.
    explicit Player(const job::Analysis& analysis) : m_analysis(analysis), m_recorded(analysis) {}

    /// The analysis has a replay.
    Played play(const Play& what) const;
    /// Reads what the longest plays would ask for first.
    void prepare() const;

  private:
    const job::Analysis& m_analysis;
    edits::TrialJob m_recorded;
};

/// Who makes plays. Used by one thread.
class Players {
  public:
    virtual ~Players() = default;
    /// Plays that can be made beside each other.
    virtual size_t hands() const = 0;
    /// Of them, those that nobody is at.
    virtual size_t free() const = 0;
    /// Of these, those that have nothing better to do than what may be asked for: begin() takes them first.
    virtual size_t idle() const { return free(); }
    /// Before detectors run, beside which there is nothing to play yet: those that can read what the longest plays will
    /// ask for (0.06 of 3.3 s of two threads at 256 ranks).
    virtual void prepare() {}
    /// There is a free hand. `number` names the play in ended().
    virtual void begin(size_t number, const Play& what) = 0;
    /// A play that has been begun and has ended; waits for the first of them. One at least is under way.
    virtual std::pair<size_t, Played> ended() = 0;
};

/// Each play is made once. Used by one thread.
class Plays {
  public:
    /// Made by so many `threads`, at most kPlaysAtOnce; one: the caller's own, one play after the other. `analysis`
    /// must outlive this.
    explicit Plays(const job::Analysis& analysis, unsigned threads = 1);
    explicit Plays(std::unique_ptr<Players> players) : m_players(std::move(players)) {}

    /// Plays will be asked for, but not yet.
    void prepare() { m_players->prepare(); }
    /// These may be asked for next: idle hands begin them beside what is asked for, those that take longest first, so
    /// that no hand is left with a long one at the end, and of those that take as long the likeliest, which come first
    /// here. Short ones begin when no long one but the one asked for is under way. Replaces what was expected before;
    /// what has been begun goes on.
    void expect(std::vector<Play> plays);
    /// This one is asked for at the end, whatever is expected before.
    void expectAtEnd(Play play) { m_atEnd.push_back(std::move(play)); }
    /// True where nothing is made ahead, and expect() is of no use.
    bool oneByOne() const { return m_players->hands() < 2; }
    const Played& of(const Play& what);
    /// Waits for what has been begun and was not asked for.
    void finish();

  private:
    struct Made {
        Play what;
        std::unique_ptr<Played> played;  // none: under way
    };
    Made* find(const Play& what);
    void begin(const Play& what);
    void beginExpected(const Play& asked);
    double longestBeside(const Play& asked) const;  // edits::effortOf() of those under way; 0: there is none
    void takeEnded();

    std::unique_ptr<Players> m_players;
    size_t m_underWay = 0;
    std::vector<Play> m_expected, m_atEnd;
    std::vector<Made> m_made;  // a few dozen
};

}  // namespace rankscope::diagnose
