// SPDX-License-Identifier: Apache-2.0
// Plays the streams of a rank: what was put on them, in order, and what else each piece of work had to wait for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "analyzer/replay/rank_tasks.h"

namespace rankscope::replay {

/// Leads from CUPTI's correlation ids, which grow with the calls, to rows of a table. Several rows may share one (the
/// nodes of a CUDA graph): they are found in the order in which they were added.
class CorrelationIndex {
  public:
    void add(int64_t correlation, uint32_t row) {
        if (correlation >= 0) m_rows.emplace_back(correlation, row);
    }
    void finish() {
        const auto less = [](const auto& a, const auto& b) { return a.first < b.first; };
        if (!std::is_sorted(m_rows.begin(), m_rows.end(), less)) std::ranges::stable_sort(m_rows, less);
    }
    /// Returns the rows of a correlation id: [first, last) of pairs whose second is the row. Fast when asked in
    /// ascending order.
    auto find(int64_t correlation) {
        const auto less = [](const std::pair<int64_t, uint32_t>& row, int64_t wanted) { return row.first < wanted; };
        auto first = m_rows.begin() + static_cast<std::ptrdiff_t>(m_near);
        if (correlation < 0) return std::pair(m_rows.end(), m_rows.end());
        if (first == m_rows.end() || first->first > correlation ||
            (m_rows.end() - first > 4 && (first + 4)->first < correlation))
            first = std::lower_bound(m_rows.begin(), m_rows.end(), correlation, less);
        while (first != m_rows.end() && first->first < correlation) ++first;
        auto last = first;
        while (last != m_rows.end() && last->first == correlation) ++last;
        m_near = static_cast<size_t>(first - m_rows.begin());
        return std::pair(first, last);
    }

  private:
    std::vector<std::pair<int64_t, uint32_t>> m_rows;
    size_t m_near = 0;
};

class DeviceLanes {
  public:
    DeviceLanes(const facts::RankEvents& events, RankTasks& result);

    /// Adds the work that the call with this correlation id has put on the device, behind what its stream has. `launch`
    /// is the call's task, which began at `launchNs`. It waits for `awaited`, too, where that is on other streams.
    void submit(int64_t correlation, TaskId launch, int64_t launchNs, store::ApiKind how, int step,
                const std::vector<TaskId>& awaited);
    /// Passes over a call before the window that is replayed: what it has put on the device only tells when its streams
    /// are free.
    void pass(int64_t correlation);
    /// Begins the window.
    void begin();
    /// Returns the last task of what this call has put on the device; kNoTask: nothing.
    TaskId lastOf(int64_t correlation);
    bool has(int64_t correlation) { return m_index.find(correlation).first != m_index.find(correlation).second; }
    /// True when any work of the recording runs on it, or it waits for an event.
    bool knows(int32_t stream) const { return m_known.count(stream) != 0; }
    /// Returns the stream that the call with this correlation id puts work on; -1: none.
    int32_t streamOfCall(int64_t correlation);
    /// Returns what a stream has been given until now: its last task, or what it is yet to wait for.
    std::vector<TaskId> given(int32_t stream) const;
    std::vector<TaskId> givenToAll() const;
    /// Lets the stream's next work wait for these.
    void wait(int32_t stream, const std::vector<TaskId>& tasks);
    int64_t endNs(TaskId task) const;  // recorded
    /// Returns the task of the rank that ends last up to `ns`; kNoTask: none.
    TaskId lastEndedBy(int64_t ns) const;
    /// Returns the task whose end made room in the launch queue of `stream` for an entry of a call that lasted from
    /// `startedNs` to `returnedNs`: the last of the stream that had ended by then, or, where none ended during the
    /// call, of another one: its stream waited for that. kNoTask when the queue cannot have been full.
    TaskId roomMaker(int32_t stream, int64_t startedNs, int64_t returnedNs);
    /// Returns when work put on the device so far ends, by the recording; INT64_MIN: nothing was.
    int64_t busyUntilNs() const { return m_busyUntilNs; }
    /// Return the device time of work without a launching call, and of all.
    int64_t unlaunchedNs() const { return m_unlaunchedNs; }
    int64_t totalNs() const { return m_totalNs; }
    /// Ends the playing once all is submitted: infers waits where `eventsKnown` is false, estimates latencies, adds the
    /// edges.
    void finish(bool eventsKnown);
    /// Sets the step of work by its recorded start, for traces that do not tell it by the host.
    void setSteps(const std::vector<facts::StepWindow>& steps);

