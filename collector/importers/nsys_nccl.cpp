// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/nsys_nccl.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace rankscope::collector {

namespace {

constexpr size_t kHeaderBytes = 32;
constexpr size_t kMostPayloadBytes = 4096;  // NCCL's have 8 to 32

/// Bytes of an integer by NVTX's number of its type (nvToolsExtPayload.h, NVTX_PAYLOAD_ENTRY_TYPE_*); 0 for others.
size_t bytesOfType(int64_t type) {
    switch (type) {
        case 5:   // int
        case 6:   // unsigned int
        case 15:  // int32
        case 16:  // uint32
            return 4;
        case 7:   // long
        case 8:   // unsigned long
        case 9:   // long long
        case 10:  // unsigned long long
        case 17:  // int64
        case 18:  // uint64
        case 22:  // size_t
            return 8;
        default:
            return 0;
    }
}

template <typename Number>
Number numberAt(std::string_view blob, size_t offset) {
    Number number{};
    std::memcpy(&number, blob.data() + offset, sizeof number);
    return number;
}

}  // namespace

NsysPayloads::NsysPayloads(NsysDatabase& database, ImportLosses& losses) {
    // By the names that NCCL gives its fields (src/include/nvtx_payload_schemas.h).
    constexpr std::array<std::pair<std::string_view, Meaning>, 5> kNames{
        {{"NCCL communicator ID", Meaning::communicator},
         {"Message size [bytes]", Meaning::bytes},
         {"Rank", Meaning::rank},
         {"No. of ranks", Meaning::ranks},
         {"Peer rank", Meaning::peer}}};
    database.forEach(
        "NVTX_PAYLOAD_SCHEMA_ENTRIES", {"domainId", "schemaId", "type", "name", "offset"}, losses,
        [&](const NsysDatabase::Row& row) {
            const auto name = std::ranges::find(kNames, row.text(3), &decltype(kNames)::value_type::first);
            const int64_t offset = row.integer(4).value_or(0);  // the first field's is NULL
            const size_t size = bytesOfType(row.integer(2).value_or(0));
            if (name == kNames.end() || !row.integer(0) || !row.integer(1) || size == 0 || offset < 0 ||
                static_cast<size_t>(offset) > kMostPayloadBytes)
                return;
            m_fields[{*row.integer(0), *row.integer(1)}].push_back({name->second, static_cast<size_t>(offset), size});
        });
}

NcclPayload NsysPayloads::read(std::string_view blob) const {
    NcclPayload payload;
    if (blob.size() < kHeaderBytes) return payload;
    const auto fields = m_fields.find({numberAt<uint32_t>(blob, 0), numberAt<uint32_t>(blob, 8)});
    if (fields == m_fields.end()) return payload;
    blob.remove_prefix(kHeaderBytes);
    for (const auto& [meaning, offset, size] : fields->second) {
        if (offset + size > blob.size()) continue;
        const int64_t value = size == 4 ? numberAt<int32_t>(blob, offset) : numberAt<int64_t>(blob, offset);
        switch (meaning) {
            case Meaning::communicator:
                payload.communicator = value;
                break;
            case Meaning::bytes:
                payload.bytes = value;
                break;
            case Meaning::rank:
                payload.rank = value;
                break;
            case Meaning::ranks:
                payload.ranks = value;
                break;
            case Meaning::peer:
                payload.peer = value;
                break;
        }
    }
    return payload;
}

