// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/trace_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "analyzer/facts/loss_kinds.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/plain_text.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"
#include "collector/store/tables.h"

namespace rankscope::facts {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& damage) {
    throw store::Error(file, "damaged: " + damage, "make it again with `rankscope collect` or `rankscope import`");
}

/// Throws when the small tables do not fit each other, which only a damaged file's do: communicators without members,
/// or members, collectives and messages of communicators and ranks that are not there. So whoever reads TraceFacts may
/// follow these references without looking.
void refuseBrokenReferences(const std::string& file, const TraceFacts& facts) {
    const auto require = [&](bool listed, const char* table, const char* what, int64_t id) {
        if (!listed)
            refuse(file, fmt::format("table {0} names {1} {2}, which table {1} does not list", table, what, id));
    };
    const auto requireRank = [&](int rank, const char* table) {
        require(facts.findRank(rank) != nullptr, table, "rank", rank);
    };
    const auto requireCommunicator = [&](int64_t id, const char* table) {
        require(facts.communicators.contains(id), table, "communicator", id);
    };
    for (const auto& [id, communicator] : facts.communicators) {
        if (communicator.ranks.empty())
            refuse(file, fmt::format("communicator {} has no members in table communicator_member", id));
        if (communicator.size < static_cast<int>(communicator.ranks.size()))
            refuse(file, fmt::format("communicator {} of {} ranks has {} members", id, communicator.size,
                                     communicator.ranks.size()));
        for (int rank : communicator.ranks) requireRank(rank, "communicator_member");
    }
    for (const store::Collective& row : facts.collectives) requireCommunicator(row.communicatorId, "collective");
    for (const store::CollectiveMember& row : facts.members) {
        requireRank(row.rank, "collective_member");
        require(facts.findCollective(row.collectiveId) != nullptr, "collective_member", "collective", row.collectiveId);
    }
    for (const store::P2p& row : facts.pointToPoint) {
        requireCommunicator(row.communicatorId, "p2p");
        requireRank(row.srcRank, "p2p");
        requireRank(row.dstRank, "p2p");
    }
}

constexpr const char* kUnnamedHost = "unknown";  // importers call a host so that the trace does not name

// Names come from jobs and are printed by every verb: no control character gets further than this.
std::string shown(const std::string& name) {
    const bool plain = std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
    return plain ? name : text::oneLine(name);
}

void readRanks(store::TraceReader& trace, TraceFacts& facts) {
    for (const store::Host& host : trace.all<store::Host>())
        facts.hosts[host.id] = host.name == kUnnamedHost ? std::string() : shown(host.name);
    std::map<int64_t, std::string> devices;
    for (const store::Device& device : trace.all<store::Device>()) devices[device.id] = shown(device.name.value_or(""));
    for (const store::Rank& row : trace.all<store::Rank>()) {
        const bool recorded = !trace.extent<store::Kernel>(row.rank).empty() ||
                              !trace.extent<store::Memcpy>(row.rank).empty() ||
                              !trace.extent<store::KernelSpan>(row.rank).empty();
        facts.ranks.push_back({row.rank, row.hostId.value_or(-1), row.hostId ? facts.hosts[*row.hostId] : "",
                               row.deviceId ? devices[*row.deviceId] : "", recorded, row.state});
    }
    std::ranges::sort(facts.ranks, {}, &RankFacts::rank);
}

void readClock(store::TraceReader& trace, TraceFacts& facts) {
    const std::vector<store::ClockModel> models = trace.all<store::ClockModel>();
    const auto reference = std::ranges::find(models, "reference", &store::ClockModel::method);
    // Every model also moves the origin of its clock to the job's; hosts differ by what is left when that is taken
    // away.
    const int64_t originNs = reference != models.end() ? reference->offsetNs : 0;
    for (const store::ClockModel& model : models) {
        // The reference host tells nothing about the method; with one host it is all there is.
        if (facts.clock.method == "none" || model.method != "reference") facts.clock.method = model.method;
        facts.clock.maxOffsetNs = std::max(facts.clock.maxOffsetNs, std::abs(model.offsetNs - originNs));
        facts.clock.boundNs = std::max(facts.clock.boundNs, model.boundNs);
    }
}

