// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collector/ingest/rank_summary.h"
#include "injector/capture_format/records.h"

namespace rankscope::collector {

/// A link as a capture file tells it; nothing for one of an unknown kind or source, of no name, or of which none is up.
/// A rate that no link has is unknown.
std::optional<LocalMachineLink> machineLinkOf(const capture::MachineLinkRecord& record, const std::string& name);

/// Rows of machine_link: of each host every port once, however many ranks told of it, and of each rank those of the
/// device it computes on. `hostOf` gives the host of a summary by its place.
std::vector<store::MachineLink> mergeMachineLinks(const std::vector<RankSummary>& summaries,
                                                  const std::function<int64_t(size_t)>& hostOf);

}  // namespace rankscope::collector
