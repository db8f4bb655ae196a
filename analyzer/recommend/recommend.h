// SPDX-License-Identifier: Apache-2.0
// Advice as data: what to set, what it gains, how sure that is (rankscope.recommend/1); how it is made and written.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/costs/algorithm_support.h"
#include "analyzer/costs/cost_evidence.h"
#include "analyzer/costs/link_peaks.h"
#include "analyzer/costs/nccl_tests_table.h"
#include "analyzer/costs/table_evidence.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/recommend/step_predictor.h"
#include "analyzer/text/terminal_text.h"

namespace rankscope::team {
class Team;
}  // namespace rankscope::team

namespace rankscope::recommend {

enum class Certainty : uint8_t {
    recommended,    // measured here, or by a replay of what was measured: apply it
    tryAndMeasure,  // a model says so: `rankscope tune` decides
};

enum class AdviceKind : uint8_t {
    setting,  // can be pasted
    repair,   // no setting cures it: hardware, or where the ranks run
    program,  // nor this: what the program does, its model, its input
};

/// One line of a tuner table: forces a choice where collective, size and group match.
struct TunerAdvice {
    store::Op op = store::Op::unknown;
    int64_t minBytes = 0;
    int64_t maxBytes = 0;
    costs::AlgorithmChoice choice;
    costs::GroupShape shape;
    // What the row changes, of all communicators together.
    double perStep = 0;  // collectives, mean
    double nowNs = 0;    // their transfers in a step
    facts::Estimate thenNs = {};
};

/// What to change, in each of the languages it can be said in; empty where it cannot.
struct Settings {
    using Words = std::map<std::string, std::string>;
    std::map<std::string, std::optional<std::string>> environment;  // nothing: unset it
    std::vector<TunerAdvice> tuner;
    Words ddp;         // arguments of DistributedDataParallel
    Words fsdp;        // of FullyShardedDataParallel, fully_shard
    Words launcher;    // what else the job's own command takes: micro-batches, virtual stages
    Words deepspeed;   // "zero_optimization.overlap_comm": JSON value
    Words accelerate;  // "fsdp_config.fsdp_forward_prefetch": YAML value

    /// Those of the last five, each with the name that texts give it.
    std::array<std::pair<const char*, const Words*>, 5> programs() const {
        return {{{"DDP", &ddp},
                 {"FSDP", &fsdp},
                 {"job", &launcher},
                 {"DeepSpeed", &deepspeed},
                 {"Accelerate", &accelerate}}};
    }
    bool empty() const {
        return environment.empty() && tuner.empty() &&
               std::ranges::all_of(programs(), [](const auto& program) { return program.second->empty(); });
    }
};

struct Recommendation {
    AdviceKind kind = AdviceKind::setting;
    int number = 0;    // as it is shown, from 1
    std::string area;  // algorithm | buckets | overlap | micro_batches | virtual_stages | redundancy | precision |
                       // channels | host | finding
    std::string title;
    Certainty certainty = Certainty::recommended;
    std::vector<std::string> findings;  // ids it answers
    Settings settings;
    std::vector<int> ranks;          // of what is no setting: where
    std::vector<std::string> steps;  // of what is no setting: what to do
    std::vector<std::string> notes;  // where the settings belong: who sets a variable now
    std::vector<std::string> evidence;
    std::string basis;         // where the prediction comes from
    facts::Estimate savingNs;  // per step, at equal tokens, on top of onTopOf
    bool mayCureLess = false;  // savingNs is what the finding's repair gains: the setting may do any part of it
    bool savingKnown = true;   // false: savingNs.high alone is, what the cause was seen to take
    double meanStepNs = 0;     // what the saving is a share of where rare steps alone gain; 0: the typical step
    std::vector<int> onTopOf;  // numbers: with these made before it
    std::optional<facts::Estimate> alone;  // on the job as it was recorded
    int batch = 1;  // so many times the samples of a step, at equal ones of which savingNs is. It trains another way:
                    // such a setting is only advised instead of another one
    int alternativeTo = 0;  // number of what sets the same thing otherwise; 0: none
    std::string risk;
    std::string verify;
    JobChange change;  // what the replay makes of it; empty: it cannot be played

