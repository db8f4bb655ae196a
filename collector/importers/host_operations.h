// SPDX-License-Identifier: Apache-2.0
// CPU operators and Python functions of a trace. They are most of its events and tell one thing that nothing else does:
// what the host did while its device had nothing to do. Only what tells that is kept.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// An operation that is worth a row.
struct KeptOperation {
    int64_t startNs = 0;
    int64_t durNs = 0;
    int64_t tid = 0;
    int32_t depth = 0;      ///< of kept operations around it on its thread
    std::string_view name;  ///< lives as long as the HostOperations
    bool python = false;
    std::optional<int64_t>
        medianNs;  ///< duration of the operations of that name; none where they are too few to have a usual one
};

class HostOperations {
  public:
    void add(std::string_view name, int64_t tid, int64_t startNs, int64_t durNs, bool python);
    bool empty() const { return m_operations.empty(); }

    /// The operations that the host was in, innermost, while the device of `recording` stood idle for long, those
    /// around them, and those that took far longer than others of their name without a call of CUDA inside that did. At
    /// most twenty and their callers for every idle millisecond.
    std::vector<KeptOperation> worthKeeping(const RankRecording& recording) const;
    /// All operations, by thread and start.
    std::vector<KeptOperation> all() const;

    /// Device standstills shorter than this tell of launches, not of what the host does instead.
    static constexpr int64_t kShortestGapNs = 1'000'000;
    /// Time of its own in such standstills that makes an operation worth a row: a twentieth of the shortest.
    static constexpr int64_t kShortestOwnNs = 50'000;
    /// An operation that takes this much longer than others of its name, and a millisecond, stands still: page faults,
    /// locks and first uses stay below on the whole.
    static constexpr int64_t kPauseFactor = 20;
    static constexpr int64_t kShortestPauseNs = 1'000'000;
    /// Fewer of one name have no usual duration.
    static constexpr size_t kFewestForMedian = 5;

  private:
    struct Operation {
        int64_t startNs = 0;
        int64_t durNs = 0;
        int64_t tid = 0;
        int32_t name = 0;
        bool python = false;
    };
    struct TextHash {
        using is_transparent = void;
        size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };
    std::vector<std::optional<int64_t>> mediansByName() const;
    std::vector<KeptOperation> nested(const std::vector<size_t>& kept) const;

    std::vector<Operation> m_operations;
    std::deque<std::string> m_names;
    std::unordered_map<std::string_view, int32_t, TextHash, std::equal_to<>> m_nameIds;
};

/// Adds what is worth keeping, or all of it, to the recording's NVTX ranges, in the domains of a profiler's own host
/// events. `threadOf` finds a thread of the recording by its tid.
void addKeptOperations(const HostOperations& operations, bool all, RankRecording& recording,
                       const std::function<int32_t(int64_t tid)>& threadOf);

}  // namespace rankscope::collector
