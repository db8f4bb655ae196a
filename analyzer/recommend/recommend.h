// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "analyzer/costs/link_peaks.h"
#include "analyzer/costs/nccl_tests_table.h"
#include "analyzer/recommend/recommendation.h"
#include "analyzer/recommend/step_predictor.h"

namespace rankscope::recommend {

/// What the advice is at, and how far that is.
struct AdviceProgress {
    const char* what = "";  // "each setting by itself"
    int stage = 0;          // of kStages, from 0
    int played = 0;         // jobs, so far
    static constexpr int kStages = 7;
};

struct RecommendOptions {
    unsigned workers = 0;                       // threads of phase 1; 0: one per core
    std::vector<costs::NcclTestsTable> tables;  // evidence from outside
    costs::LinkSources links;                   // as in AnalyzeOptions
    std::string shownName;  // of the run, in the commands that the advice names; empty: the run's own
    std::function<void(const AdviceProgress&)> progress;  // called by one thread at a time; may be empty
};

/// Advice with the judge given. Without one that replays everything is only worth a trial.
Advice adviseOn(const job::Analysis& analysis, const RecommendOptions& options, const StepPredictor& predictor);

/// trace.db to advice. `trace` is a run name, a run directory or a .db file. Throws store::Error.
Advice recommend(const std::filesystem::path& trace, const RecommendOptions& options = {});

}  // namespace rankscope::recommend
