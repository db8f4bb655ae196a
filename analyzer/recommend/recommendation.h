// SPDX-License-Identifier: Apache-2.0
// Advice as data: what to set, what it gains, how sure that is (rankscope.recommend/1).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/recommend/cost_evidence.h"
#include "analyzer/recommend/nccl_version.h"

namespace rankscope::analyzer {

enum class Certainty : uint8_t {
    recommended,    // measured here, or by a replay of what was measured: apply it
    tryAndMeasure,  // a model says so: `rankscope tune` decides
};

/// One line of a tuner table: forces a choice where collective, size and group match.
struct TunerAdvice {
    store::Op op = store::Op::unknown;
    int64_t minBytes = 0;
    int64_t maxBytes = 0;
    AlgorithmChoice choice;
    GroupShape shape;
    // What the row changes, of all communicators together.
    int perStep = 0;       // collectives
    double nowNs = 0;      // their transfers in a step
    Range thenNs;
    double expectedNs = 0;
};

/// What to change, in each of the languages it can be said in; empty where it cannot.
struct Settings {
    std::map<std::string, std::optional<std::string>> environment;  // nothing: unset it
    std::vector<TunerAdvice> tuner;
    std::map<std::string, std::string> ddp;         // arguments of DistributedDataParallel
    std::map<std::string, std::string> fsdp;        // of FullyShardedDataParallel, fully_shard
    std::map<std::string, std::string> deepspeed;   // "zero_optimization.overlap_comm": JSON value
    std::map<std::string, std::string> accelerate;  // "fsdp_config.fsdp_forward_prefetch": YAML value
    std::map<std::string, std::string> launcher;    // what else the job's own command takes: micro-batches, virtual stages

    bool empty() const {
        return environment.empty() && tuner.empty() && ddp.empty() && fsdp.empty() && deepspeed.empty() && accelerate.empty() && launcher.empty();
    }
};

struct Recommendation {
    std::string area;                   // algorithm | buckets | overlap | micro_batches | precision | channels | host
    std::string title;
    Certainty certainty = Certainty::recommended;
    std::vector<std::string> findings;  // ids it answers
    Settings settings;
    std::vector<std::string> notes;     // where the settings belong: who sets a variable now
    std::vector<std::string> evidence;
    std::string basis;                  // where the prediction comes from
    double savingNs = 0;                // per step, at equal tokens; median over the steps
    double savingLowNs = 0;
    double savingHighNs = 0;
    std::string risk;
    std::string verify;
};

/// What was looked at and is best left as it is.
struct KeptDefault {
    std::string area;
    std::string why;
};

struct Advice {
    std::string run;
    std::string shownName;              // of the run, as its user typed it: for commands
    double stepNs = 0;
    int steps = 0;
    double noiseNs = 0;                 // a gain must exceed it
    std::string judge;                  // what predicts the step: a replay, or a first estimate
    std::optional<NcclVersion> nccl;
    std::vector<std::string> limits;    // what could not be judged, and why
    std::vector<Recommendation> recommendations;  // by certainty, then saving
    std::vector<KeptDefault> kept;
    std::vector<CostCurve> curves;      // the evidence on collectives
};

}  // namespace rankscope::analyzer
