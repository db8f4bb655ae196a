// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/device_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <string_view>

#include "collector/store/link_spec.h"

namespace rankscope::costs {
namespace {

/// Describes names that hold `name` as a word and, where given, `also` anywhere. The first row that fits counts: what
/// is special stands before what is common.
struct Row {
    std::string_view name;
    std::string_view also;
    double gbps;            // one direction, per rank; data sheets often give both directions together
    std::string_view what;  // the links and the data sheet
    int bridged = 0;  // most boards that NVLink bridges join; 0: every one of a host, by switches or boards that carry
                      // all of them, or no NVLink
};

constexpr double kPcie3 = 12, kPcie4 = 24, kPcie5 = 48;  // 16 lanes, as NCCL counts them: kPcieShare

// Boards that only bridges of two cards join run their larger groups over PCIe: that is their row.
constexpr std::array kRows = {
    Row{"GB300", "", 900, "NVLink 5, 1.8 TB/s both ways (NVIDIA GB300 NVL72 data sheet)"},
    Row{"GB200", "", 900, "NVLink 5, 1.8 TB/s both ways (NVIDIA GB200 NVL72 data sheet)"},
    Row{"B300", "", 900, "NVLink 5, 1.8 TB/s both ways (NVIDIA HGX B300 data sheet)"},
    Row{"B200", "", 900, "NVLink 5, 1.8 TB/s both ways (NVIDIA HGX B200 data sheet)"},
    Row{"GH200", "", 450, "NVLink 4, 900 GB/s both ways (NVIDIA GH200 data sheet)"},
    Row{"H200", "NVL", 450, "NVLink 4, 900 GB/s both ways by bridges of up to four (NVIDIA H200 NVL data sheet)", 4},
    Row{"H200", "", 450, "NVLink 4, 900 GB/s both ways (NVIDIA H200 data sheet)"},
    Row{"H100", "NVL", kPcie5, "PCIe 5 x16 (NVIDIA H100 NVL data sheet; NVLink joins pairs only)", 2},
    Row{"H100", "PCIE", kPcie5, "PCIe 5 x16 (NVIDIA H100 PCIe data sheet; NVLink joins pairs only)", 2},
    Row{"H100", "", 450, "NVLink 4, 900 GB/s both ways (NVIDIA H100 SXM data sheet)"},
    Row{"H800", "PCIE", kPcie5, "PCIe 5 x16 (NVIDIA H800 PCIe)"},
    Row{"H800", "", 200, "NVLink 4, 400 GB/s both ways (NVIDIA H800 SXM)"},
    Row{"H20", "", 450, "NVLink 4, 900 GB/s both ways (NVIDIA HGX H20)"},
    Row{"A100", "PCIE", kPcie4, "PCIe 4 x16 (NVIDIA A100 data sheet; NVLink joins pairs only)", 2},
    Row{"A100", "80GB PCI", kPcie4, "PCIe 4 x16 (NVIDIA A100 data sheet; NVLink joins pairs only)", 2},
    Row{"A100", "", 300, "NVLink 3, 600 GB/s both ways (NVIDIA A100 data sheet)"},
    Row{"A800", "PCIE", kPcie4, "PCIe 4 x16 (NVIDIA A800)"},
    Row{"A800", "SXM", 200, "NVLink 3, 400 GB/s both ways (NVIDIA A800 SXM)"},
    Row{"V100", "SXM", 150, "NVLink 2, 300 GB/s both ways (NVIDIA V100 data sheet)"},
    Row{"V100", "PCIE", kPcie3, "PCIe 3 x16 (NVIDIA V100 data sheet)"},
    Row{"P100", "SXM", 80, "NVLink 1, 160 GB/s both ways (NVIDIA P100 data sheet)"},
    Row{"P100", "PCIE", kPcie3, "PCIe 3 x16 (NVIDIA P100 data sheet)"},
    Row{"L40S", "", kPcie4, "PCIe 4 x16 (NVIDIA L40S data sheet)"},
    Row{"L40", "", kPcie4, "PCIe 4 x16 (NVIDIA L40 data sheet)"},
    Row{"L20", "", kPcie4, "PCIe 4 x16 (NVIDIA L20)"},
    Row{"L4", "", kPcie4, "PCIe 4 x16 (NVIDIA L4 data sheet)"},
    Row{"A40", "", kPcie4, "PCIe 4 x16 (NVIDIA A40 data sheet; NVLink joins pairs only)", 2},
    Row{"A30", "", kPcie4, "PCIe 4 x16 (NVIDIA A30 data sheet; NVLink joins pairs only)", 2},
    Row{"A10", "", kPcie4, "PCIe 4 x16 (NVIDIA A10 data sheet)"},
    Row{"A10G", "", kPcie4, "PCIe 4 x16 (NVIDIA A10 data sheet)"},
    Row{"T4", "", kPcie3, "PCIe 3 x16 (NVIDIA T4 data sheet)"},
    Row{"A6000", "", kPcie4, "PCIe 4 x16 (NVIDIA RTX A6000 data sheet; NVLink joins pairs only)", 2},
    Row{"RTX", "6000 ADA", kPcie4, "PCIe 4 x16 (NVIDIA RTX 6000 Ada data sheet)"},
    Row{"RTX", "PRO 6000 BLACKWELL", kPcie5, "PCIe 5 x16 (NVIDIA RTX PRO 6000 Blackwell data sheet)"},
    Row{"5090", "", kPcie5, "PCIe 5 x16 (NVIDIA GeForce RTX 5090)"},
    Row{"5080", "", kPcie5, "PCIe 5 x16 (NVIDIA GeForce RTX 5080)"},
    Row{"4090", "", kPcie4, "PCIe 4 x16 (NVIDIA GeForce RTX 4090)"},
    Row{"4080", "", kPcie4, "PCIe 4 x16 (NVIDIA GeForce RTX 4080)"},
    Row{"3090", "", kPcie4, "PCIe 4 x16 (NVIDIA GeForce RTX 3090; NVLink joins pairs only)", 2},
    Row{"3080", "", kPcie4, "PCIe 4 x16 (NVIDIA GeForce RTX 3080)"},
    Row{"2080", "", kPcie3, "PCIe 3 x16 (NVIDIA GeForce RTX 2080; NVLink joins pairs only)", 2},
    Row{"MI355X", "", 537.6, "7 links of Infinity Fabric, 153.6 GB/s both ways each (AMD Instinct MI355X data sheet)"},
    Row{"MI350X", "", 537.6, "7 links of Infinity Fabric, 153.6 GB/s both ways each (AMD Instinct MI350X data sheet)"},
    Row{"MI325X", "", 448, "7 links of Infinity Fabric, 128 GB/s both ways each (AMD Instinct MI325X data sheet)"},
    Row{"MI300X", "", 448, "7 links of Infinity Fabric, 128 GB/s both ways each (AMD Instinct MI300X data sheet)"},
    // A card is two devices, and a rank has one of them: half of the card's links of 50 GB/s a direction.
    Row{"MI250X", "", 200,
        "half of 8 links of Infinity Fabric, 100 GB/s both ways each (AMD Instinct MI250X data sheet)"},
    Row{"MI250", "", 150,
        "half of 6 links of Infinity Fabric, 100 GB/s both ways each (AMD Instinct MI250 data sheet)"},
    Row{"MI210", "", kPcie4, "PCIe 4 x16 (AMD Instinct MI210 data sheet; bridges join some cards only)"},
};

bool isWordPart(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool holdsWord(std::string_view text, std::string_view word) {
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const size_t end = at + word.size();
        if ((at == 0 || !isWordPart(text[at - 1])) && (end == text.size() || !isWordPart(text[end]))) return true;
    }
    return false;
}

std::string upperCase(const std::string& name) {
    std::string upper = name;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return upper;
}

const Row* rowOf(const std::string& name) {
    const std::string upper = upperCase(name);
    if (holdsWord(upper, "MIG")) return nullptr;  // instances of a device have no links of their own
    const auto row = std::ranges::find_if(kRows, [&](const Row& one) {
        return holdsWord(upper, one.name) && (one.also.empty() || upper.find(one.also) != std::string::npos);
    });
    return row == kRows.end() ? nullptr : &*row;
}

/// True for boards whose driver gives no access to one another's memory over PCIe, so that NCCL takes its SHM transport
/// (src/transport/shm.cc): GeForce since Turing, which are the ones called RTX.
bool throughHostMemory(const std::string& name) {
    const std::string upper = upperCase(name);
    return holdsWord(upper, "GEFORCE") && holdsWord(upper, "RTX");
}

/// Says of a PCIe port that its bytes go through host memory.
void goThroughHostMemory(LinkMedium& medium, std::string& source) {
    if (medium != LinkMedium::pcie) return;
    medium = LinkMedium::hostMemory;
    source += ", through host memory: GeForce boards have no peer access";
}

LinkMedium mediumOfRow(const Row& row) {
    if (row.what.find("Infinity Fabric") != std::string_view::npos) return LinkMedium::infinityFabric;
    return row.what.starts_with("PCIe") ? LinkMedium::pcie : LinkMedium::nvlink;
}

/// Rates of equal hardware differ by what a driver rounds.
constexpr double kEqualRates = 1.05;

/// Returns a rate as the machine gave it, bytes per ns; 0 where it gave none, or one that no link of today has (a
/// damaged row).
double rateOf(const store::MachineLink& link) {
    const double rate = static_cast<double>(link.bytesPerS.value_or(0)) / 1e9;
    return rate > 0 && rate <= store::LinkSpec::kMostGbps ? rate : 0;
}

struct Port {
    double bytesPerNs = 0;
    std::string source;
    LinkMedium medium = LinkMedium::unknown;
    std::string of = {};  // rank or host
};

std::string sourceName(const std::string& source) {
    return source == "nvml" ? "NVML" : source;
}

std::string generationText(const char* kind, const std::optional<int64_t>& generation) {
    return generation ? fmt::format("{} {}", kind, *generation) : std::string(kind);
}

/// Returns the slowest of several ports; `what` names them where they differ.
std::optional<LinkClass> slowest(const std::vector<Port>& ports, const char* what) {
    if (ports.empty()) return std::nullopt;
    const auto [low, high] = std::ranges::minmax_element(ports, {}, &Port::bytesPerNs);
    LinkClass link{low->bytesPerNs, 0, PeakKind::machine, low->source, low->medium};
    if (high->bytesPerNs > kEqualRates * low->bytesPerNs)
        link.source += fmt::format(", the slowest: {} {}; {:.4g} GB/s elsewhere", what, low->of, high->bytesPerNs);
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
        port.medium = LinkMedium::nvlink;
        return port;
    }
    for (const store::MachineLink* link : pcie)
        if (rateOf(*link) * kPcieShare > port.bytesPerNs)
            port = {rateOf(*link) * kPcieShare,
                    fmt::format("{}: {} x{}, {:.3g} of {:.3g} GB/s as NCCL counts them", sourceName(link->source),
                                generationText("PCIe", link->generation), link->count, rateOf(*link) * kPcieShare,
                                rateOf(*link)),
                    LinkMedium::pcie};
    return port;
}

}  // namespace

