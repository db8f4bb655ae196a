// SPDX-License-Identifier: Apache-2.0
// A file that says how somebody's own JSON of events is to be read (docs/mappings.md): which text tells the rank, what
// an event's name says that it is, and the unit of its times.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "collector/importers/text_pattern.h"
#include "collector/store/vocabulary.h"

namespace rankscope::collector {

/// A text of an event or its surroundings, and what of it tells an axis, the lane or the step.
struct MappingPlace {
    std::string field;  ///< file_name, key, process_name, thread_name, or a member of the event: pid, args.step
    TextPattern pattern;
};

/// What events of a name are.
struct MappingRule {
    enum class Kind : uint8_t { ignored, compute, copy, range, collective, message };
    std::string name;
    TextPattern pattern;
    std::optional<TextPattern> lane;  ///< of the lanes that it holds for; empty: of all
    Kind kind = Kind::ignored;
    store::Op op = store::Op::unknown;  ///< of a collective or message
    std::vector<size_t> differs;        ///< axes on which one name stands for different work: stages of a pipeline
    std::vector<size_t> along;          ///< axes in which the ranks that communicate differ
    std::string group;                  ///< keeps apart what communicates along the same axes; empty: one group
    int64_t peer = 0;                   ///< of a message: so many further on its axis
    std::string start, end;             ///< of shape `lists`: the members that hold times
};

struct TraceMapping {
    enum class Shape : uint8_t {
        chrome,  ///< a list of events with ph, ts and dur, or one in traceEvents
        lists,   ///< a document of documents, each with lists of starts and of ends
    };
    std::filesystem::path file;
    Shape shape = Shape::chrome;
    /// How the times of a step go on from those of the one before it.
    enum class StepTimes : uint8_t {
        continued,
        restart,  ///< the times of every step count from its own start
        sampled,  ///< steps are samples of a longer job: what lies between them in the file was not in the job
    };
    /// Stages of pipelines, where events are their passes and messages are not among them.
    struct Pipelines {
        size_t axis = 0;
        std::string forward, backward;  ///< names of rules
    };
    double unitNs = 1000;  ///< nanoseconds in a unit of its times
    StepTimes stepTimes = StepTimes::continued;
    std::vector<std::string> axes;  ///< of the ranks, outermost first: "pp", "dp"
    std::vector<MappingPlace> tells;
    std::vector<MappingRule> rules;  ///< the first that fits a name counts
    std::optional<Pipelines> pipelines;
};

/// Throws ImportError for what is no mapping, with the member that is wrong.
TraceMapping readTraceMapping(const std::filesystem::path& file);

}  // namespace rankscope::collector
