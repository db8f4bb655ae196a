// SPDX-License-Identifier: Apache-2.0
// What is told of a job while it runs, as data: `rankscope top`, its JSON (rankscope.top/1) and the metrics. What is
// unknown is std::nullopt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/job/finding.h"

namespace rankscope::cli {

struct LateRankRow {
    int rank = 0;
    double costNsPerStep = 0;  // that the others lose to it: waiting, and transfers that compute would have hidden
    double share = 0;          // of all that they lose to ranks
};

struct CommunicatorRow {
    int64_t id = 0;
    std::string group;  // "data parallel 0-7"
    int ranks = 0;
    double countPerStep = 0;
    std::optional<double> bytesPerStep;
    std::optional<double> busBytesPerS;  // of its collectives, weighted by their time
    std::optional<double> waitNsPerRankStep;
};

struct DeviceRow {
    int rank = 0;
    std::optional<int64_t> smMhz, smMaxMhz, clocksEvents, powerMw, powerLimitMw, temperatureC;
    std::optional<int64_t> memoryUsedBytes, memoryTotalBytes, utilizationPercent;
    std::optional<int64_t> eccUncorrected, nvlinkErrors, xid;
};

struct RankRow {
    int rank = 0;
    std::string host;
    std::optional<double> silentS;  // since it recorded anything, against the rank that did last
};

enum class LivePhase { starting, running, ended };

struct LiveState {
    LivePhase phase = LivePhase::starting;
    std::string run;
    int64_t unixNs = 0;          // when it was looked
    double windowS = 0;          // of the recorded time, that is looked at
    std::optional<double> ageS;  // of the last thing that was recorded; virtual time has none
    double heldBackS = 0;        // light mode: what is younger is not told yet (`--ring`)
    std::optional<int> worldSize;
    std::vector<RankRow> ranks;
    std::optional<double> stepNs, lastStepNs;  // median of the window's steps, and the last of them
    int steps = 0;                             // in the window
    std::string stepSource;
    std::vector<LateRankRow> late;  // costliest first
    std::vector<CommunicatorRow> communicators;
    std::vector<DeviceRow> devices;
    std::vector<job::Finding> findings;
    int64_t losses = 0;  // warnings and errors of the recording
};

}  // namespace rankscope::cli
