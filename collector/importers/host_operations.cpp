// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/host_operations.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace rankscope::collector {

namespace {

/// Times in which a device did nothing for long, and how much of a span lies in them.
class Standstills {
  public:
    Standstills(const RankRecording& recording, int64_t shortestNs, int64_t hostFirstNs, int64_t hostLastNs) {
        std::vector<std::pair<int64_t, int64_t>> busy;
        const auto add = [&busy](const auto& rows) {
            for (const auto& row : rows) busy.emplace_back(row.startNs, row.startNs + row.durNs);
        };
        add(recording.kernels);
        add(recording.memcpys);
        add(recording.memsets);
        std::sort(busy.begin(), busy.end());
        // The host's time in front of the first operation of the device and behind the last counts, too: a step may
        // begin or end there.
        int64_t idleFromNs = hostFirstNs;
        const auto gapUntil = [&](int64_t untilNs) {
            if (untilNs - idleFromNs <= shortestNs) return;
            m_sumBefore.push_back(m_starts.empty() ? 0 : m_sumBefore.back() + m_ends.back() - m_starts.back());
            m_starts.push_back(idleFromNs);
            m_ends.push_back(untilNs);
        };
        for (const auto& [startNs, endNs] : busy) {
            gapUntil(startNs);
            idleFromNs = std::max(idleFromNs, endNs);
        }
        gapUntil(hostLastNs);
    }

    int64_t within(int64_t startNs, int64_t endNs) const { return upTo(endNs) - upTo(startNs); }

  private:
    int64_t upTo(int64_t timeNs) const {
        const auto after = std::upper_bound(m_starts.begin(), m_starts.end(), timeNs);
        if (after == m_starts.begin()) return 0;
        const auto at = static_cast<size_t>(after - m_starts.begin()) - 1;
        return m_sumBefore[at] + std::min(timeNs, m_ends[at]) - m_starts[at];
    }

    std::vector<int64_t> m_starts, m_ends, m_sumBefore;
};

/// An operation or a call of CUDA on its thread.
struct Entry {
    int64_t tid = 0;
    int64_t startNs = 0;
    int64_t endNs = 0;
    int64_t operation = -1;  // index; -1: a call
};

/// One that is still open where the sweep is.
struct Open {
    size_t entry = 0;
    int64_t endNs = 0;
    int64_t ownNs = 0;
    int64_t ownIdleNs = 0;
    bool keep = false;
};

}  // namespace

void HostOperations::add(std::string_view name, int64_t tid, int64_t startNs, int64_t durNs, bool python) {
    auto known = m_nameIds.find(name);
    if (known == m_nameIds.end())
        known = m_nameIds.emplace(m_names.emplace_back(name), static_cast<int32_t>(m_nameIds.size())).first;
    m_operations.push_back({startNs, std::max<int64_t>(durNs, 0), tid, known->second, python});
}

std::vector<std::optional<int64_t>> HostOperations::mediansByName() const {
    std::vector<std::vector<int64_t>> durations(m_names.size());
    for (const Operation& operation : m_operations)
        durations[static_cast<size_t>(operation.name)].push_back(operation.durNs);
    std::vector<std::optional<int64_t>> medians(m_names.size());
    for (size_t name = 0; name < durations.size(); ++name) {
        std::vector<int64_t>& list = durations[name];
        if (list.size() < kFewestForMedian) continue;
        const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
        std::nth_element(list.begin(), middle, list.end());
        medians[name] = *middle;
    }
    return medians;
}

