// SPDX-License-Identifier: Apache-2.0
// Plays a job with changes, each set of changes once: the replay's side of StepPredictor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/edits/what_if.h"
#include "analyzer/recommend/job_change.h"
#include "analyzer/recommend/step_predictor.h"

namespace rankscope::recommend {

/// What a changed job is: its steps, without outlooks, and what changed beside the graph.
struct PlayedTrial {
    edits::StepSides sides;
    edits::EditEffect effect;
};

/// Changes of a job, and how what the trace leaves open is taken.
struct Trial {
    std::vector<std::string> base;   // as expected, one after the other
    std::vector<std::string> edits;  // on top of these
    edits::Outlook outlook = edits::Outlook::expected;
};

/// Processes that play trials beside this one.
class TrialHelpers {
  public:
    virtual ~TrialHelpers() = default;
    /// Gives each free process the trial `trialOf(number)` as long as `next` has a number, and each answer to `take`:
    /// nothing where that trial cannot be made. Comes back when all that were given out have been answered. Called by
    /// the thread that speaks with them.
    virtual void share(const std::function<std::optional<size_t>()>& next,
                       const std::function<Trial(size_t number)>& trialOf,
                       const std::function<void(size_t number, std::optional<PlayedTrial>)>& take) = 0;
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(PlayedTrial& value, const Visit& visit) {
    auto& [sides, effect] = value;
    visit(sides, effect);
}
template <typename Visit>
void forEachField(Trial& value, const Visit& visit) {
    auto& [base, edits, outlook] = value;
    visit(base, edits, outlook);
}

/// Keeps the graph of one changed job beside the recorded one: a graph is most of the memory, and what is played of
/// changes is asked for again more often than their graph. Called by one thread at a time.
class JobPlayer {
  public:
    /// `analysis` must outlive it.
    JobPlayer(const job::Analysis& analysis, Playing playing);

    using Played = PlayedTrial;
    /// What is changed besides a base, and how what the trace leaves open is taken.
    struct Added {
        std::vector<std::string> edits;
        edits::Outlook outlook = edits::Outlook::expected;
    };
    /// The changes of `base` and then the added ones, with `transfers`. Nothing where they cannot be made, or NCCL
    /// would be left without a choice. Many changes to one base are what it is fast with.
    const Played* play(const std::vector<std::string>& base, const Added& added, const TransferChange& transfers);
    /// Each of them by itself with play(), so that it then is known: several at a time.
    void prepare(const std::vector<std::string>& base, const std::vector<Added>& all, const TransferChange& transfers);
    /// Other processes play beside this one.
    bool isHelped() const { return m_playing.helpers != nullptr; }

    /// As recorded.
    const MessageList& messages() const { return m_messages; }
    /// Of a job whose edits can be made: its collectives, and its steps with all of them scaled.
    MessageList messages(const std::vector<std::string>& edits);
    const std::vector<double>& stepsNs(const std::vector<std::string>& edits, const TransferScale& scale);

  private:
    using Key = std::tuple<std::vector<std::string>, std::string, edits::Outlook>;

    struct Held {
        std::vector<std::string> edits;
        std::shared_ptr<const edits::TrialJob> job;
        std::unique_ptr<ScaledTransfers> transfers;  // none: not asked for yet
        std::optional<MessageList> messages;
    };
    /// As expected. Throws EditError.
    Held& hold(const std::vector<std::string>& edits);
    /// Throws EditError.
    edits::ChangedJob make(const Held& base, const Added& added) const;
    /// Nothing where they cannot be made. Any thread.
    std::optional<Played> playOn(const Held& base, const Added& added, const TransferChange& transfers) const;
    using Next = std::function<std::optional<size_t>()>;
    /// Calls `play` with each number under `count`, from as many threads as memory has room for jobs of so many
    /// `tasks`. The calling thread is one of them, or does `beside` and takes numbers for it.
    void eachAtOnce(size_t count, size_t tasks, const std::function<void(size_t)>& play,
                    const std::function<void(const Next&)>& beside = {}) const;
    std::optional<Played> sidesOf(const replay::TaskGraph& graph, const edits::EditEffect& effect,
                                  std::vector<double> stepsNs, const TransferChange& transfers) const;

    const job::Analysis& m_analysis;
    Playing m_playing;
    MessageList m_messages;        // as recorded
    mutable std::mutex m_telling;  // of m_playing.played
    Held m_recorded, m_changed;    // m_changed: the one that was needed last; none yet: without a job
    std::map<Key, std::optional<Played>> m_played;
};

/// Copies are cheap: they hold no graph.
class PlayedJob {
  public:
    /// As recorded. `analysis` must outlive it and all that are made of it. Gains up to `noiseNs` a step are chance.
    PlayedJob(const job::Analysis& analysis, double noiseNs, Playing playing);

    /// As a candidate its outlooks are played as far as gainBy() says.
    enum class Depth { candidate, whole };
    /// With one more change. Nothing where it cannot be made, or a second one is to NCCL's choices.
    std::optional<PlayedJob> with(const JobChange& change, Depth depth = Depth::whole) const;
    /// What a change gains, the job itself staying as it is. A gain that is no more than chance has no interval, and
    /// that of one that may lose is played no further than that is known.
    std::optional<edits::SideGain> gainBy(const std::string& edit) const;
    /// The same of several changes, each by itself, without the intervals, which take five times as long.
    std::vector<std::optional<double>> expectedGains(const std::vector<std::string>& changes) const;
    /// gainBy() may be asked for these next: where other processes play beside this one, they are played now.
    void playAhead(const std::vector<std::string>& changes) const;
    /// Saved by step, ns, with every transfer scaled.
    std::vector<double> savedBy(const TransferScale& scale) const;

    const edits::StepSides& steps() const { return m_steps; }
    MessageList messages() const;
    std::optional<facts::Pipeline> pipeline() const { return m_effect.pipeline; }

  private:
    bool mayLose(const edits::StepSides& after) const;
    /// As a candidate it is given up, whatever its outlooks say.
    bool isNoGain(const edits::StepSides& after) const;

    const job::Analysis* m_analysis;
    double m_noiseNs = 0;
    std::shared_ptr<JobPlayer> m_player;  // of all jobs that are made of one: each knows what the others have played
    JobChange m_state;                    // all changes so far
    bool m_recorded = true;               // no change was made, not even an empty one
    edits::EditEffect m_effect;
    edits::StepSides m_steps;
};

}  // namespace rankscope::recommend
