// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/costs/collective_cost.h"
#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/job/finding.h"
#include "analyzer/recommend/recommend.h"
#include "analyzer/recommend/step_predictor.h"

namespace rankscope::recommend {

struct RecommendThresholds {
    /// What gains less of the step cannot be told from chance by a handful of runs.
    static constexpr double kFloorShare = 0.01;
    /// A gain that only the model sees is worth a trial from here on (the floor of findings).
    static constexpr double kTryShare = 0.03;
    // A variable that forces NCCL's choice must be looked after when NCCL, the machine or the job changes: it is worth
    // that from this share of the step on.
    static constexpr double kVariableShare = 0.05;
    static constexpr double kNoiseFactor = 2;  // standard errors of the median step a gain must exceed
};

/// A number of a finding's evidence.
std::optional<double> numberOf(const job::Finding& finding, std::string_view name);

/// What every adviser reads.
struct AdviceContext {
    const job::Analysis& analysis;
    const std::vector<job::Finding>& findings;
    const costs::CollectiveCost& cost;
    StepPredictor predictor;
    std::optional<costs::NcclVersion> nccl;
    double noiseNs = 0;                  // a gain must exceed it
    std::string runName;                 // as commands take it
    std::set<std::string> settled = {};  // areas of the settings accepted before, with which `predictor` has the job

    bool open(const std::string& area) const { return !settled.contains(area); }
    /// True when this fault was found for certain.
    bool found(const diagnose::Diagnosis& diagnosis) const;
    /// What a finding of this fault proposes, by the name of its number in the evidence.
    std::optional<double> proposed(const diagnose::Diagnosis& diagnosis, std::string_view number) const;
};

/// NCCL_ALGO, NCCL_PROTO and tuner tables.
void adviseAlgorithms(const AdviceContext& context, Advice& advice);

/// Bytes of a gradient's element as it travels; 2 when nothing tells. DeepSpeed counts buckets in elements.
int gradientElementBytes(const job::Analysis& analysis);

/// Sets the buckets of gradients to messages of `mebibytes` MiB. DDP counts gradients as they are held, `heldBytes` an
/// element; DeepSpeed counts elements, which are `sentBytes` each on their way (DistributedDataParallel's
/// bucket_cap_mb, DeepSpeed's zero_optimization.reduce_bucket_size).
void setBuckets(int64_t mebibytes, int heldBytes, int sentBytes, Recommendation& recommendation);

/// Bucket sizes of gradients, by replaying the step with each of them.
void adviseBuckets(const AdviceContext& context, Advice& advice);

/// Micro-batches and virtual stages, by playing the schedule with them.
void adviseSchedule(const AdviceContext& context, Advice& advice);

/// Has sharded parameters gathered a layer ahead.
void setPrefetch(Settings& settings);

/// Gathering sharded parameters a layer ahead, by playing the step with it.
void advisePrefetch(const AdviceContext& context, Advice& advice);

/// True when a setting is written for findings of this diagnosis, beside the areas that are judged by candidates of
/// their own.
bool translates(const diagnose::Diagnosis& diagnosis);

/// What findings propose and can be written as a setting: overlap, buckets, precision, micro-batches, channels,
/// allocator, pinned memory. What is judged in `advice` already is left out.
void adviseFromFindings(const AdviceContext& context, Advice& advice);

/// Certain findings that no setting of `advice` is about: hardware, placing, the program, its input.
std::vector<Recommendation> fixesFor(const AdviceContext& context, const Advice& advice);

/// Asks all advisers, again for what is left after each setting that is accepted, and fills recommendations,
/// alternatives, what is kept and what all gain together. `tell` is called with what it is at, and the number of that
/// stage (AdviceProgress).
void composeAdvice(const AdviceContext& context, const std::function<void(const char* what, int stage)>& tell,
                   Advice& advice);

}  // namespace rankscope::recommend
