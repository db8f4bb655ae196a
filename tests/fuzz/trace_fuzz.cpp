// SPDX-License-Identifier: Apache-2.0
// A trace.db with some values changed, through what the verbs do with it.
#include <sstream>

#include "analyzer/compare/run_summary.h"
#include "analyzer/compare/summary_file.h"
#include "analyzer/export/exported_event.h"
#include "analyzer/export/walk_trace.h"
#include "analyzer/recommend/recommend.h"
#include "analyzer/report/analyze.h"
#include "analyzer/report/renderers.h"
#include "collector/store/reader.h"
#include "tests/fuzz/row_edits.h"
#include "tests/unit/analyzer/trace_fixture.h"

using namespace rankscope;
using test::kMs;
using test::kUs;

namespace {

std::filesystem::path wholeTrace() {
    test::TraceFixture job(2, 1);
    job.links("intra:gbps=200,alpha_us=6;inter:gbps=20,alpha_us=18").clockBound(100);
    const int world = job.communicator({0, 1});
    for (int step = 0; step < 3; ++step) {
        const int64_t start = step * 10 * kMs;
        for (int rank = 0; rank < 2; ++rank) {
            job.step(rank, step, start, 10 * kMs, step == 0);
            job.range(rank, start, 10 * kMs, "step");
            job.launchedKernel(rank, start + 100 * kUs, (rank == 1 ? 5 : 3) * kMs, "gemm", 128, start + 90 * kUs,
                               5 * kUs);
        }
        job.collective(world, store::Op::allReduce, 8 << 20, {start + 6 * kMs, start + 6 * kMs}, 1 * kMs);
        job.message(world, 0, 1, 1 << 20, start + 8 * kMs, start + 8 * kMs, 100 * kUs);
    }
    const auto file = fuzz::folder() / "whole.db";
    job.write(file);
    return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    static const fuzz::RowEdits edits(wholeTrace());
    const auto file = fuzz::folder() / "trace.db";
    edits.apply({data, bytes}, file);
    try {
        report::AnalyzeOptions options;
        options.workers = 1;
        const report::Report report = report::analyze(file, options);
        report::renderText(report, {});
        report::renderJson(report);
        recommend::RecommendOptions advice;
        advice.workers = 1;
        recommend::renderAdviceText(recommend::recommend(file, advice), false);
        compare::renderSummary(compare::summarizeTrace(file, 1));
        store::TraceReader trace(file);
        std::ostringstream csv;
        exports::walkTrace(trace, *exports::csvTable(csv));
    } catch (const store::Error&) {
    }
    return 0;
}
