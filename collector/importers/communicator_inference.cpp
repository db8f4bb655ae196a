// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/communicator_inference.h"

#include <algorithm>
#include <map>
#include <string>

#include "collector/importers/collective_alignment.h"

namespace rankscope::collector {

namespace {

/// Calls of one rank that may belong to one communicator.
struct Member {
    size_t rank = 0;  // index into the ranks
    CallSequence sequence;
    int64_t shift = 0;  // against the cluster's reference
};

/// Members that agree; the first one is the reference.
struct Cluster {
    std::vector<Member> members;
    bool timesAgree = true;
};

CallSequence sequenceOf(const RankCalls& rank, const std::vector<size_t>& calls) {
    CallSequence sequence;
    for (const size_t at : calls) {
        const RankCalls::Call& call = rank.calls[at];
        sequence.push_back({call.index, call.op, call.startNs, call.endNs, call.frameworkSeq});
        if (call.group != 0) continue;  // members of a told group that disagree are a finding
        sequence.back().bytes = call.bytes;
        sequence.back().groupSize = call.groupSize;
    }
    return sequence;
}

/// True when the recordings cannot have run at the same time: then their clocks are not comparable. Where they overlap,
/// times must agree.
bool apartInTime(const CallSequence& a, const CallSequence& b) {
    return a.back().endNs < b.front().startNs || b.back().endNs < a.front().startNs;
}

enum class Membership { told, guessed };

/// Puts each rank to the first cluster it agrees with. Longest sequences first, so that a reference covers what the
/// others saw.
std::vector<Cluster> clusterMembers(std::vector<Member> members, Membership membership) {
    std::stable_sort(members.begin(), members.end(),
                     [](const Member& a, const Member& b) { return a.sequence.size() > b.sequence.size(); });
    std::vector<Cluster> clusters;
    for (Member& member : members) {
        Cluster* home = nullptr;
        for (const bool needTimes : {true, false}) {
            for (Cluster& cluster : clusters) {
                const int32_t most = member.sequence.front().groupSize;
                if (most > 0 && cluster.members.size() >= static_cast<size_t>(most)) continue;
                const auto alignment = alignSequences(cluster.members.front().sequence, member.sequence);
                if (!alignment || (needTimes && !alignment->timesAgree)) continue;
                if (!alignment->timesAgree && membership == Membership::guessed &&
                    !apartInTime(cluster.members.front().sequence, member.sequence))
                    continue;
                member.shift = alignment->shift;
                cluster.timesAgree = cluster.timesAgree && alignment->timesAgree;
                home = &cluster;
                break;
            }
            if (home != nullptr) break;
        }
        if (home == nullptr) home = &clusters.emplace_back();
        home->members.push_back(std::move(member));
    }
    return clusters;
}

int64_t firstShift(const Cluster& cluster) {
    int64_t lowest = 0;
    for (const Member& member : cluster.members) lowest = std::min(lowest, member.shift);
    return lowest;
}

void number(const Cluster& cluster, std::vector<CallPlan>& plans, const std::vector<int32_t>* communicatorOfRank) {
    const int64_t lowest = firstShift(cluster);
    for (const Member& member : cluster.members) {
        for (size_t j = 0; j < member.sequence.size(); ++j) {
            CallPlan::Entry entry;
            entry.index = member.sequence[j].call;
            entry.seq = static_cast<int64_t>(j) + member.shift - lowest;
            if (communicatorOfRank != nullptr) {
                entry.communicator = (*communicatorOfRank)[member.rank];
                entry.inferred = true;
            }
            plans[member.rank].entries.push_back(entry);
        }
    }
}

/// Numbers the calls of each told process group.
void numberGroups(const std::vector<RankCalls>& ranks, std::vector<CallPlan>& plans, ImportLosses& losses) {
    std::map<uint64_t, std::vector<Member>> groups;
    for (size_t r = 0; r < ranks.size(); ++r) {
        std::map<uint64_t, std::vector<size_t>> callsOf;
        for (size_t i = 0; i < ranks[r].calls.size(); ++i) {
            if (ranks[r].calls[i].group != 0) callsOf[ranks[r].calls[i].group].push_back(i);
        }
        for (const auto& [group, calls] : callsOf) groups[group].push_back({r, sequenceOf(ranks[r], calls), 0});
    }
    for (auto& [group, members] : groups) {
        std::vector<Cluster> clusters = clusterMembers(std::move(members), Membership::told);
        if (clusters.size() > 1) {
            // They belong together, the trace says so; what disagrees is for the analysis to find. Count from the first
            // recorded one.
            int64_t apart = 0;
            for (size_t i = 1; i < clusters.size(); ++i) apart += static_cast<int64_t>(clusters[i].members.size());
            losses.add("unmatched_collective", "warning", std::nullopt,
                       "ranks of one process group recorded collectives that do not line up; they are numbered from "
                       "the first recorded one",
                       apart);
        }
        for (const Cluster& cluster : clusters) {
            if (!cluster.timesAgree) {
                losses.add("clock", "warning", std::nullopt,
                           "collectives agree in order but not in time across ranks: the files' clocks or recording "
                           "windows differ");
            }
            number(cluster, plans, nullptr);
        }
    }
}

using Lane = std::vector<Member>;

/// Calls without a told group, per stream (torch gives each process group its own) or, with `together`, all of a rank
/// in one lane.
std::vector<Lane> makeLanes(const std::vector<RankCalls>& ranks, bool together) {
    std::vector<Lane> lanes;
    for (size_t r = 0; r < ranks.size(); ++r) {
        std::map<int32_t, std::vector<size_t>> callsOf;
        for (size_t i = 0; i < ranks[r].calls.size(); ++i) {
            if (ranks[r].calls[i].group == 0) callsOf[together ? 0 : ranks[r].calls[i].stream].push_back(i);
        }
        size_t position = 0;
        for (const auto& [stream, calls] : callsOf) {
            if (position >= lanes.size()) lanes.emplace_back();
            lanes[position++].push_back({r, sequenceOf(ranks[r], calls), 0});
        }
    }
    return lanes;
}

size_t alone(const std::vector<Cluster>& clusters) {
    return static_cast<size_t>(std::count_if(clusters.begin(), clusters.end(),
                                             [](const Cluster& cluster) { return cluster.members.size() < 2; }));
}

/// What one rank alone shows of its groups: PyTorch gives each process group a stream of its own.
void assumeGroups(const RankCalls& rank, CallPlan& plan, ImportLosses& losses) {
    const int32_t world = rank.worldSize.value_or(0);
    std::map<std::pair<int32_t, int32_t>, int32_t> communicatorOf;  // by stream and size
    std::map<int32_t, int64_t> next;                                // sequence number, by communicator
    int64_t assumed = 0, unknown = 0;
    for (const RankCalls::Call& call : rank.calls) {
        if (call.group != 0) continue;
        const int32_t size = call.groupSize > 0 ? call.groupSize : world;
        if (size < 2) {
            ++unknown;
            continue;
        }
        const auto [place, isNew] =
            communicatorOf.try_emplace({call.stream, size}, static_cast<int32_t>(plan.communicators.size()));
        if (isNew) {
            LocalCommunicator communicator;
            communicator.hash = 0x617373756d6564u + static_cast<uint64_t>(place->second);  // "assumed"
            communicator.identity = "assumed";
            communicator.name = size == world ? "assumed: all ranks" : "assumed: " + std::to_string(size) + " ranks";
            communicator.nRanks = size;
            if (size == world) communicator.commRank = rank.rank;
            plan.communicators.push_back(communicator);
        }
        CallPlan::Entry entry;
        entry.index = call.index;
        entry.communicator = place->second;
        entry.seq = next[place->second]++;
        entry.inferred = true;
        plan.entries.push_back(entry);
        ++assumed;
    }
    if (assumed > 0) {
        losses.add("unmatched_collective", "info", std::nullopt,
                   "collectives do not tell their communicator; it is assumed that each stream serves one group, of "
                   "all ranks of the job unless told otherwise",
                   assumed);
    }
    if (unknown > 0) {
        losses.add("unmatched_collective", "info", std::nullopt,
                   "collectives whose communicator is not told; with one rank it cannot be inferred", unknown);
    }
}

void inferFromLanes(const std::vector<RankCalls>& ranks, std::vector<CallPlan>& plans, ImportLosses& losses) {
    std::vector<std::vector<Cluster>> byStream;
    size_t aloneByStream = 0;
    for (Lane& lane : makeLanes(ranks, false)) {
        byStream.push_back(clusterMembers(std::move(lane), Membership::guessed));
        aloneByStream += alone(byStream.back());
    }
    if (byStream.empty()) return;
    if (ranks.size() == 1) return assumeGroups(ranks.front(), plans.front(), losses);
    if (aloneByStream > 0 && byStream.size() > 1) {
        // Streams need not correspond; all calls of a rank may.
        std::vector<std::vector<Cluster>> all;
        size_t aloneTogether = 0;
        for (Lane& lane : makeLanes(ranks, true)) {
            all.push_back(clusterMembers(std::move(lane), Membership::guessed));
            aloneTogether += alone(all.back());
        }
        if (aloneTogether == 0) byStream = std::move(all);
    }
    int64_t unmatched = 0;
    uint64_t nextHash = 0x696e666572726564u;  // "inferred"
    for (size_t lane = 0; lane < byStream.size(); ++lane) {
        for (Cluster& cluster : byStream[lane]) {
            if (cluster.members.size() < 2) {
                unmatched += static_cast<int64_t>(cluster.members.front().sequence.size());
                continue;
            }
            if (!cluster.timesAgree) {
                losses.add("clock", "warning", std::nullopt,
                           "collectives agree in order but not in time across ranks: the files' clocks or recording "
                           "windows differ");
            }
            std::sort(cluster.members.begin(), cluster.members.end(),
                      [&](const Member& a, const Member& b) { return ranks[a.rank].rank < ranks[b.rank].rank; });
            LocalCommunicator communicator;
            communicator.hash = nextHash++;
            communicator.identity = "inferred";
            const bool everyRank = cluster.members.size() == ranks.size();
            communicator.name = everyRank && byStream.size() == 1 ? "world" : "inferred " + std::to_string(lane);
            // All imported ranks of a larger job: the communicator is the job's, as far as anyone can tell.
            const auto world = ranks[cluster.members.front().rank].worldSize;
            communicator.nRanks = static_cast<int32_t>(cluster.members.size());
            if (everyRank && world && *world > communicator.nRanks) communicator.nRanks = *world;
            const bool world0 = communicator.nRanks > static_cast<int32_t>(cluster.members.size());
            std::vector<int32_t> communicatorOfRank(ranks.size(), -1);
            for (size_t position = 0; position < cluster.members.size(); ++position) {
                const Member& member = cluster.members[position];
                communicator.commRank = world0 ? ranks[member.rank].rank : static_cast<int32_t>(position);
                communicatorOfRank[member.rank] = static_cast<int32_t>(plans[member.rank].communicators.size());
                plans[member.rank].communicators.push_back(communicator);
            }
            number(cluster, plans, &communicatorOfRank);
        }
    }
    if (unmatched > 0) {
        losses.add("unmatched_collective", "warning", std::nullopt,
                   "collectives whose communicator is not told and which no other rank's calls match", unmatched);
    }
}

}  // namespace

RankCalls collectCalls(const RankRecording& recording) {
    RankCalls result;
    result.rank = recording.rank;
    std::map<int64_t, int32_t> positions;  // by native stream id
    for (const store::NcclCall& call : recording.ncclCalls) {
        if (call.streamId) positions[recording.streams[static_cast<size_t>(*call.streamId)].nativeId] = 0;
    }
    for (auto& [native, position] : positions) position = result.streamCount++;
    for (size_t i = 0; i < recording.ncclCalls.size(); ++i) {
        const store::NcclCall& call = recording.ncclCalls[i];
        if (store::isP2p(call.op) || !call.kernelId) continue;
        const store::Kernel& kernel = recording.kernels[static_cast<size_t>(*call.kernelId)];
        RankCalls::Call fact;
        fact.index = i;
        fact.op = call.op;
        fact.startNs = kernel.startNs;
        fact.endNs = kernel.startNs + kernel.durNs;
        if (call.streamId) fact.stream = positions[recording.streams[static_cast<size_t>(*call.streamId)].nativeId];
        if (i < recording.toldGroupSizes.size()) fact.groupSize = recording.toldGroupSizes[i];
        if (call.communicatorId) fact.group = recording.communicators[static_cast<size_t>(*call.communicatorId)].hash;
        fact.bytes = call.bytes;
        fact.frameworkSeq = call.seq;
        result.calls.push_back(fact);
    }
    std::stable_sort(result.calls.begin(), result.calls.end(),
                     [](const RankCalls::Call& a, const RankCalls::Call& b) { return a.startNs < b.startNs; });
    return result;
}

std::vector<CallPlan> inferCommunicators(const std::vector<RankCalls>& ranks, ImportLosses& losses) {
    std::vector<CallPlan> plans(ranks.size());
    numberGroups(ranks, plans, losses);
    inferFromLanes(ranks, plans, losses);
    return plans;
}

void applyPlan(const CallPlan& plan, RankRecording& recording) {
    const size_t first = recording.communicators.size();
    recording.toldGroupSizes.clear();
    recording.communicators.insert(recording.communicators.end(), plan.communicators.begin(), plan.communicators.end());
    for (store::NcclCall& call : recording.ncclCalls) call.seq.reset();
    for (const CallPlan::Entry& entry : plan.entries) {
        store::NcclCall& call = recording.ncclCalls[entry.index];
        if (entry.communicator >= 0) call.communicatorId = static_cast<int64_t>(first) + entry.communicator;
        call.seq = entry.seq;
        if (entry.inferred) call.evidence |= store::evidence::kInferred;
        // The chunk of an all-gather is known without its communicator, the sum over all members only with it.
        const int64_t members =
            entry.communicator >= 0 ? plan.communicators[static_cast<size_t>(entry.communicator)].nRanks : 0;
        if (!call.bytes && call.op == store::Op::allGather && call.count && members > 0) {
            const int64_t size = store::elementBytes(call.dataType);
            int64_t bytes = 0;
            if (size > 0 && !__builtin_mul_overflow(*call.count, members * size, &bytes)) call.bytes = bytes;
        }
    }
}

}  // namespace rankscope::collector