std::optional<LinkClass> deviceLinkOf(const std::string& name) {
    const Row* row = rowOf(name);
    if (!row) return std::nullopt;
    LinkClass link{row->gbps, 0, PeakKind::deviceTable, std::string(row->what), mediumOfRow(*row)};
    if (throughHostMemory(name)) goThroughHostMemory(link.medium, link.source);
    return link;
}

int bridgedBoards(const std::string& name) {
    const Row* row = rowOf(name);
    return row ? row->bridged : 0;
}

DeviceLinks deviceLinks(const facts::TraceFacts& facts) {
    DeviceLinks result;
    std::set<std::string> names, unknown;
    for (const facts::RankFacts& rank : facts.ranks)
        if (!rank.device.empty()) names.insert(rank.device);
    double fastest = 0;
    for (const std::string& name : names) {
        const std::optional<LinkClass> link = deviceLinkOf(name);
        if (!link) {
            unknown.insert(name);
            continue;
        }
        fastest = std::max(fastest, link->bytesPerNs);
        if (!result.intra || link->bytesPerNs < result.intra->bytesPerNs) result.intra = link;
    }
    result.unknown.assign(unknown.begin(), unknown.end());
    if (!unknown.empty()) result.intra.reset();  // the slowest of them may be the unknown one
    if (result.intra && fastest > result.intra->bytesPerNs)
        result.intra->source += fmt::format(", the slowest of {} kinds of devices", names.size());
    return result;
}

