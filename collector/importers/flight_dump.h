// SPDX-License-Identifier: Apache-2.0
// What PyTorch's flight recorder wrote of one rank (torch/csrc/distributed/c10d/FlightRecorder*.hpp, dump versions 1.0
// to 2.10), as a pickle or as JSON, with or without calls that had ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/importers/import_loss.h"
#include "collector/store/vocabulary.h"

namespace rankscope::collector {

/// A process group as the dump knows it.
struct FlightGroup {
    std::string name;            ///< PyTorch's: a number or a hash
    std::string description;     ///< "TENSOR_MODEL_PARALLEL_GROUP"; empty: not told
    std::vector<int32_t> ranks;  ///< global, by rank in the group; empty: not told
    /// Its counters in pg_status, whichever kind of call came last; empty: not told, or not told apart.
    std::optional<int64_t> lastEnqueued, lastCompleted;
};

/// How far its process saw a call get; without TORCH_NCCL_ENABLE_TIMING the start is not seen.
enum class FlightState : uint8_t { scheduled, started, completed };

struct FlightEntry {
    size_t group = 0;  ///< into FlightDump::groups
    int64_t recordId = 0;
    int64_t collectiveSeq = 0;  ///< collectives of the group so far, this one counted; of a message those before it
    int64_t messageSeq = 0;     ///< the same of messages, or batches of them
    bool isMessage = false;     ///< send, recv or a batch of them
    std::string operation;      ///< "all_reduce", "send", "coalesced": behind "nccl:" and in front of the peer
    std::optional<int32_t> own, peer;  ///< ranks in the group that a message tells
    FlightState state = FlightState::scheduled;
    int64_t createdNs = 0;                          ///< Unix time
    std::optional<int64_t> startedNs, completedNs;  ///< when the process noticed
    std::optional<int64_t> timeoutNs;
    std::optional<int64_t> inElements, outElements;  ///< of all tensors together
    store::DataType dataType = store::DataType::unknown;
    std::string place;  ///< "step (train.py:40)": the innermost function outside of PyTorch; empty: not told
};

struct FlightDump {
    std::string version, ncclVersion;
    std::vector<FlightGroup> groups;
    std::vector<FlightEntry> entries;  ///< in the order of the calls
    bool knowsGroups = false;          ///< it lists all groups that the rank ever called on, with their members
    bool isWhole = true;               ///< false: the file is cut off, and what was recorded last may be missing
    bool fromStart = false;            ///< every call since the process began is an entry
};

/// Reads a dump, gzipped or not. What is missing of it goes to `losses`; throws ImportError where nothing can be used.
FlightDump readFlightDump(const std::filesystem::path& file, ImportLosses& losses);

/// True for the first bytes of a dump.
bool isFlightDump(std::string_view head);

/// The rank that wrote it: as its messages tell it, as its file is named where that is a member of all its groups, or
/// the only one that is; empty where nothing tells.
std::optional<int32_t> rankOfDump(const FlightDump& dump, std::string_view fileName);

}  // namespace rankscope::collector
