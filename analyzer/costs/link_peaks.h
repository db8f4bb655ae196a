// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/costs/nccl_tests_table.h"
#include "analyzer/facts/trace_facts.h"

namespace rankscope::costs {

/// Says how a peak is known, the best source first.
enum class PeakKind : uint8_t {
    told,         // given by the user: --links, RANKSCOPE_LINKS, a configuration file
    measured,     // an nccl-tests table or a sweep
    machine,      // NVML, InfiniBand and network interfaces of the hosts that ran the job
    deviceTable,  // a data sheet, found by the name of the device
    atLeast,      // the best that this job reached: a lower bound, and verdicts on it say 'at least'
};

/// Returns "told", "measured", "machine", "device_table" or "at_least".
const char* toText(PeakKind kind);

/// What carries a link's bytes, as far as a source tells.
enum class LinkMedium : uint8_t {
    unknown,
    nvlink,
    infinityFabric,
    pcie,
    infiniband,
    ethernet,
    hostMemory,  // PCIe of boards that cannot reach one another's memory: every byte goes through that of the host
};

/// Returns "nvlink", "infinity_fabric", "pcie", "infiniband", "ethernet" or "host_memory"; "" for an unknown one.
const char* toText(LinkMedium medium);
/// Returns the medium of that name; unknown for any other text.
LinkMedium mediumOfText(std::string_view text);
/// True for what goes through a device's PCIe slot.
constexpr bool isPcie(LinkMedium medium) {
    return medium == LinkMedium::pcie || medium == LinkMedium::hostMemory;
}

struct Range {
    double low = 0;
    double high = 0;
    /// Returns the value at a place: 0 at the low end, 1 at the high end.
    double at(double place) const { return low + place * (high - low); }
    double middle() const { return (low + high) / 2; }
};

struct LinkClass {
    double bytesPerNs = 0;  // = GB/s (1e9), one direction, per rank
    double alphaNs = 0;     // latency per hop; 0 when not known
    PeakKind kind = PeakKind::told;
    std::string source = {};  // where it is from, for a reader: "--links", "NVML: 18 links of NVLink 4"
    LinkMedium medium = LinkMedium::unknown;
};

/// Says what the links can do. `intra` is a rank's port inside its node, `inter` its own NIC.
struct LinkPeaks {
    std::optional<LinkClass> intra;
    std::optional<LinkClass> inter;
    std::vector<LinkClass> intraOthers,
        interOthers;                          // what else is said, the best source first: where these are refuted
    std::string source;                       // both classes' sources in one line; empty: unknown
    std::vector<std::string> warnings;        // sources that contradict each other or cannot be read
    std::vector<std::string> unknownDevices;  // names that no row of the device table has, where that table was asked

    struct Ceiling {
        double bytesPerNs = 0;
        const LinkClass* link = nullptr;  // the class that sets it; lives as long as the peaks
        bool betweenNodes = false;        // that class is the network
    };
    /// Returns what limits the bus bandwidth of an operation, and which class of links does.
    std::optional<Ceiling> ceiling(const facts::Communicator& communicator, store::Op op = store::Op::unknown) const;
    /// Returns the highest bus bandwidth that an operation of this communicator can reach: inside a node intra; over
    /// nodes min(intra, k * inter), k = nicsPerRank(). What a port carries at least is no limit to a NIC whose rate is
    /// known.
    std::optional<double> busCeiling(const facts::Communicator& communicator, store::Op op = store::Op::unknown) const;
    /// True where that ceiling is a lower bound: the best that this job reached.
    bool atLeast(const facts::Communicator& communicator, store::Op op = store::Op::unknown) const;
    /// Returns the longest latency per hop of the links it uses, 0 when unknown.
    double alphaPerHop(const facts::Communicator& communicator) const;
};

/// Returns how many NICs' rates add up to the bus bandwidth of an operation over nodes. NCCL's rings use every NIC of a
/// node, so that the node with the fewest members counts; a message has its sender's; in an all-to-all of P ranks the P
/// - k of P parts that leave a node with k members go through each sender's own.
double nicsPerRank(const facts::Communicator& communicator, store::Op op);

/// Makes a communicator of two ranks that send each other messages.
facts::Communicator pairOfRanks(bool betweenNodes);

/// Holds what a user of an analysis says of the links, beside what the trace holds.
struct LinkSources {
    /// Holds link specifications (store::parseLinkSpec) and who gave them, the one that counts first. A class that one
    /// leaves out is looked for in the next.
    struct Told {
        std::string text;
        std::string source;  // "--links"
    };
    std::vector<Told> told;
    bool forgotten = false;  // neither what the run was told counts nor what its machines said: only the device table
    /// Holds a plateau of nccl-tests (measured_links.h).
    struct Measured {
        LinkClass link;
        bool betweenNodes = false;
        double mostShare = 1;  // how many times a ring's rate it may be
    };
    std::vector<Measured> measured;
    std::vector<std::string> complaints;  // of tables that tell no peak, as warnings
    std::vector<NcclTestsTable> tables;   // whose plateaus count as measured; the job's facts say which can be trusted
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(LinkClass& value, const Visit& visit) {
    auto& [bytesPerNs, alphaNs, kind, source, medium] = value;
    visit(bytesPerNs, alphaNs, kind, source, medium);
}
template <typename Visit>
void forEachField(LinkSources::Told& value, const Visit& visit) {
    auto& [text, source] = value;
    visit(text, source);
}
template <typename Visit>
void forEachField(LinkSources::Measured& value, const Visit& visit) {
    auto& [link, betweenNodes, mostShare] = value;
    visit(link, betweenNodes, mostShare);
}
template <typename Visit>
void forEachField(LinkSources& value, const Visit& visit) {
    auto& [told, forgotten, measured, complaints, tables] = value;
    visit(told, forgotten, measured, complaints, tables);
}

/// Takes each class from the best source that has it: `given`, what was given when the run was made, measured, the
/// machine, the device table. The fastest of several measured ones counts, unless it is beyond what the machine or the
/// device table has: then it stands behind these. Sources further back that differ by more than kContradiction are a
/// warning.
LinkPeaks resolveLinkPeaks(const facts::TraceFacts& facts, const LinkSources& given = {});

/// Writes `source` anew from those of the classes.
void nameSources(LinkPeaks& peaks);

/// Reads one specification, without a trace. What cannot be read is unknown.
LinkPeaks parseLinkPeaks(const std::string& text);

/// Writes one line for people: "inside a node 200 GB/s, start-up 6 us (told: --links); between nodes unknown". `nodes`
/// is that of the job: one node needs nothing between.
std::string linkPeaksText(const LinkPeaks& peaks, size_t nodes);

/// Names the command that helps where no peak is known.
constexpr const char* kTellLinks =
    "rankscope analyze NAME --links \"intra:gbps=200;inter:gbps=40\", with your own links' 1e9 bytes/s per rank";

struct LinkPeakThresholds {
    // Nominal rates and what users give differ by a fifth (NCCL reaches 80 to 95 % of a rate), NVLink SHARP by half;
    // twice is another link or another unit.
    static constexpr double kContradiction = 2;
};

/// A pinned copy is taken to run at this rate, GB/s, when the trace has none: PCIe 4.0 x16, the slowest host link of
/// devices that train today.
inline constexpr double kUnseenPinnedGbps = 25;

}  // namespace rankscope::costs
