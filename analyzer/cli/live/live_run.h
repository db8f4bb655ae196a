// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "analyzer/cli/live/live_state.h"
#include "analyzer/costs/link_peaks.h"
#include "collector/collect.h"
#include "injector/capture_format/capture_tail.h"

namespace rankscope::cli {

// Looks at a run while it is recorded: what its captures hold of the last seconds is collected beside the run, into a
// folder of its own, and analysed as any run is. Nothing of the run is touched.
class LiveRun {
  public:
    // Throws VerbError where there is no such run, and std::filesystem::filesystem_error where no folder can be made.
    LiveRun(const std::filesystem::path& run, double windowS, unsigned threads);
    ~LiveRun();
    LiveRun(const LiveRun&) = delete;
    LiveRun& operator=(const LiveRun&) = delete;

    // Throws VerbError where the job has ended and no capture of it can be read.
    LiveState look();

  private:
    std::optional<int64_t> newestNs();
    double heldBackS() const;
    bool hasEnded() const;
    void refuseUnreadable() const;
    void analyse(int64_t untilNs, LiveState& state);

    std::filesystem::path m_run;
    std::filesystem::path m_scratch;
    double m_windowS;
    unsigned m_threads;
    std::map<std::string, capture::CaptureTail> m_tails;  // by path
    std::optional<int64_t> m_newestNs;
    std::shared_ptr<collector::FollowedCaptures> m_followed;
    costs::LinkSources m_links;
};

}  // namespace rankscope::cli
