// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

#include "analyzer/replay/task_graph.h"

namespace rankscope::edits {

/// Copies that are to run beside compute: by task, how long they then take, ns.
using CopiesAside = std::unordered_map<replay::TaskId, int64_t>;

/// Puts these copies on a stream of their own, one a rank, as the host launches them. They are for the next step: the
/// stream they were on goes on without them, and waits for them where the next step begins on it. A step therefore
/// takes as long as its compute or as its copies, whichever is longer. Copies that no call is known of stay in their
/// place, with their new durations. Throws EditError when work would wait for itself.
void putAside(replay::TaskGraph& graph, const CopiesAside& copies);

}  // namespace rankscope::edits
