// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/exported_index.h"

#include <optional>

namespace rankscope::collector {

ExportedIndex::ExportedIndex(const ExportedAbout& about) {
    for (const store::Rank& rank : about.ranks) {
        if (rank.rank < 0) continue;
        const auto [at, isNew] = ranks.try_emplace(rank.rank);
        if (isNew) at->second.row = &rank;
    }
    const auto give = [this](const auto& rows, auto ofRank) {
        for (const auto& row : rows) {
            const auto rank = ranks.find(std::optional<int64_t>(row.rank).value_or(-1));
            if (rank != ranks.end()) (rank->second.*ofRank).push_back(&row);
        }
    };
    give(about.streams, &OfRank::streams);
    give(about.threads, &OfRank::threads);
    give(about.machineLinks, &OfRank::links);
    give(about.failedAllocations, &OfRank::failedAllocations);
    give(about.losses, &OfRank::losses);
    give(about.sources, &OfRank::sources);
    for (const store::Thread& thread : about.threads)
        if (!thread.rank) sharedThreads.emplace(thread.id, &thread);
    for (const store::Host& host : about.hosts) {
        const auto [at, isNew] = hosts.try_emplace(host.id);
        if (isNew) at->second.row = &host;
    }
    for (const store::Device& device : about.devices) {
        devices.emplace(device.id, &device);
        hosts[device.hostId].devices.push_back(&device);
    }
    for (const store::MachineLink& link : about.machineLinks)
        if (!link.rank) hosts[link.hostId].links.push_back(&link);
    for (const store::Process& process : about.processes) processes.emplace(process.id, &process);
    std::map<int64_t, size_t> places;
    for (size_t place = 0; place < about.communicators.size(); ++place)
        places.emplace(about.communicators[place].id, place);
    for (const store::CommunicatorMember& member : about.members) {
        const auto rank = ranks.find(member.rank);
        const auto place = places.find(member.communicatorId);
        if (rank != ranks.end() && place != places.end()) rank->second.members.emplace(place->second, &member);
    }
}

}  // namespace rankscope::collector