void readCommunicators(store::TraceReader& trace, TraceFacts& facts) {
    for (const store::Communicator& row : trace.all<store::Communicator>()) {
        facts.communicators[row.id] = {row.id, shown(row.name.value_or("")), row.identity, row.nRanks, row.nodeCount};
    }
    std::vector<store::CommunicatorMember> members = trace.all<store::CommunicatorMember>();
    std::ranges::sort(members, {}, &store::CommunicatorMember::commRank);
    for (const store::CommunicatorMember& member : members)
        facts.communicators[member.communicatorId].ranks.push_back(member.rank);
    for (auto& [id, communicator] : facts.communicators) {
        std::map<int64_t, int> perHost;
        for (int rank : communicator.ranks)
            if (const RankFacts* known = facts.findRank(rank)) ++perHost[known->hostId];
        communicator.smallestNode = std::max<int>(1, static_cast<int>(communicator.ranks.size()));
        for (const auto& [host, count] : perHost)
            communicator.smallestNode = std::min(communicator.smallestNode, count);
        communicator.nodes = std::max<int>(communicator.nodes, static_cast<int>(perHost.size()));
    }
}

/// By rank and collective. They come by collective: dealt to their ranks in that order they are sorted already.
void sortMembers(std::vector<store::CollectiveMember>& members) {
    const auto key = [](const auto& row) { return std::pair(row.rank, row.collectiveId); };
    const auto isSorted = [&key](const auto& rows) { return std::ranges::is_sorted(rows, {}, key); };
    if (isSorted(members)) return;
    const auto [first, last] = std::ranges::minmax(members, {}, &store::CollectiveMember::rank);
    const auto ranks = static_cast<uint64_t>(int64_t{last.rank} - first.rank) + 1;
    if (ranks <= members.size()) {  // else numbers are far apart, as those of a damaged file may be
        const auto numberOf = [&](const auto& row) { return static_cast<size_t>(row.rank - first.rank); };
        std::vector<size_t> places(ranks + 1);
        for (const store::CollectiveMember& member : members) ++places[numberOf(member) + 1];
        std::partial_sum(places.begin(), places.end(), places.begin());
        std::vector<store::CollectiveMember> dealt(members.size());
        for (const store::CollectiveMember& member : members) dealt[places[numberOf(member)]++] = member;
        members = std::move(dealt);
    }
    if (!isSorted(members)) std::ranges::sort(members, {}, key);
}

void sort(Instances& instances) {
    if (!std::ranges::is_sorted(instances.collectives, {}, &store::Collective::id))
        std::ranges::sort(instances.collectives, {}, &store::Collective::id);
    sortMembers(instances.members);
}

void takeInstances(Instances instances, TraceFacts& facts) {
    sort(instances);
    facts.collectives = std::move(instances.collectives);
    facts.members = std::move(instances.members);
    facts.pointToPoint = std::move(instances.pointToPoint);
    for (uint32_t i = 0; i < facts.pointToPoint.size(); ++i) {
        const store::P2p& row = facts.pointToPoint[i];
        facts.messagesOf[row.srcRank].push_back(i);
        if (row.dstRank != row.srcRank) facts.messagesOf[row.dstRank].push_back(i);
    }
    std::map<std::tuple<int64_t, store::Op, int64_t>, std::vector<double>> transfers;
    for (const store::Collective& row : facts.collectives)
        if (row.transferNs)
            transfers[{row.communicatorId, row.op, row.bytes.value_or(-1)}].push_back(
                static_cast<double>(*row.transferNs));
    for (auto& [kind, times] : transfers)
        facts.typicalTransferNs[kind] = static_cast<int64_t>(median(std::move(times)));
}

void readSteps(store::TraceReader& trace, TraceFacts& facts) {
    facts.stepSource = shown(trace.meta("step_source", "none"));
    std::vector<store::Step> steps = trace.all<store::Step>();
    std::ranges::sort(steps, {}, [](const auto& row) { return std::pair(row.rank, row.startNs); });
    for (RankFacts& rank : facts.ranks) {
        for (const store::Step& row : std::ranges::equal_range(steps, rank.rank, {}, &store::Step::rank))
            rank.steps.push_back({row.step, row.startNs, row.durNs, row.warmUp});
    }
    if (!steps.empty()) return;
    // Without steps the device activity of the whole run is one window, the same on every rank.
    facts.wholeRunIsOneStep = true;
    int64_t start = INT64_MAX;
    int64_t end = INT64_MIN;
    for (const char* table : {"kernel", "memcpy", "memset"}) {
        store::Statement row(trace.database(),
                             std::string("SELECT min(start_ns), max(start_ns + dur_ns) FROM ") + table);
        if (!row.step() || row.isNull(0)) continue;
        start = std::min(start, row.integer(0));
        end = std::max(end, row.integer(1));
    }
    if (start >= end) return;
    for (RankFacts& rank : facts.ranks)
        if (rank.recorded) rank.steps.push_back({0, start, end - start, false});
}

