// SPDX-License-Identifier: Apache-2.0
// A job with the changes made so far, played; the replay's side of StepPredictor.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/recommend/message_list.h"
#include "analyzer/recommend/step_predictor.h"
#include "analyzer/replay/what_if.h"

namespace rankscope::analyzer {

/// Step times of the analysed steps at equal tokens, ns: with every transfer as expected, and at the ends of what its estimate allows. Messages of sizes that never ran are known as
/// well as formulas know them.
struct StepSides {
    std::vector<double> expected, pessimistic, optimistic;
};

/// What `after` saves over `before`: the typical step as expected; the interval holds every side's, and its mean, which a step unlike the others (the first one of a run) pulls
/// away from the typical one.
EditedStep gainOf(const StepSides& before, const StepSides& after);

/// Copies are cheap: they share the graph.
class PlayedJob {
  public:
    /// As recorded. `analysis` must outlive it and all that are made of it.
    explicit PlayedJob(const Analysis& analysis);

    /// With one more change. Nothing where it cannot be made, or a second one is to NCCL's choices.
    std::optional<PlayedJob> with(const JobChange& change) const;
    /// What a change is expected to gain, the job itself staying as it is; the interval is the steps' variation and what the trace leaves open of the change.
    std::optional<EditedStep> gainBy(const std::string& edit) const;
    /// Saved by step, ns, with every transfer scaled.
    std::vector<double> savedBy(const TransferScale& scale) const;

    const StepSides& steps() const { return m_steps; }
    MessageList messages() const;
    std::optional<Pipeline> pipeline() const { return m_job ? m_job->effect.pipeline : std::nullopt; }

  private:
    const TaskGraph& graph() const { return m_job ? m_job->graph : m_analysis->replay.graph; }
    using Sizes = std::set<std::tuple<int64_t, store::Op, int64_t>>;
    std::optional<ChangedJob> changed(const JobChange& change, Outlook outlook = Outlook::expected) const;
    void widenByOutlooks(EditedStep& gain, const StepSides& before, const std::string& edit, const ChangedJob& job) const;
    /// Nothing where NCCL would be left without a choice.
    std::optional<StepSides> play(const ChangedJob& job, const TransferChange& transfers, bool withEnds) const;

    const Analysis* m_analysis;
    std::shared_ptr<const ChangedJob> m_job;  // none: as recorded
    std::shared_ptr<const Sizes> m_recorded;  // of its messages
    TransferChange m_transfers;
    StepSides m_steps;
};

}  // namespace rankscope::analyzer
