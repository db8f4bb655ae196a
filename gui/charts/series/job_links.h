// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/store/reader.h"
#include "collector/store/vocabulary.h"

namespace rankscope::gui {

/// Peaks of a rank's links in bytes per ns (GB/s), one direction. Unknown where nothing tells them.
struct JobLinks {
    std::optional<double> intra;     ///< port inside the node
    std::optional<double> inter;     ///< the rank's own network card
    bool intraLimitsNetwork = true;  ///< false: the port is only known to reach this, the card's rate is known

    std::string source;  ///< of both, for people: "inside a node 200 GB/s (told: --links)"; empty: unknown

    /// Of a user's specification ("intra:gbps=200,alpha_us=6;inter:gbps=40"). What cannot be read is unknown.
    static JobLinks parse(std::string_view text);
    /// As the analysis took them (meta `link_peaks`); of a run that was not analysed, as its user told them (meta
    /// `links`).
    static JobLinks read(store::TraceReader& reader);

    /// Highest bus bandwidth of an operation on `size` ranks of `nodes` hosts with at least `smallestNode` on each:
    /// NCCL's rings use every card of a node, in an all-to-all each rank's own card carries what leaves the node.
    std::optional<double> ceiling(store::Op op, int size, int nodes, int smallestNode) const;
};

}  // namespace rankscope::gui