void readSources(store::TraceReader& trace, TraceFacts& facts) {
    facts.losses = trace.all<store::Loss>();
    facts.machineLinks = trace.all<store::MachineLink>();
    facts.deviceHealth = trace.all<store::DeviceHealth>();
    facts.portCounters = trace.all<store::PortCounter>();
    const auto tell = [&facts](int rank, bool RankFacts::*what) {  // the ranks are sorted
        const auto at = std::ranges::lower_bound(facts.ranks, rank, {}, &RankFacts::rank);
        if (at != facts.ranks.end() && at->rank == rank) (*at).*what = true;
    };
    for (store::Loss& loss : facts.losses) {
        loss.message = shown(loss.message);
        if (loss.kind == kSharedDevice && loss.rank) tell(*loss.rank, &RankFacts::sharesDevice);
    }
    for (const store::SourceStatus& row : trace.all<store::SourceStatus>()) {
        if (row.state == "live" || row.state == "not_asked") continue;
        if (row.source == "cupti" && row.state == "taken") tell(row.rank, &RankFacts::cuptiTaken);
        facts.sourcesNotLive[row.rank].push_back(
            shown(row.source + " " + row.state + (row.message ? ": " + *row.message : "")));
    }
}

int64_t lastDeviceNs(store::TraceReader& trace, int rank) {
    int64_t last = INT64_MIN;
    for (const char* table : {"kernel", "memcpy", "memset"}) {
        store::Statement row(trace.database(),
                             std::string("SELECT max(start_ns + dur_ns) FROM ") + table + " WHERE rank = ?");
        row.bind(1, int64_t{rank});
        if (row.step() && !row.isNull(0)) last = std::max(last, row.integer(0));
    }
    return last;
}

/// Steps behind the moment at which another client took CUPTI have nothing of the device: they are no steps of ours.
void dropStepsWithoutCupti(store::TraceReader& trace, TraceFacts& facts) {
    for (RankFacts& rank : facts.ranks) {
        if (!rank.cuptiTaken || facts.wholeRunIsOneStep) continue;
        const int64_t lastNs = lastDeviceNs(trace, rank.rank);
        const auto first = std::ranges::find_if(rank.steps, [&](const auto& step) { return step.startNs >= lastNs; });
        if (first == rank.steps.end()) continue;
        facts.losses.push_back(
            {.kind = "device_records_missing",
             .rank = rank.rank,
             .count = rank.steps.end() - first,
             .message = fmt::format("from step {} on rank {} has no device activity, since another profiler took "
                                    "CUPTI: these {} steps are not judged; without that profiler they are",
                                    first->step, rank.rank, rank.steps.end() - first)});
        rank.steps.erase(first, rank.steps.end());
        if (std::ranges::all_of(rank.steps, &StepWindow::warmUp)) rank.recorded = false;
    }
}

}  // namespace

int64_t TraceFacts::likelyWaitNs(const store::Collective& collective, const store::CollectiveMember& member) const {
    if (!member.arrivalNs || !member.endNs) return 0;
    const int64_t atLeastNs =
        std::max<int64_t>(0, collective.lastArrivalNs.value_or(*member.arrivalNs) - *member.arrivalNs);
    const int64_t durationNs = std::max<int64_t>(0, *member.endNs - *member.arrivalNs);
    const auto typical =
        typicalTransferNs.find({collective.communicatorId, collective.op, collective.bytes.value_or(-1)});
    const int64_t likelyNs = typical == typicalTransferNs.end() ? 0 : durationNs - typical->second;
    return std::min(std::max(atLeastNs, likelyNs), durationNs);
}

const StepWindow* stepAt(const std::vector<StepWindow>& steps, int64_t ns) {
    const auto after = std::ranges::upper_bound(steps, ns, {}, &StepWindow::startNs);
    return after != steps.begin() && ns < (after - 1)->endNs() ? &*(after - 1) : nullptr;
}

std::string_view TraceFacts::string(int32_t id) const {
    const auto at = static_cast<size_t>(id);
    return at < strings.size() ? std::string_view(strings[at]) : std::string_view();
}

const RankFacts* TraceFacts::findRank(int rank) const {
    const auto at = std::ranges::lower_bound(ranks, rank, {}, &RankFacts::rank);
    return at != ranks.end() && at->rank == rank ? &*at : nullptr;
}