std::optional<std::pair<NcclRange::Kind, store::Op>> parseNcclRange(std::string_view name) {
    using Kind = NcclRange::Kind;
    using store::Op;
    constexpr std::array<std::pair<std::string_view, std::pair<Kind, Op>>, 20> kRanges{{
        {"ncclAllReduce", {Kind::operation, Op::allReduce}},
        {"ncclAllGather", {Kind::operation, Op::allGather}},
        {"ncclReduceScatter", {Kind::operation, Op::reduceScatter}},
        {"ncclBroadcast", {Kind::operation, Op::broadcast}},
        {"ncclBcast", {Kind::operation, Op::broadcast}},
        {"ncclReduce", {Kind::operation, Op::reduce}},
        {"ncclAlltoAll", {Kind::operation, Op::allToAll}},
        {"ncclAllToAll", {Kind::operation, Op::allToAll}},  // these three are RCCL's
        {"ncclAllToAllv", {Kind::operation, Op::allToAll}},
        {"ncclAllReduceWithBias", {Kind::operation, Op::allReduce}},
        {"ncclGather", {Kind::operation, Op::gather}},
        {"ncclScatter", {Kind::operation, Op::scatter}},
        {"ncclSend", {Kind::operation, Op::send}},
        {"ncclRecv", {Kind::operation, Op::recv}},
        {"ncclGroupStart", {Kind::groupStart, Op::unknown}},
        {"ncclGroupEnd", {Kind::groupEnd, Op::unknown}},
        {"ncclCommInitRank", {Kind::init, Op::unknown}},
        {"ncclCommInitRankConfig", {Kind::init, Op::unknown}},
        {"ncclCommInitRankScalable", {Kind::init, Op::unknown}},
        {"ncclCommSplit", {Kind::init, Op::unknown}},
    }};
    const auto known = std::ranges::find(kRanges, name, &decltype(kRanges)::value_type::first);
    if (known == kRanges.end()) return std::nullopt;
    return known->second;
}

std::vector<NcclBatch> batchesOf(std::vector<NcclRange> ranges, const std::vector<NcclLaunch>& launches,
                                 int64_t& unended) {
    std::stable_sort(ranges.begin(), ranges.end(), [](const NcclRange& a, const NcclRange& b) {
        return std::pair(a.thread, a.startNs) < std::pair(b.thread, b.startNs);
    });
    const auto launchAt = [&launches](int32_t thread, int64_t timeNs) {  // the first one no earlier
        return std::lower_bound(launches.begin(), launches.end(), std::pair(thread, timeNs),
                                [](const NcclLaunch& launch, const std::pair<int32_t, int64_t>& at) {
                                    return std::pair(launch.thread, launch.startNs) < at;
                                });
    };
    unended = 0;
    std::vector<NcclBatch> batches;
    int depth = 0;
    const NcclRange* before = nullptr;
    // The last group of a thread launched what follows it, a kernel for each of its operations at most.
    const auto endOfThread = [&] {
        if (depth == 0) return;
        depth = 0;
        NcclBatch& open = batches.back();
        auto launch = launchAt(open.thread, open.startNs);
        bool isUnended = false;
        for (size_t i = 0; i < open.operations.size() && launch != launches.end() && launch->thread == open.thread;
             ++i, ++launch) {
            open.endNs = std::max(open.endNs, launch->startNs);
            isUnended = true;
        }
        if (isUnended) ++unended;
    };
    for (const NcclRange& range : ranges) {
        if (before != nullptr && before->thread != range.thread) endOfThread();
        before = &range;
        if (range.kind == NcclRange::Kind::init) continue;
        const auto within = launchAt(range.thread, range.startNs);
        const bool doesLaunch =
            within != launches.end() && within->thread == range.thread && within->startNs <= range.endNs;
        if (depth > 0) {
            NcclBatch& open = batches.back();
            const bool launchedBefore = launchAt(range.thread, open.startNs) != within;
            if (launchedBefore) open.endNs = std::max(open.endNs, std::prev(within)->startNs);
            if (launchedBefore || (doesLaunch && range.kind == NcclRange::Kind::operation)) {
                ++unended;
                depth = 0;
            }
        }
        if (depth == 0) batches.push_back({range.thread, range.startNs, range.endNs, {}});
        NcclBatch& batch = batches.back();
        batch.endNs = std::max(batch.endNs, range.endNs);
        if (range.kind == NcclRange::Kind::groupStart) ++depth;
        if (range.kind == NcclRange::Kind::groupEnd && depth > 0) {
            --depth;
            if (doesLaunch && depth > 0) {
                ++unended;
                depth = 0;
            }
        }
        if (range.kind == NcclRange::Kind::operation) batch.operations.push_back(range);
    }
    endOfThread();
    return batches;
}

}  // namespace rankscope::collector
