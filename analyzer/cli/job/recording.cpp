// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/recording.h"

#include <fmt/format.h>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/job/collect_step.h"
#include "analyzer/cli/job/nothing_recorded.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {
namespace {

ProcessEnd endOf(const JobEnd& job) {
    return job.firstFailed >= 0 ? job.processes[static_cast<size_t>(job.firstFailed)] : ProcessEnd{};
}

void collectAndReport(const Recording& recording, const Console& console) {
    if (!recording.collect) {
        console.next(fmt::format("rankscope collect {}", text::shellWord(recording.shownName)));
        return;
    }
    const Collected collected = collectRun(findRun(recording.run.path().string()));
    if (collected.recordedNothing) {
        const auto& job = recording.processes.front();
        if (console.isQuiet()) return;  // a wrapped job is heard alone
        console.warning(
            fmt::format("nothing was recorded: {}", whyNothingRecorded(job, recording.run.captureFolder())));
        console.next("rankscope doctor");
        return;
    }
    console.note(fmt::format("{}: {}", recording.shownName, collected.summary));
    if (!collected.warning.empty() && !console.isQuiet()) console.warning(collected.warning);
    console.next(fmt::format("rankscope analyze {}", text::shellWord(recording.shownName)));
}

}  // namespace

ProcessEnd record(const Recording& recording, const Console& console) {
    JobEnd job;
    HeldSignals signals;  // until this process has ended, or has told why the job could not be started
    try {
        job = runJob(recording.processes, signals, recording.gracePeriodMs, recording.endWithUs);
    } catch (...) {
        recording.run.abandon();
        throw;
    }
    const ProcessEnd end = endOf(job);
    try {
        if (recording.run.leave(end)) collectAndReport(recording, console);
    } catch (const VerbError& error) {
        console.error(fmt::format("the job has ended, but collecting failed: {}", error.what()), error.hint());
    } catch (const std::exception& error) {
        console.error(fmt::format("the job has ended, but collecting failed: {}", error.what()));
        console.next(fmt::format("rankscope collect {}", text::shellWord(recording.shownName)));
    }
    return end;
}

}  // namespace rankscope::cli