const store::Collective* TraceFacts::findCollective(int64_t id) const {
    // Ids without a gap, as the collector gives them, are places.
    const auto place = collectives.empty() ? 0 : static_cast<uint64_t>(id) - static_cast<uint64_t>(collectives[0].id);
    if (place < collectives.size() && collectives[place].id == id) return &collectives[place];
    const auto at = std::ranges::lower_bound(collectives, id, {}, &store::Collective::id);
    return at != collectives.end() && at->id == id ? &*at : nullptr;
}

std::string TraceFacts::text(const std::string& key, const std::string& fallback) const {
    return meta.contains(key) ? meta.at(key) : fallback;
}

bool TraceFacts::sharesDevices() const {
    return std::ranges::any_of(ranks, &RankFacts::sharesDevice);
}

bool TraceFacts::sameHost(const std::vector<int>& wanted) const {
    const RankFacts* first = wanted.empty() ? nullptr : findRank(wanted.front());
    return std::ranges::all_of(wanted, [&](int rank) {
        const RankFacts* other = findRank(rank);
        return first != nullptr && other != nullptr && first->hostId == other->hostId;
    });
}

std::optional<int> TraceFacts::worldSize() const {
    const auto number = [this](const char* key) { return std::atoi(text(key, "0").c_str()); };
    if (const int job = number("job_world_size"); job > 0) return std::max(job, static_cast<int>(ranks.size()));
    // Importers before this key wrote the largest rank + 1.
    const int world = text("source") == "capture" || text("source").empty() ? number("world_size") : 0;
    return world > 0 ? std::optional(std::max(world, static_cast<int>(ranks.size()))) : std::nullopt;
}

namespace {

TraceFacts readAll(store::TraceReader& trace, Instances instances, bool lookedAt) {
    TraceFacts facts;
    for (const auto& [key, value] : trace.meta()) facts.meta[key] = shown(value);
    for (const std::string& text : trace.strings()) facts.strings.push_back(shown(text));
    readRanks(trace, facts);
    readClock(trace, facts);
    readCommunicators(trace, facts);
    takeInstances(std::move(instances), facts);
    if (!lookedAt) refuseBrokenReferences(trace.file(), facts);
    readSteps(trace, facts);
    readSources(trace, facts);
    dropStepsWithoutCupti(trace, facts);
    facts.end = readJobEnd(trace, facts);
    return facts;
}

}  // namespace

Instances readInstances(store::TraceReader& trace, size_t part, size_t parts) {
    if (parts < 2)
        return {trace.all<store::Collective>(), trace.all<store::CollectiveMember>(), trace.all<store::P2p>()};
    const auto rows = [&]<typename Row>(const char* key) {
        const std::string table = store::tableName<Row>();
        const int64_t last = trace.database().integer("SELECT max(" + std::string(key) + ") FROM " + table);
        // The last id of the first i parts; ids count from 1. What a damaged file has beyond is in the first or last.
        const auto endOf = [&](size_t i) -> std::optional<int64_t> {
            if (i == 0 || i == parts) return std::nullopt;
            return last <= 0 ? 0
                             : static_cast<int64_t>(static_cast<double>(last) * static_cast<double>(i) /
                                                    static_cast<double>(parts));
        };
        return trace.allBetween<Row>(key, endOf(part), endOf(part + 1));
    };
    return {rows.template operator()<store::Collective>("id"),
            rows.template operator()<store::CollectiveMember>("collective_id"),
            rows.template operator()<store::P2p>("id")};
}

TraceFacts readTraceFacts(store::TraceReader& trace) {
    return readAll(trace, readInstances(trace, 0, 1), false);
}

TraceFacts readTraceFacts(store::TraceReader& trace, Instances instances, References references) {
    return readAll(trace, std::move(instances), references == References::checked);
}

std::string jobDeath(const std::vector<store::Loss>& losses) {
    // The first kind that there is says most: of several deaths it is the one to look at.
    for (const char* kind : {"first_death", "died", "failed_exit"})
        if (const auto loss = std::ranges::find(losses, kind, &store::Loss::kind); loss != losses.end())
            return "The job died: " + loss->message + ".";
    return {};
}

std::optional<int> firstToFail(const std::vector<store::Loss>& losses) {
    const auto loss = std::ranges::find(losses, "first_death", &store::Loss::kind);
    return loss != losses.end() ? loss->rank : std::nullopt;
}

}  // namespace rankscope::facts
