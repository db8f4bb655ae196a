// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/costs/collective_cost.h"
#include "analyzer/job/analysis.h"
#include "analyzer/recommend/job_change.h"

namespace rankscope::recommend {

/// Holds all collectives of the analysed steps that are one to NCCL's choice.
struct MessageGroup {
    MessageKey key;
    costs::Message message;  // presentNs: the median
    double count = 0;        // per step, mean
    double totalNs = 0;      // of all
};

/// Has groups by key. `unknown` counts collectives whose algorithm or protocol nothing tells.
struct MessageList {
    std::vector<MessageGroup> groups;
    int64_t unknown = 0;
};

/// Lists the collectives that NCCL chooses an algorithm for, whose transfer is known.
MessageList messagesOf(const job::Analysis& analysis);

/// Lists those of a job that has changed: `graph` with all its messages; an analysis and its messages as recorded.
MessageList messagesOf(const job::Analysis& analysis, const MessageList& recorded, const replay::TaskGraph& graph);

}  // namespace rankscope::recommend
