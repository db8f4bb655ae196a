// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "analyzer/costs/collective_cost.h"
#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/job/finding.h"
#include "analyzer/recommend/recommendation.h"
#include "analyzer/recommend/step_predictor.h"

namespace rankscope::recommend {

struct RecommendThresholds {
    static constexpr double kFloorShare =
        0.01;  // what gains less of the step cannot be told from chance by a handful of runs
    static constexpr double kTryShare =
        0.03;  // a gain that only the model sees is worth a trial from here on (the floor of findings)
    static constexpr double kNoiseFactor = 2;  // standard errors of the median step a gain must exceed
};

/// What every adviser reads.
struct AdviceContext {
    const job::Analysis& analysis;
    const std::vector<job::Finding>& findings;
    const costs::CollectiveCost& cost;
    const StepPredictor& predictor;
    std::optional<costs::NcclVersion> nccl;
    double noiseNs = 0;   // a gain must exceed it
    std::string runName;  // as commands take it
    std::set<std::string> settled =
        {};  // areas that settings accepted before are of: `predictor` is the judge of the job with these

    bool open(const std::string& area) const { return settled.count(area) == 0; }
};

/// Median of the savings with an interval: from the quartiles of the pessimistic to those of the optimistic prediction.
/// It holds their means, too, which a step unlike the others (the first one of a run) pulls away from the medians.
void setSaving(const std::vector<double>& expected, const std::vector<double>& pessimistic,
               const std::vector<double>& optimistic, Recommendation& recommendation);

/// NCCL_ALGO, NCCL_PROTO and tuner tables.
void adviseAlgorithms(const AdviceContext& context, Advice& advice);

/// Bytes of a gradient's element as it travels; 2 when nothing tells. DeepSpeed counts buckets in elements.
int gradientElementBytes(const job::Analysis& analysis);

/// Bucket sizes of gradients, by replaying the step with each of them.
void adviseBuckets(const AdviceContext& context, Advice& advice);

/// Micro-batches and virtual stages, by playing the schedule with them.
void adviseSchedule(const AdviceContext& context, Advice& advice);

/// Gathering sharded parameters a layer ahead.
void advisePrefetch(const AdviceContext& context, Advice& advice);

/// Settings are written for findings of this diagnosis, beside those of areas that are judged by candidates of their
/// own.
bool translates(const diagnose::Diagnosis& diagnosis);

/// What findings propose and can be written as a setting: overlap, buckets, precision, micro-batches, channels,
/// allocator, pinned memory. What is judged in `advice` already is left out.
void adviseFromFindings(const AdviceContext& context, Advice& advice);

/// Certain findings that no setting of `advice` is about: hardware, placing, the program, its input.
std::vector<Recommendation> curesFor(const AdviceContext& context, const Advice& advice);

/// Asks all advisers, again for what is left after each setting that is accepted, and fills recommendations,
/// alternatives, what is kept and what all gain together. `tell` is called with what it is at, and the number of that
/// stage (AdviceProgress).
void composeAdvice(const AdviceContext& context, const std::function<void(const char* what, int stage)>& tell,
                   Advice& advice);

}  // namespace rankscope::recommend
