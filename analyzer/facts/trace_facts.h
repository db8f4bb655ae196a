// SPDX-License-Identifier: Apache-2.0
// Reads the small tables of trace.db whole: who took part, which collectives ran, where the steps are. Events of a rank
// are in RankEvents.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analyzer/facts/job_end.h"
#include "analyzer/facts/shared_list.h"
#include "collector/store/event_model.h"

namespace rankscope::store {
class TraceReader;
}

namespace rankscope::facts {

struct Communicator {
    int64_t id = 0;
    std::string name;
    std::string identity;
    int size = 0;
    int nodes = 1;
    int smallestNode = 1;    // fewest members on one of its nodes
    std::vector<int> ranks;  // recorded members, by rank in the communicator
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(Communicator& value, const Visit& visit) {
    auto& [id, name, identity, size, nodes, smallestNode, ranks] = value;
    visit(id, name, identity, size, nodes, smallestNode, ranks);
}

struct StepWindow {
    int step = 0;
    int64_t startNs = 0;
    int64_t durNs = 0;
    bool warmUp = false;

    int64_t endNs() const { return startNs + durNs; }
};

/// Returns the step that a time lies in, of steps in the order of their starts; nullptr outside of all.
const StepWindow* stepAt(const std::vector<StepWindow>& steps, int64_t ns);

struct RankFacts {
    int rank = 0;
    int64_t hostId = -1;
    std::string host;
    std::string device;
    bool recorded = false;  // left events
    store::RankState state = store::RankState::complete;
    std::vector<StepWindow> steps;
    bool sharesDevice = false;  // another rank computes on its device, too: their kernels take turns
    bool cuptiTaken = false;    // another client took CUPTI over, and device activity ends with that
};

struct ClockFacts {
    std::string method = "none";
    int64_t maxOffsetNs = 0;
    int64_t boundNs = 0;
};

struct TraceFacts {
    std::map<std::string, std::string> meta;
    std::vector<RankFacts> ranks;  // by rank
    std::map<int64_t, Communicator> communicators;
    SharedList<store::Collective> collectives;    // by id
    SharedList<store::CollectiveMember> members;  // by (rank, collective)
    SharedList<store::P2p> pointToPoint;
    std::map<int, std::vector<uint32_t>> messagesOf;  // by rank: where in pointToPoint it sends or receives
    std::vector<store::Loss> losses;
    // What the hosts said of their links; there are none in older traces and imported ones.
    std::vector<store::MachineLink> machineLinks;
    // How the ranks' devices and the hosts' ports did, by rank and by host, name and time; likewise.
    std::vector<store::DeviceHealth> deviceHealth;
    std::vector<store::PortCounter> portCounters;
    std::map<int64_t, std::string> hosts;                    // empty where nobody named it
    std::map<int, std::vector<std::string>> sourcesNotLive;  // rank: "cupti taken: …"
    std::vector<std::string> strings;                        // interned texts by id; [0] is empty
    ClockFacts clock;
    std::string stepSource;          // nvtx:NAME | updates | period | none
    std::optional<JobEnd> end;       // of a job that failed, or whose ranks did not call the same
    bool wholeRunIsOneStep = false;  // no steps found: everything is analysed as one

    // The median by (communicator, op, bytes) over the instances whose members are all recorded.
    std::map<std::tuple<int64_t, store::Op, int64_t>, int64_t> typicalTransferNs;

    /// Estimates the wait of a member whose peers' arrivals are not all recorded: at least until the last recorded one,
    /// at most what a transfer of this size leaves of its kernel.
    int64_t likelyWaitNs(const store::Collective& collective, const store::CollectiveMember& member) const;
    /// Returns an interned text; empty for an id that the trace does not have.
    std::string_view string(int32_t id) const;
    const RankFacts* findRank(int rank) const;
    const Communicator* findCommunicator(int64_t id) const {
        const auto at = communicators.find(id);
        return at == communicators.end() ? nullptr : &at->second;
    }
    const store::Collective* findCollective(int64_t id) const;
    std::string text(const std::string& key, const std::string& fallback = {}) const;
    /// Returns the number of ranks of the job, recorded or not; nothing where no file tells.
    std::optional<int> worldSize() const;
    bool sameHost(const std::vector<int>& ranks) const;
    /// Whether any rank shares its device with another one.
    bool sharesDevices() const;
};

/// The tables that grow with what the job communicates: nearly all that there is to read of the small ones.
struct Instances {
    std::vector<store::Collective> collectives;    // as in TraceFacts
    std::vector<store::CollectiveMember> members;  // the same
    std::vector<store::P2p> pointToPoint;          // the same
};

/// One of `parts` about equal parts of them, by their ids: behind each other they are all, in the order of the tables.
Instances readInstances(store::TraceReader& trace, size_t part, size_t parts);

TraceFacts readTraceFacts(store::TraceReader& trace);
/// Whether the small tables are known to fit each other.
enum class References : uint8_t { unchecked, checked };
/// The same of a trace of which somebody has read `instances`: in the order of the tables, or that of TraceFacts.
TraceFacts readTraceFacts(store::TraceReader& trace, Instances instances, References references);

/// Says how the job died, from what the collector wrote of the ranks' ends: "The job died: rank 3 (on node0) ...: look
/// there for the cause."; empty for a job whose ranks all ended by themselves with status 0, as far as is known.
std::string jobDeath(const std::vector<store::Loss>& losses);

/// Of several ranks that failed the one that did so first; nothing where that is unknown, or the job was ended from
/// outside.
std::optional<int> firstToFail(const std::vector<store::Loss>& losses);

}  // namespace rankscope::facts
