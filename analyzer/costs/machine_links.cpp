// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/machine_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/costs/device_links.h"
#include "collector/store/link_spec.h"

namespace rankscope::costs {
namespace {

/// Rates of equal hardware differ by what a driver rounds.
constexpr double kAlike = 1.05;

/// A rate as the machine gave it, bytes per ns; 0 where it gave none, or one that no link of today has (a damaged row).
double rateOf(const store::MachineLink& link) {
    const double rate = static_cast<double>(link.bytesPerS.value_or(0)) / 1e9;
    return rate > 0 && rate <= store::LinkSpec::kMostGbps ? rate : 0;
}

struct Port {
    double bytesPerNs = 0;
    std::string source;
};

std::string sourceName(const std::string& source) {
    return source == "nvml" ? "NVML" : source;
}

std::string generationText(const char* kind, const std::optional<int64_t>& generation) {
    return generation ? fmt::format("{} {}", kind, *generation) : std::string(kind);
}

/// The slowest of several ports; `what` names them where they differ.
template <typename Key>
std::optional<LinkClass> slowest(const std::map<Key, Port>& ports, const char* what,
                                 const std::map<Key, std::string>& names) {
    if (ports.empty()) return std::nullopt;
    const auto bySpeed = [](const auto& a, const auto& b) { return a.second.bytesPerNs < b.second.bytesPerNs; };
    const auto [low, high] = std::minmax_element(ports.begin(), ports.end(), bySpeed);
    LinkClass link{low->second.bytesPerNs, 0, PeakKind::machine, low->second.source};
    if (high->second.bytesPerNs > kAlike * low->second.bytesPerNs)
        link.source += fmt::format(", the slowest: {} {}; {:.4g} GB/s elsewhere", what, names.at(low->first),
                                   high->second.bytesPerNs);
    return link;
}

Port portOf(const std::vector<const store::MachineLink*>& nvlinks, const std::vector<const store::MachineLink*>& pcie) {
    Port port;
    if (!nvlinks.empty()) {
        int64_t count = 0;
        for (const store::MachineLink* link : nvlinks) {
            port.bytesPerNs += rateOf(*link);
            count += link->count;
        }
        port.source = fmt::format("{}: {} link{} of {}", sourceName(nvlinks.front()->source), count,
                                  count == 1 ? "" : "s", generationText("NVLink", nvlinks.front()->generation));
        return port;
    }
    for (const store::MachineLink* link : pcie)
        if (rateOf(*link) * kPcieShare > port.bytesPerNs)
            port = {rateOf(*link) * kPcieShare,
                    fmt::format("{}: {} x{}, {:.3g} of {:.3g} GB/s as NCCL counts them", sourceName(link->source),
                                generationText("PCIe", link->generation), link->count, rateOf(*link) * kPcieShare,
                                rateOf(*link))};
    return port;
}

}  // namespace

std::optional<LinkClass> machineIntra(const facts::TraceFacts& facts) {
    std::map<int, std::pair<std::vector<const store::MachineLink*>, std::vector<const store::MachineLink*>>> ofRank;
    for (const store::MachineLink& link : facts.machineLinks) {
        if (!link.rank || !(rateOf(link) > 0)) continue;
        if (link.kind == "nvlink") ofRank[*link.rank].first.push_back(&link);
        if (link.kind == "pcie") ofRank[*link.rank].second.push_back(&link);
    }
    std::map<int64_t, int> ranksOn;
    for (const facts::RankFacts& rank : facts.ranks) ++ranksOn[rank.hostId];
    std::map<int, Port> ports;
    std::map<int, std::string> names;
    for (auto& [rank, links] : ofRank) {
        const facts::RankFacts* of = facts.findRank(rank);
        // A ring of more boards than their bridges join leads over PCIe, too.
        const int bridged = of != nullptr ? bridgedBoards(of->device) : 0;
        if (bridged > 0 && ranksOn[of->hostId] > bridged) links.first.clear();
        const Port port = portOf(links.first, links.second);
        if (!(port.bytesPerNs > 0)) continue;
        ports[rank] = port;
        names[rank] = std::to_string(rank);
    }
    return slowest(ports, "rank", names);
}

std::optional<LinkClass> machineInter(const facts::TraceFacts& facts) {
    std::map<int64_t, int> ranksOn;
    for (const facts::RankFacts& rank : facts.ranks)
        if (rank.hostId >= 0) ++ranksOn[rank.hostId];
    std::map<int64_t, Port> ports;
    std::map<int64_t, std::string> names;
    for (const auto& [host, ranks] : ranksOn) {
        for (const char* kind : {"infiniband", "ethernet"}) {
            double sum = 0, largest = 0;
            int64_t count = 0;
            std::string source;
            for (const store::MachineLink& link : facts.machineLinks) {
                if (link.hostId != host || link.kind != kind || !(rateOf(link) > 0)) continue;
                sum += rateOf(link);
                largest = std::max(largest, rateOf(link) / static_cast<double>(std::max<int64_t>(1, link.count)));
                count += std::max<int64_t>(1, link.count);
                source = sourceName(link.source);
            }
            if (!(sum > 0)) continue;
            const bool infiniband = std::string_view(kind) == "infiniband";
            // A rank with a port of its own sends through that one: ports beyond the ranks are storage's, or stand by.
            const double share = std::min(sum / ranks, largest);
            ports[host] = {share, fmt::format("{}: {} {} of {:.4g} GB/s for {} rank{}", source, count,
                                              infiniband ? (count == 1 ? "InfiniBand port" : "InfiniBand ports")
                                                         : (count == 1 ? "network interface" : "network interfaces"),
                                              largest, ranks, ranks == 1 ? "" : "s")};
            const auto name = facts.hosts.find(host);
            names[host] = name != facts.hosts.end() && !name->second.empty() ? name->second : std::to_string(host);
            break;
        }
    }
    return slowest(ports, "host", names);
}

}  // namespace rankscope::costs
