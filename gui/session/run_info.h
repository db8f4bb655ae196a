// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collector/store/reader.h"
#include "gui/session/event_links.h"
#include "gui/timeline/lane_tree.h"
#include "gui/timeline/time_axis.h"

namespace rankscope::gui {

struct EvidenceLink {
    std::string table;  ///< of trace.db
    int64_t rowId = 0;
    int32_t rank = -1;  ///< -1: unknown
    std::string note;
    EventLink drawn;  ///< the event of the timeline that shows it: a collective's kernel on `rank`; table none where
                      ///< there is no such event
    std::optional<TimeRange> gap;  ///< of an idle gap: nothing to draw but the time
};

/// A finding as `rankscope analyze` left it in trace.db.
struct FindingInfo {
    int64_t id = 0;
    std::string diagnosis;  ///< "RS301"
    std::string title;
    std::string verdict;                                        ///< found | inconclusive | note
    double severity = 0;                                        ///< share of the step, 0..1
    std::optional<int64_t> savingNs;                            ///< per step
    std::optional<std::pair<int64_t, int64_t>> savingInterval;  ///< lowest and highest, per step
    std::vector<std::string> changes;                           ///< what a replay plays to tell it: "balance:ranks=3"
    std::vector<int32_t> steps;                                 ///< that show it
    std::optional<TimeRange> window;
    std::vector<int32_t> ranks;
    std::vector<int32_t> affectedRanks;
    std::string cause;
    std::string whyInconclusive;
    std::vector<std::string> facts;
    std::vector<std::string> fixes;
    std::vector<EvidenceLink> evidence;  ///< the strongest first
};

struct LossInfo {
    std::string severity, message;
};

struct StepInfo {
    int32_t rank = 0;
    int32_t step = 0;
    TimeRange range;
    bool warmUp = false;
};

/// A part of the critical path: the chain of work that the length of the steps is made of is on this rank.
struct PathStretch {
    int32_t rank = 0;
    TimeRange time;
};

/// Everything of a run but its events: what can be shown at once.
struct RunInfo {
    std::string file;
    std::string name;
    RunOutline outline;
    TimeRange whole;
    bool analyzed = false;  ///< `rankscope analyze` has been here
    std::vector<FindingInfo> findings;
    std::string verdict;                 ///< the report in one sentence; empty where an older version analysed
    std::vector<std::string> notJudged;  ///< "RS203, RS204: no link peak"
    std::vector<LossInfo> losses;
    std::vector<StepInfo> steps;    ///< by rank, then step
    std::vector<PathStretch> path;  ///< by time; empty where the analysis played no replay, or an older version did
    int64_t clockBoundNs = 0;       ///< largest error of an aligned time
    std::vector<std::string>
        linkPeaks;  ///< what the analysis took for them, a line, then what contradicts it; empty before one
    std::map<int64_t, std::string> streamNames, threadNames;
    /// What a lane calls its thread: "main", or the thread's name where no other of its rank has it; else as above.
    std::map<int64_t, std::string> threadLanes;
    std::vector<std::string> strings;     ///< by string id
    std::vector<std::string> shortNames;  ///< of `strings`, for kernels where there is little room (short_name.h)
    int64_t events = 0;                   ///< rows that the timeline will load
    std::map<int32_t, int64_t> eventsOfRank;
    std::vector<std::string> damage;  ///< findRunDamage
};

/// Throws store::Error where the file cannot be used.
RunInfo readRunInfo(store::TraceReader& reader);

}  // namespace rankscope::gui
