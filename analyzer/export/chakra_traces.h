// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace rankscope::store {
class TraceReader;
}

namespace rankscope::exports {

struct ChakraResult {
    std::vector<std::filesystem::path> files;  // one a rank
    int64_t nodes = 0;
    int64_t unknownSizes = 0;  // collectives and messages without bytes
};

/// Writes execution traces as Chakra defines them (mlcommons/chakra, schema/protobuf/et_def.proto, version 0.0.4): a
/// file RUN.RANK.et in `folder` for each rank (of `ranks`; all where it is empty), messages with their lengths in
/// front, first GlobalMetadata, then a Node for each call of the host, kernel, copy, collective and message, in an
/// order in which what a node depends on stands before it. Tasks and dependencies are those of the replay: the order of
/// streams and threads and launches are control dependencies; waits for events and blocking calls are data
/// dependencies. A collective takes its transfer: who waits for whom is the simulator's to find. Throws store::Error
/// where a file cannot be written, or the run cannot be replayed.
ChakraResult writeChakraTraces(store::TraceReader& trace, const std::filesystem::path& folder,
                               const std::vector<int>& ranks);

}  // namespace rankscope::exports