std::optional<LinkClass> machineIntra(const facts::TraceFacts& facts) {
    std::map<int, std::pair<std::vector<const store::MachineLink*>, std::vector<const store::MachineLink*>>> ofRank;
    for (const store::MachineLink& link : facts.machineLinks) {
        if (!link.rank || !(rateOf(link) > 0)) continue;
        if (link.kind == "nvlink") ofRank[*link.rank].first.push_back(&link);
        if (link.kind == "pcie") ofRank[*link.rank].second.push_back(&link);
    }
    std::map<int64_t, int> ranksOn;
    for (const facts::RankFacts& rank : facts.ranks) ++ranksOn[rank.hostId];
    std::vector<Port> ports;
    for (auto& [rank, links] : ofRank) {
        const facts::RankFacts* of = facts.findRank(rank);
        // A ring of more boards than their bridges join leads over PCIe, too.
        const int bridged = of != nullptr ? bridgedBoards(of->device) : 0;
        if (bridged > 0 && ranksOn[of->hostId] > bridged) links.first.clear();
        Port port = portOf(links.first, links.second);
        if (!(port.bytesPerNs > 0)) continue;
        if (of != nullptr && throughHostMemory(of->device)) goThroughHostMemory(port.medium, port.source);
        port.of = std::to_string(rank);
        ports.push_back(std::move(port));
    }
    return slowest(ports, "rank");
}

std::optional<LinkClass> machineInter(const facts::TraceFacts& facts) {
    std::map<int64_t, int> ranksOn;
    for (const facts::RankFacts& rank : facts.ranks)
        if (rank.hostId >= 0) ++ranksOn[rank.hostId];
    std::vector<Port> ports;
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
            const auto name = facts.hosts.find(host);
            ports.push_back({share,
                             fmt::format("{}: {} {} of {:.4g} GB/s for {} rank{}", source, count,
                                         infiniband ? (count == 1 ? "InfiniBand port" : "InfiniBand ports")
                                                    : (count == 1 ? "network interface" : "network interfaces"),
                                         largest, ranks, ranks == 1 ? "" : "s"),
                             infiniband ? LinkMedium::infiniband : LinkMedium::ethernet,
                             name != facts.hosts.end() && !name->second.empty() ? name->second : std::to_string(host)});
            break;
        }
    }
    return slowest(ports, "host");
}

}  // namespace rankscope::costs
