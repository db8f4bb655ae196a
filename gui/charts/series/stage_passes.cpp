// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/stage_passes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <unordered_map>

namespace rankscope::gui {
namespace {

PassKind kindOfName(std::string_view name) {
    std::string lower;
    for (const char c : name.substr(0, 200)) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const size_t forward = lower.find("forward"), backward = lower.find("backward");
    if (forward == backward) return PassKind::unknown;  // neither
    return forward < backward ? PassKind::forward : PassKind::backward;
}

struct HostRange {
    TimeRange range;
    int64_t thread = 0;
    PassKind kind = PassKind::unknown;
};

// Outermost ranges only: DistributedDataParallel.forward inside forward is the same pass.
std::vector<HostRange> hostRanges(store::TraceReader& reader, int32_t rank, TimeRange step) {
    std::vector<HostRange> ranges;
    std::unordered_map<int32_t, PassKind> kinds;  // by name
    auto rows = reader.cursor<store::NvtxRange>(rank, step.beginNs, step.endNs);
    store::NvtxRange row;
    while (rows.next(row) && ranges.size() < PipelineChart::kMostPasses) {
        const auto [kind, isNew] = kinds.try_emplace(row.nameId, PassKind::unknown);
        if (isNew) kind->second = kindOfName(reader.string(row.nameId));
        if (kind->second == PassKind::unknown || !row.durNs || *row.durNs <= 0 || !step.contains(row.startNs)) continue;
        const int64_t thread = row.threadId.value_or(-1);
        const bool inside = std::any_of(
            ranges.rbegin(), ranges.rbegin() + static_cast<std::ptrdiff_t>(std::min<size_t>(ranges.size(), 8)),
            [&](const HostRange& r) { return r.thread == thread && r.range.contains(row.startNs); });
        if (!inside) ranges.push_back({soundStretch(row.startNs, *row.durNs), thread, kind->second});
    }
    return ranges;
}

void number(std::vector<PipelinePass>& passes) {
    std::sort(passes.begin(), passes.end(),
              [](const PipelinePass& a, const PipelinePass& b) { return a.range.beginNs < b.range.beginNs; });
    std::array<int, 3> counts{};
    for (PipelinePass& pass : passes) pass.number = ++counts[static_cast<size_t>(pass.kind)];
}

}  // namespace

std::vector<PipelinePass> passesByRanges(store::TraceReader& reader, int32_t rank, TimeRange step) {
    const std::vector<HostRange> ranges = hostRanges(reader, rank, step);
    if (ranges.empty()) return {};
    std::unordered_map<uint32_t, size_t> rangeOfCorrelation;
    {
        auto calls = reader.cursor<store::ApiCall>(rank, step.beginNs, step.endNs);
        store::ApiCall call;
        while (calls.next(call)) {
            if (!call.correlationId) continue;
            // Autograd launches backward from a thread of its own while the range is open on another one.
            auto after = std::partition_point(ranges.begin(), ranges.end(),
                                              [&](const HostRange& r) { return r.range.beginNs <= call.startNs; });
            if (after != ranges.begin() && std::prev(after)->range.contains(call.startNs))
                rangeOfCorrelation.emplace(*call.correlationId, static_cast<size_t>(std::prev(after) - ranges.begin()));
        }
    }
    std::vector<PipelinePass> passes(ranges.size());
    std::vector<bool> used(ranges.size(), false);
    // The host runs ahead: kernels of a step may run after its end on the host, by a step at most.
    auto kernels = reader.cursor<store::Kernel>(rank, step.beginNs, step.endNs + step.span());
    store::Kernel kernel;
    while (kernels.next(kernel)) {
        if (kernel.nccl != store::NcclKernel::no || !kernel.correlationId || kernel.startNs < step.beginNs ||
            kernel.durNs < 0)
            continue;
        const auto found = rangeOfCorrelation.find(*kernel.correlationId);
        if (found == rangeOfCorrelation.end()) continue;
        PipelinePass& pass = passes[found->second];
        const TimeRange range = soundStretch(kernel.startNs, kernel.durNs);
        if (!used[found->second]) {
            pass = {range, ranges[found->second].kind, 0, {EventTable::kernel, kernel.id, rank, range}};
            used[found->second] = true;
        }
        pass.range.endNs = std::max(pass.range.endNs, range.endNs);
    }
    size_t kept = 0;
    for (size_t i = 0; i < passes.size(); ++i)
        if (used[i]) passes[kept++] = passes[i];
    passes.resize(kept);
    number(passes);
    return passes;
}

std::vector<PipelinePass> passesByMessages(store::TraceReader& reader, const StageNeighbours& stage, TimeRange step) {
    // When a message begins (a send) or ends (a receive): there the stage turns to another micro-batch.
    store::Statement messages(reader.database(),
                              "SELECT src_rank, CASE WHEN src_rank = ?1 THEN send_arrival_ns ELSE recv_end_ns END AS "
                              "at FROM p2p WHERE (src_rank = ?1 OR dst_rank = ?1) AND at >= ?2 AND at < ?3 AND "
                              "(src_rank IN (?4, ?5) OR dst_rank IN (?4, ?5)) ORDER BY at");
    messages.bind(1, int64_t{stage.rank})
        .bind(2, step.beginNs)
        .bind(3, step.endNs)
        .bind(4, int64_t{stage.before})
        .bind(5, int64_t{stage.after});
    std::vector<int64_t> cuts;
    std::vector<std::pair<int64_t, int32_t>> received;  // end, from whom
    while (messages.step() && cuts.size() < PipelineChart::kMostPasses) {
        cuts.push_back(messages.integer(1));
        if (messages.integer(0) != stage.rank)
            received.emplace_back(messages.integer(1), static_cast<int32_t>(messages.integer(0)));
    }
    std::vector<PipelinePass> passes;
    auto kernels = reader.cursor<store::Kernel>(stage.rank, step.beginNs, step.endNs);
    store::Kernel kernel;
    size_t lastCut = SIZE_MAX;
    while (kernels.next(kernel)) {
        if (kernel.nccl != store::NcclKernel::no || kernel.startNs < step.beginNs || kernel.durNs < 0) continue;
        const auto cut = static_cast<size_t>(std::upper_bound(cuts.begin(), cuts.end(), kernel.startNs) - cuts.begin());
        const TimeRange range = soundStretch(kernel.startNs, kernel.durNs);
        if (passes.empty() || cut != lastCut) {
            const auto last = std::upper_bound(received.begin(), received.end(), kernel.startNs,
                                               [](int64_t ns, const auto& r) { return ns < r.first; });
            const bool fromBehind =
                last != received.begin() && std::prev(last)->second == stage.after && stage.after >= 0;
            const PassKind kind = stage.after < 0 ? PassKind::unknown
                                  : fromBehind    ? PassKind::backward
                                                  : PassKind::forward;
            passes.push_back({range, kind, 0, {EventTable::kernel, kernel.id, stage.rank, range}});
            lastCut = cut;
        }
        passes.back().range.endNs = std::max(passes.back().range.endNs, range.endNs);
    }
    number(passes);
    return passes;
}

}  // namespace rankscope::gui
