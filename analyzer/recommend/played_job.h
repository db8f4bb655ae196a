// SPDX-License-Identifier: Apache-2.0
// A job with the changes made so far, played; the replay's side of StepPredictor.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/edits/step_sides.h"
#include "analyzer/recommend/message_list.h"
#include "analyzer/recommend/step_predictor.h"

namespace rankscope::recommend {

/// As a predictor tells it (gainOf of edits/step_sides.h).
EditedStep editedStep(const edits::StepSides& before, const edits::StepSides& after);

/// Copies are cheap: they share the graph.
class PlayedJob {
  public:
    /// As recorded. `analysis` must outlive it and all that are made of it. Gains up to `noiseNs` a step are chance.
    PlayedJob(const job::Analysis& analysis, double noiseNs);

    /// With one more change. Nothing where it cannot be made, or a second one is to NCCL's choices.
    std::optional<PlayedJob> with(const JobChange& change) const;
    /// What a change gains, the job itself staying as it is. A gain that is no more than chance has no interval.
    std::optional<EditedStep> gainBy(const std::string& edit) const;
    /// Saved by step, ns, with every transfer scaled.
    std::vector<double> savedBy(const TransferScale& scale) const;

    const edits::StepSides& steps() const { return m_steps; }
    MessageList messages() const;
    std::optional<facts::Pipeline> pipeline() const { return m_job ? m_job->effect.pipeline : std::nullopt; }

  private:
    const replay::TaskGraph& graph() const { return m_job ? m_job->graph : m_analysis->replay.graph; }
    /// All changes so far and one more. Nothing where it cannot be made.
    std::optional<edits::ChangedJob> changed(const JobChange& change, edits::Outlook outlook) const;
    /// Nothing where NCCL would be left without a choice.
    std::optional<edits::StepSides> play(const edits::ChangedJob& job, const TransferChange& transfers) const;
    /// The same as expected only.
    std::optional<std::vector<double>> playExpected(const edits::ChangedJob& job,
                                                    const TransferChange& transfers) const;
    std::vector<double> stepsWith(const edits::ChangedJob& job, const TransferScale& scale) const;
    /// Its outlooks are left out where it gains no more than `leastNs`.
    std::optional<PlayedJob> with(const JobChange& change, std::optional<double> leastNs) const;
    /// Plays `change` on top of all so far with every outlook.
    void addOutlooks(const JobChange& change, const edits::ChangedJob& job, const TransferChange& transfers,
                     edits::StepSides& steps) const;

    const job::Analysis* m_analysis;
    double m_noiseNs = 0;
    std::shared_ptr<const edits::ChangedJob> m_job;  // none: as recorded
    std::vector<std::string> m_edits;                // that made it
    TransferChange m_transfers;
    edits::StepSides m_steps;
};

}  // namespace rankscope::recommend
