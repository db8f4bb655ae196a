// SPDX-License-Identifier: Apache-2.0
// Changes of what the host does.
#pragma once

#include "analyzer/edits/edit.h"
#include "analyzer/facts/rank_summary.h"

namespace rankscope::edits {

enum class Stall : uint8_t { synchronisation, input, allocator, pageable, lateLaunch, pauses };

/// The host no longer keeps the device waiting by that cause: what the stalls of the analysis name
/// (facts/idle_causes.h) is taken out, and with it the host's work between such a call and the next submission.
class NoStalls : public Edit {
  public:
    NoStalls(std::vector<Stall> causes, std::vector<int> ranks)
        : m_causes(std::move(causes)), m_ranks(std::move(ranks)) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;

  private:
    std::vector<Stall> m_causes;
    std::vector<int> m_ranks;
};

/// CUDA graphs instead of launches: inside a step a launch costs the host nothing, and the host's work between two of
/// them is gone. What waits for the device or for data stays.
class CudaGraphs : public Edit {
  public:
    explicit CudaGraphs(std::vector<int> ranks) : m_ranks(std::move(ranks)) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;

  private:
    std::vector<int> m_ranks;
};

/// Communication is called as soon as the host gets there: it does not hold it back in front of the call.
class LaunchEarly : public Edit {
  public:
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;
};

/// In the named steps nothing of these ranks (a kernel, a copy, a call, the host's work in front of one) takes longer
/// than the longest of its kind in their other steps.
class Steady : public Edit {
  public:
    Steady(std::vector<int> steps, std::vector<int> ranks) : m_steps(std::move(steps)), m_ranks(std::move(ranks)) {}
    void apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const override;

  private:
    std::vector<int> m_steps;
    std::vector<int> m_ranks;
};

std::unique_ptr<Edit> parseNoStalls(EditArguments& arguments);
std::unique_ptr<Edit> parseCudaGraphs(EditArguments& arguments);
std::unique_ptr<Edit> parseLaunchEarly(EditArguments& arguments);
std::unique_ptr<Edit> parseSteady(EditArguments& arguments);

}  // namespace rankscope::edits