    /// What it is worth to look at, ns per step.
    double worthNs() const { return savingKnown ? savingNs.expected : savingNs.high; }
};

/// Played together, never added.
struct Together {
    int settings = 0;                      // recommended ones
    facts::Estimate gain;                  // of these
    int fixes = 0;                         // of what no setting cures, and can be played
    std::optional<facts::Estimate> fixed;  // of these
    std::optional<facts::Estimate> both;
    double noiseNs = 0;  // what gains less beside the others gains nothing
};

/// What was looked at and is best left as it is.
struct KeptDefault {
    std::string area;
    std::string why;
};

struct Advice {
    std::string run;
    std::string death;      // of a job that did not end well, as a sentence; else empty
    std::string shownName;  // of the run, as its user typed it: for commands
    double stepNs = 0;
    int steps = 0;
    double noiseNs = 0;  // a gain must exceed it
    std::string judge;   // what predicts the step: a replay, or a first estimate
    std::optional<costs::NcclVersion> nccl;
    std::vector<std::string> limits;  // what could not be judged, and why
    std::vector<Recommendation>
        recommendations;                       // by certainty, then as accepted: each setting on top of those before it
    std::vector<Recommendation> alternatives;  // to these, each by itself
    std::optional<Together> together;          // none: nothing was played
    std::vector<KeptDefault> kept;
    std::vector<costs::CostCurve> curves;  // the evidence on collectives
    std::vector<costs::TableNote> notes;   // on these, on tables that are no evidence, and on what is said of the links

    /// Why no setting at all could be judged; empty: some was.
    std::vector<std::string> whyNothingJudged() const;
    /// The same as a sentence, "nothing could be judged, because: …".
    std::string nothingJudged() const;
};

/// What the advice is at, and how far that is.
struct AdviceProgress {
    const char* what = "";  // "each setting by itself"
    int stage = 0;          // of kStages, from 0
    int played = 0;         // jobs, so far
    static constexpr int kStages = 7;
};

struct RecommendOptions {
    unsigned workers = 0;                       // threads of this process; 0: its share of the cores
    std::vector<costs::NcclTestsTable> tables;  // evidence from outside
    costs::LinkSources links;                   // as in AnalyzeOptions
    std::string shownName;  // of the run, in the commands that the advice names; empty: the run's own
    std::function<void(const AdviceProgress&)> progress;  // called by one thread at a time; may be empty
    team::Team* team = nullptr;                         // as of job::LoadOptions; the others of it call helpRecommend()
    std::function<void(const std::string&)> tell = {};  // the same
};

/// Tells what findings cost, as diagnose::priceFindings() does.
using PriceFindings = std::function<void(const job::Analysis&, std::vector<job::Finding>&)>;
void priceAlone(const job::Analysis& analysis, std::vector<job::Finding>& findings);

/// Advice with the judge given. Without one that replays everything is only worth a trial.
Advice adviseOn(const job::Analysis& analysis, const RecommendOptions& options, const StepPredictor& predictor,
                const PriceFindings& price = priceAlone);

/// trace.db to advice. `trace` is a run name, a run directory or a .db file. Throws store::Error.
Advice recommend(const std::filesystem::path& trace, const RecommendOptions& options = {});

/// What a process of the team does while its first one is in recommend(): throws team::Dismissed when that has ended.
void helpRecommend(const std::filesystem::path& trace, team::Team& team, const RecommendOptions& options);

/// Lines have at most `columns`, but for settings, which are copied as a line, and the table of measured times.
std::string renderAdviceText(const Advice& advice, bool colour, size_t columns = text::kTextColumns);
/// What of the settings is no variable and no table, a line for each program: "DDP: bucket_cap_mb=25".
std::vector<std::string> programLines(const Settings& settings);
/// Writes one line of it, "sweep.txt line 12: not used: …".
std::string noteText(const costs::TableNote& note);
/// Schema rankscope.recommend/1.
std::string renderAdviceJson(const Advice& advice);
/// Is for `.` in a shell: export and unset lines.
std::string renderAdviceEnvironment(const Advice& advice);
/// Is for NCCL tuner plugins: NVIDIA's CSV of their sample, and `rankscope run --tuner`.
std::string renderAdviceTunerCsv(const Advice& advice);
/// Writes a fragment of a DeepSpeed configuration; JSON has no comments, so that trials are left out.
std::string renderAdviceDeepSpeed(const Advice& advice);
/// Writes a fragment of an Accelerate configuration, YAML.
std::string renderAdviceAccelerate(const Advice& advice);

}  // namespace rankscope::recommend
