// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/machine_links.h"

#include <map>
#include <tuple>

namespace rankscope::collector {
namespace {

/// All links of a device together stay below this for years to come (GB300: 0.9 TB/s); what is above is a damaged file.
constexpr int64_t kMostBytesPerS = 100'000'000'000'000;

const char* textOf(capture::LinkKind kind) {
    switch (kind) {
        case capture::LinkKind::nvlink:
            return "nvlink";
        case capture::LinkKind::pcie:
            return "pcie";
        case capture::LinkKind::infiniband:
            return "infiniband";
        case capture::LinkKind::ethernet:
            return "ethernet";
        default:
            return nullptr;
    }
}

const char* textOf(capture::LinkSource source) {
    switch (source) {
        case capture::LinkSource::nvml:
            return "nvml";
        case capture::LinkSource::sysfs:
            return "sysfs";
        default:
            return nullptr;
    }
}

}  // namespace

std::optional<LocalMachineLink> machineLinkOf(const capture::MachineLinkRecord& record, const std::string& name) {
    const char* kind = textOf(record.kind);
    const char* source = textOf(record.source);
    if (!kind || !source || name.empty() || record.count == 0) return std::nullopt;
    LocalMachineLink link;
    if (record.device >= 0) link.device = record.device;
    link.kind = kind;
    link.name = name;
    link.source = source;
    link.count = record.count;
    if (record.generation > 0) link.generation = record.generation;
    if (record.bytesPerS > 0 && record.bytesPerS <= kMostBytesPerS) link.bytesPerS = record.bytesPerS;
    return link;
}

std::vector<store::MachineLink> mergeMachineLinks(const std::vector<RankSummary>& summaries,
                                                  const std::function<int64_t(size_t)>& hostOf) {
    std::map<std::tuple<int64_t, store::Maybe<int32_t>, std::string, std::string>, store::MachineLink> byPlace;
    for (size_t s = 0; s < summaries.size(); ++s) {
        std::map<std::tuple<store::Maybe<int32_t>, std::string, std::string>, const LocalMachineLink*>
            latest;  // a later reading holds
        for (const LocalMachineLink& link : summaries[s].machineLinks) {
            if (!link.device || *link.device == summaries[s].device)
                latest[{link.device, link.kind, link.name}] = &link;
        }
        for (const auto& [place, link] : latest) {
            const store::Maybe<int32_t> rank = link->device ? store::Maybe<int32_t>(summaries[s].rank) : std::nullopt;
            store::MachineLink row{
                0,           hostOf(s), rank, link->kind, link->name, link->count, link->generation, link->bytesPerS,
                link->source};
            const auto [known, isNew] = byPlace.try_emplace({row.hostId, rank, row.kind, row.name}, row);
            // A port that came up while the job began is told by the ranks that looked later.
            if (!isNew && known->second.bytesPerS < row.bytesPerS) known->second = row;
        }
    }
    std::vector<store::MachineLink> rows;
    for (auto& [place, row] : byPlace) {
        row.id = static_cast<int64_t>(rows.size()) + 1;
        rows.push_back(std::move(row));
    }
    return rows;
}

}  // namespace rankscope::collector