  private:
    static constexpr uint32_t kNothing = UINT32_MAX;
    enum class Work : uint8_t { kernel, communication, copy, set };
    struct Piece {
        int64_t startNs = 0;
        int64_t endNs = 0;
        int32_t stream = 0;
        Work work = Work::kernel;
        uint32_t row = 0;  // in the vector of RankEvents that it comes from
    };
    /// Holds a piece as a task, and what bound it.
    struct Placed {
        TaskId task = kNoTask;  // an NCCL kernel's arrival
        TaskId last = kNoTask;  // its transfer; else the task
        TaskId launch = kNoTask;
        uint32_t piece = 0;
        int64_t launchNs = INT64_MIN;
        uint32_t firstWait = 0;  // into m_waits
        uint32_t waits = 0;
        uint32_t before = kNothing;  // the one before it in its stream, into m_placed
        bool graph = false;          // launched with a CUDA graph
    };
    struct Stream {
        uint32_t lane = kNoLane;
        std::vector<uint32_t> placed;       // into m_placed
        std::vector<TaskId> pending;        // its next work waits for these
        std::map<uint32_t, TaskId> waited;  // by lane: the last task of it that is waited for
        uint32_t passed = kNothing;         // last piece before the window
        std::vector<uint32_t> unlaunched;   // pieces without a call, by start
        size_t nextUnlaunched = 0;
    };

    Stream& streamOf(int32_t id);
    void place(uint32_t piece, TaskId launch, int64_t launchNs, int step, bool graph);
    void remember(const Placed& placed, Stream& stream);
    void placeUnlaunched(Stream& stream, int64_t beforeNs, int step);
    void orderGraph(size_t firstPlaced);
    void addPending(Stream& stream, TaskId task);
    uint32_t kernelKey(const facts::KernelKey& key);
    const Placed& placedOf(TaskId task) const { return m_placed[m_placedOf[task]]; }
    /// Returns the last of these that ends up to `ns` by the recording; null: none.
    const Placed* lastEndedBy(const std::vector<uint32_t>& placed, int64_t ns) const;
    const Piece& pieceOf(const Placed& placed) const { return m_pieces[placed.piece]; }
    int64_t beforeEndNs(const Placed& placed) const {
        return placed.before == kNothing ? INT64_MIN : m_pieces[m_placed[placed.before].piece].endNs;
    }
    int64_t waitEndNs(const Placed& placed) const;
    void inferWaits();
    void setLatencies();

    const facts::RankEvents& m_events;
    RankTasks& m_result;
    std::vector<Piece> m_pieces;
    CorrelationIndex m_index;
    std::map<int32_t, Stream> m_streams;
    std::set<int32_t> m_known;
    std::vector<Placed> m_placed;
    std::vector<uint32_t> m_placedOf;  // by task
    std::vector<TaskId> m_waits;
    std::vector<std::pair<uint32_t, TaskId>> m_inferred;  // piece of work in m_placed: waits for
    std::map<facts::KernelKey, uint32_t> m_keys;
    int64_t m_busyUntilNs = INT64_MIN;
    bool m_windowed = false;
    int64_t m_unlaunchedNs = 0;
    int64_t m_totalNs = 0;
};

}  // namespace rankscope::replay
