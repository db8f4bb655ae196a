// SPDX-License-Identifier: Apache-2.0
// A job with the changes made so far, played; the replay's side of StepPredictor.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/recommend/job_player.h"
#include "analyzer/recommend/step_predictor.h"

namespace rankscope::recommend {

/// As a predictor tells it (gainOf of edits/what_if.h).
EditedStep editedStep(const edits::StepSides& before, const edits::StepSides& after);

/// Copies are cheap: they hold no graph.
class PlayedJob {
  public:
    /// As recorded. `analysis` must outlive it and all that are made of it. Gains up to `noiseNs` a step are chance.
    PlayedJob(const job::Analysis& analysis, double noiseNs, Playing playing);

    /// With one more change. Nothing where it cannot be made, or a second one is to NCCL's choices.
    std::optional<PlayedJob> with(const JobChange& change) const;
    /// What a change gains, the job itself staying as it is. A gain that is no more than chance has no interval, and
    /// that of one that may lose is played no further than that is known.
    std::optional<EditedStep> gainBy(const std::string& edit) const;
    /// The same of several changes, each by itself, without the intervals, which take five times as long.
    std::vector<std::optional<double>> expectedGains(const std::vector<std::string>& changes) const;
    /// Saved by step, ns, with every transfer scaled.
    std::vector<double> savedBy(const TransferScale& scale) const;

    const edits::StepSides& steps() const { return m_steps; }
    MessageList messages() const;
    std::optional<facts::Pipeline> pipeline() const { return m_effect.pipeline; }

  private:
    /// As a candidate its outlooks are played as far as gainBy() says.
    enum class Depth { candidate, whole };
    std::optional<PlayedJob> with(const JobChange& change, Depth depth) const;

    const job::Analysis* m_analysis;
    double m_noiseNs = 0;
    std::shared_ptr<JobPlayer> m_player;  // of all jobs that are made of one: each knows what the others have played
    JobState m_state;
    bool m_recorded = true;  // no change was made, not even an empty one
    edits::EditEffect m_effect;
    edits::StepSides m_steps;
};

}  // namespace rankscope::recommend