std::vector<KeptOperation> HostOperations::worthKeeping(const RankRecording& recording) const {
    if (m_operations.empty() || (recording.kernels.empty() && recording.memcpys.empty() && recording.memsets.empty()))
        return {};
    std::vector<Entry> entries;
    entries.reserve(m_operations.size() + recording.apiCalls.size());
    int64_t firstNs = std::numeric_limits<int64_t>::max(), lastNs = std::numeric_limits<int64_t>::min();
    for (size_t i = 0; i < m_operations.size(); ++i) {
        const Operation& operation = m_operations[i];
        entries.push_back(
            {operation.tid, operation.startNs, operation.startNs + operation.durNs, static_cast<int64_t>(i)});
    }
    for (const store::ApiCall& call : recording.apiCalls) {
        const std::optional<int64_t>& tid = recording.threads[static_cast<size_t>(call.threadId)].tid;
        entries.push_back({tid.value_or(-1), call.startNs, call.startNs + call.durNs, -1});
    }
    for (const Entry& entry : entries) {
        firstNs = std::min(firstNs, entry.startNs);
        lastNs = std::max(lastNs, entry.endNs);
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return std::tuple(a.tid, a.startNs, -a.endNs, a.operation < 0) <
               std::tuple(b.tid, b.startNs, -b.endNs, b.operation < 0);
    });
    const Standstills standstills(recording, kShortestGapNs, firstNs, lastNs);
    const std::vector<std::optional<int64_t>> medians = mediansByName();

    std::vector<bool> kept(m_operations.size());
    std::vector<Open> open;
    const auto close = [&] {
        Open done = open.back();
        open.pop_back();
        const int64_t operation = entries[done.entry].operation;
        done.keep = done.keep || done.ownIdleNs >= kShortestOwnNs;
        if (operation >= 0) {
            const std::optional<int64_t>& usual =
                medians[static_cast<size_t>(m_operations[static_cast<size_t>(operation)].name)];
            done.keep = done.keep || (usual && done.ownNs >= kShortestPauseNs && done.ownNs >= kPauseFactor * *usual);
            kept[static_cast<size_t>(operation)] = done.keep;
        }
        if (!open.empty()) open.back().keep = open.back().keep || done.keep;
    };
    for (size_t i = 0; i < entries.size(); ++i) {
        const Entry& entry = entries[i];
        while (!open.empty() && (entries[open.back().entry].tid != entry.tid || open.back().endNs <= entry.startNs))
            close();
        const int64_t endNs = open.empty() ? entry.endNs : std::min(entry.endNs, open.back().endNs);
        const int64_t idleNs = standstills.within(entry.startNs, endNs);
        if (!open.empty()) {
            open.back().ownNs -= endNs - entry.startNs;
            open.back().ownIdleNs -= idleNs;
        }
        open.push_back({i, endNs, endNs - entry.startNs, idleNs, false});
    }
    while (!open.empty()) close();

    std::vector<size_t> indices;
    for (const Entry& entry : entries)
        if (entry.operation >= 0 && kept[static_cast<size_t>(entry.operation)])
            indices.push_back(static_cast<size_t>(entry.operation));
    return nested(indices);
}

std::vector<KeptOperation> HostOperations::all() const {
    std::vector<size_t> indices(m_operations.size());
    std::iota(indices.begin(), indices.end(), size_t{0});
    std::ranges::stable_sort(indices, {}, [this](size_t index) {
        const Operation& operation = m_operations[index];
        return std::tuple(operation.tid, operation.startNs, -operation.durNs);
    });
    return nested(indices);
}

/// Operations that come by thread and start, outer ones first.
std::vector<KeptOperation> HostOperations::nested(const std::vector<size_t>& kept) const {
    const std::vector<std::optional<int64_t>> medians = mediansByName();
    std::vector<KeptOperation> result;
    std::vector<std::pair<int64_t, int64_t>> around;  // thread and end of those that are still open
    for (const size_t index : kept) {
        const Operation& operation = m_operations[index];
        while (!around.empty() && (around.back().first != operation.tid || around.back().second <= operation.startNs))
            around.pop_back();
        const auto name = static_cast<size_t>(operation.name);
        result.push_back({operation.startNs, operation.durNs, operation.tid, static_cast<int32_t>(around.size()),
                          m_names[name], operation.python, medians[name]});
        around.emplace_back(operation.tid, operation.startNs + operation.durNs);
    }
    return result;
}

void addKeptOperations(const HostOperations& operations, bool all, RankRecording& recording,
                       const std::function<int32_t(int64_t tid)>& threadOf) {
    if (operations.empty()) return;
    recording.meta["host_operations"] = all ? "all" : "recorded";
    const int32_t operatorDomain = recording.strings.intern(store::kOperatorDomain);
    const int32_t pythonDomain = recording.strings.intern(store::kPythonDomain);
    for (const KeptOperation& kept : all ? operations.all() : operations.worthKeeping(recording)) {
        store::NvtxRange range;
        range.kind = store::NvtxKind::pushPop;
        range.threadId = threadOf(kept.tid);
        range.startNs = kept.startNs;
        range.durNs = kept.durNs;
        range.depth = kept.depth;
        range.nameId = recording.strings.intern(kept.name);
        range.domainId = kept.python ? pythonDomain : operatorDomain;
        range.payload = kept.medianNs;
        recording.nvtx.push_back(range);
    }
}

}  // namespace rankscope::collector
