// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/phase_one.h"

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <utility>

#include "analyzer/job/read_ranks.h"
#include "analyzer/job/trace_readers.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"
#include "collector/team/file_copies.h"
#include "collector/team/long_lists.h"
#include "collector/team/packing.h"
#include "collector/team/team.h"

namespace rankscope::job {
namespace {

void append(facts::Instances& all, const facts::Instances& part) {
    const auto add = [](auto& to, const auto& rows) { to.insert(to.end(), rows.begin(), rows.end()); };
    add(all.collectives, part.collectives);
    add(all.members, part.members);
    add(all.pointToPoint, part.pointToPoint);
}

/// The rows of all parts fit without being moved, where the others are as many as those of `part`, or a tenth more:
/// to count them would be to read through the tables once more.
void makeRoom(facts::Instances& part, size_t parts) {
    const auto makeFor = [parts](auto& rows) { rows.reserve(rows.size() * parts + rows.size() * parts / 10); };
    makeFor(part.collectives);
    makeFor(part.members);
    makeFor(part.pointToPoint);
}

/// Collectives for which another thread is worth its own connection to the file: it takes a millisecond or two to open,
/// and these some 5 to read (64 ranks; with more ranks both take longer).
constexpr int64_t kCollectivesAThread = 2'000;

/// All of them. `trace` is this thread's, of `database`.
facts::Instances readInstances(const std::filesystem::path& database, store::TraceReader& trace, unsigned threads) {
    const int64_t last = trace.database().integer("SELECT max(id) FROM collective");
    const auto parts = static_cast<size_t>(std::clamp<int64_t>(last / kCollectivesAThread, 1, threads));
    std::vector<std::future<facts::Instances>> others;
    for (size_t part = 1; part < parts; ++part)
        others.push_back(std::async(std::launch::async, [&database, part, parts] {
            store::TraceReader own(database, {}, store::MisplacedRows::lookedFor, store::MissingShards::elsewhere);
            return facts::readInstances(own, part, parts);
        }));
    facts::Instances all = facts::readInstances(trace, 0, parts);
    if (parts > 1) makeRoom(all, parts);
    for (std::future<facts::Instances>& other : others) append(all, other.get());
    return all;
}

/// Of a process that is alone.
void readSmallTables(const std::filesystem::path& database, PhaseOne& result, const LoadOptions& options) {
    store::TraceReader trace(database);
    result.shardOfRank = trace.shardOfRank();
    result.facts =
        facts::readTraceFacts(trace, readInstances(database, trace, team::threadsFor(options.workers, options.team)),
                              facts::References::unchecked);
    result.window = replay::replayWindowOfReplicas(trace, result.facts, options.replayed);
}

/// Of one that helps: the first process, which has read the instances, has looked at the file, too, and at what is
/// replayed.
void readSmallTables(const std::filesystem::path& database, team::Team& team, PhaseOne& result) {
    facts::Instances instances;
    team::receiveLists([&team] { return team.awaitPart(); }, team.nameOf(0), instances.collectives, instances.members,
                       instances.pointToPoint);
    store::TraceReader trace(database, {}, store::MisplacedRows::lookedFor, store::MissingShards::elsewhere);
    result.shardOfRank = trace.shardOfRank();
    result.facts = facts::readTraceFacts(trace, std::move(instances), facts::References::checked);
    result.window = team::Unpacker(team.await(), team.nameOf(0)).get<replay::ReplayWindow>();
}

/// Reads these ranks into `into`, which is ended when this returns or throws: whoever waits for a rank then wakes.
void readRanks(const std::filesystem::path& database, const PhaseOne& of,
               const std::vector<const facts::RankFacts*>& ranks, unsigned workers, const RankObserver& observer,
               ReadRanks& into) {
    struct Ended {
        ReadRanks& ranks;
        ~Ended() { ranks.end(); }
    } const ended{into};
    facts::summarizeRanks(
        database, of.facts, ranks, workers,
        [&](const facts::RankEvents& events) {
            into.put(events.rank, replay::rankTasks(events, of.facts, of.window));
            if (observer) observer(events);
        },
        [&into](facts::RankSummary summary) { into.put(std::move(summary)); });
}

std::vector<const facts::RankFacts*> shareOf(const std::vector<const facts::RankFacts*>& ranks,
                                             const std::vector<size_t>& dealt, size_t part) {
    std::vector<const facts::RankFacts*> share;
    for (size_t i = 0; i < ranks.size(); ++i)
        if (dealt[i] == part) share.push_back(ranks[i]);
    return share;
}

/// Whether the small tables were read with the help of events of all ranks.
bool tellsOfAllEvents(const facts::TraceFacts& facts) {
    return facts.end || facts.wholeRunIsOneStep || std::ranges::any_of(facts.ranks, &facts::RankFacts::cuptiTaken);
}

/// In the first process: its own part of the instances, and behind it the others'.
facts::Instances gatherInstances(store::TraceReader& trace, team::Team& team, const std::vector<int>& taking) {
    facts::Instances all = facts::readInstances(trace, 0, taking.size());
    makeRoom(all, taking.size());
    for (const int process : taking) {
        if (process == 0) continue;
        facts::Instances its;
        team::receiveLists([&] { return team.receivePartFrom(process); }, team.nameOf(process), its.collectives,
                           its.members, its.pointToPoint);
        append(all, its);
    }
    return all;
}

/// In the first process of a team. Where only it can read all events, and they are needed, it goes on alone.
void readSmallTablesOfTeam(const std::filesystem::path& database, TraceReaders& readers, const LoadOptions& options,
                           PhaseOne& result) {
    std::optional<store::TraceReader> trace;
    const auto open = [&](store::MisplacedRows misplaced) {
        trace.emplace(database, nullptr, misplaced, store::MissingShards::elsewhere);
    };
    // The shards that are here have been looked into.
    open(readers.ofShard.empty() ? store::MisplacedRows::refused : store::MisplacedRows::lookedFor);
    result.shardOfRank = trace->shardOfRank();
    facts::Instances instances = gatherInstances(*trace, *options.team, readers.taking);
    std::vector<std::string> missing = trace->missingShards();
    const auto read = [&](facts::Instances of) {
        result.facts = facts::readTraceFacts(*trace, std::move(of), facts::References::unchecked);
    };
    try {
        read(missing.empty() ? std::move(instances) : instances);
        if (!tellsOfAllEvents(result.facts)) missing.clear();
    } catch (const store::Error&) {
        if (missing.empty()) throw;
    }
    fetchShards(database, readers, missing, options);
    if (!missing.empty()) {
        open(store::MisplacedRows::refused);
        read(std::move(instances));
    }
    const bool allSeeAll = missing.empty() && std::ranges::all_of(readers.ofShard, [&](const auto& seenBy) {
                               return seenBy.second.size() == readers.taking.size();
                           });
    const bool alone = !allSeeAll && tellsOfAllEvents(result.facts);
    for (const int process : readers.taking)
        if (process != 0) options.team->sendTo(process, team::Packer()(alone).take());
    if (alone) readers.taking = {0};
    // The others look at the instances while this one looks for replicas.
    const auto tell = [&](std::string_view part) { options.team->sendToAll(part); };
    const facts::TraceFacts& facts = result.facts;
    if (!alone) team::sendLists(tell, facts.collectives.values(), facts.members.values(), facts.pointToPoint.values());
    result.window = replay::replayWindowOfReplicas(*trace, result.facts, options.replayed);
    if (!alone) tell(team::Packer()(result.window).take());
}

/// What the process knows of ranks without device activity that it has to tell of: those that it sees first.
std::map<int, facts::MemoryPeaks> memoryOfOthers(const std::filesystem::path& database, const PhaseOne& of,
                                                 const TraceReaders& readers, int process) {
    std::vector<const facts::RankFacts*> others;
    for (const facts::RankFacts& rank : of.facts.ranks) {
        if (rank.recorded) continue;
        const auto shard = of.shardOfRank.find(rank.rank);
        const auto sees = shard == of.shardOfRank.end() ? readers.ofShard.end() : readers.ofShard.find(shard->second);
        const bool isKnown = shard == of.shardOfRank.end() || sees != readers.ofShard.end();
        if (isKnown && process == (sees == readers.ofShard.end() ? 0 : sees->second.front())) others.push_back(&rank);
    }
    std::map<int, facts::MemoryPeaks> memory;
    if (others.empty()) return memory;
    store::TraceReader trace(database, {}, store::MisplacedRows::lookedFor, store::MissingShards::elsewhere);
    for (const facts::RankFacts* rank : others) memory[rank->rank] = facts::readMemoryPeaks(trace, rank->rank);
    return memory;
}

}  // namespace

PhaseOne phaseOne(const std::filesystem::path& database, const LoadOptions& options) {
    PhaseOne result;
    TraceReaders readers{{0}, {}};
    if (options.team != nullptr) readers = findReaders(database, options);
    if (readers.taking.size() > 1)
        readSmallTablesOfTeam(database, readers, options, result);
    else
        readSmallTables(database, result, options);
    const std::vector<int>& taking = result.taking = readers.taking;
    if (taking.size() < 2)  // alone it sees all
        for (const auto& [rank, file] : result.shardOfRank) readers.ofShard[file] = taking;
    const RankObserver observer = options.observer ? options.observer(result.facts) : RankObserver();
    const std::vector<const facts::RankFacts*> recorded = facts::recordedRanks(result.facts);
    const std::vector<size_t> dealt = dealRanks(database, recorded, result.shardOfRank, readers);
    const unsigned threads = team::threadsFor(options.workers, options.team);
    ReadRanks own;
    readRanks(database, result, shareOf(recorded, dealt, 0), threads, observer, own);
    for (size_t i = 0; i < recorded.size(); ++i) {
        facts::RankSummary& summary = result.ranks.emplace_back();
        replay::RankTasks& tasks = result.tasks.emplace_back();
        if (dealt[i] == 0) {
            ReadRank read = own.take(recorded[i]->rank).value();
            summary = std::move(read.summary);
            tasks = std::move(read.tasks);
            continue;
        }
        const int process = taking[dealt[i]];
        const std::string message = options.team->receiveFrom(process);
        team::Unpacker(message, options.team->nameOf(process))(summary)(tasks);
    }
    result.memoryOfOthers = memoryOfOthers(database, result, readers, 0);
    for (size_t part = 1; part < taking.size(); ++part) {
        const std::string memory = options.team->receiveFrom(taking[part]);
        result.memoryOfOthers.merge(
            team::Unpacker(memory, options.team->nameOf(taking[part])).get<std::map<int, facts::MemoryPeaks>>());
    }
    for (size_t part = 1; part < taking.size(); ++part)
        if (const std::string seen = options.team->receiveFrom(taking[part]); options.takeObserved)
            options.takeObserved(seen);
    return result;
}

std::optional<facts::TraceFacts> helpPhaseOne(const std::filesystem::path& database, team::Team& team,
                                              const PhaseOneHelp& help) {
    const auto mark = team::Unpacker(team.await(), team.nameOf(0)).get<TraceMark>();
    const bool sees = markOf(database) == mark;
    team.send(team::Packer()(sees)(sees ? shardsHere(database, mark) : std::vector<std::string>()).take());
    const auto readers = team::Unpacker(team.await(), team.nameOf(0)).get<TraceReaders>();
    const auto place = std::ranges::find(readers.taking, team.self());
    if (place == readers.taking.end()) return std::nullopt;
    const auto part = static_cast<size_t>(place - readers.taking.begin());
    {
        store::TraceReader trace(database, {}, store::MisplacedRows::lookedFor, store::MissingShards::elsewhere);
        const facts::Instances its = facts::readInstances(trace, part, readers.taking.size());
        team::sendLists([&team](std::string_view bytes) { team.send(bytes); }, its.collectives, its.members,
                        its.pointToPoint);
    }
    for (const auto& file : team::Unpacker(team.await(), team.nameOf(0)).get<std::vector<std::string>>())
        team::sendFile([&team](std::string_view bytes) { team.send(bytes); }, store::shardFolder(database) / file);
    if (team::Unpacker(team.await(), team.nameOf(0)).get<bool>()) return std::nullopt;
    PhaseOne small;
    readSmallTables(database, team, small);
    const RankObserver observer = help.observer ? help.observer(small.facts) : RankObserver();
    const std::vector<const facts::RankFacts*> recorded = facts::recordedRanks(small.facts);
    const std::vector<const facts::RankFacts*> share =
        shareOf(recorded, dealRanks(database, recorded, small.shardOfRank, readers), part);
    // What is read is sent while the next ranks are read: the first process, which has fewer of its own (dealRanks()),
    // then has taken over most of it when the last one is read. This thread sends; MPI is spoken to by one alone.
    ReadRanks own;
    const unsigned threads = team::threadsFor(help.workers, &team);
    std::future<void> reading =
        std::async(std::launch::async, [&] { readRanks(database, small, share, threads, observer, own); });
    for (const facts::RankFacts* rank : share) {
        const std::optional<ReadRank> read = own.take(rank->rank);
        if (!read) break;
        team.send(team::Packer()(read->summary)(read->tasks).take());
    }
    reading.get();
    team.send(team::Packer()(memoryOfOthers(database, small, readers, team.self())).take());
    team.send(help.give ? help.give() : std::string());
    return std::move(small.facts);
}

}  // namespace rankscope::job
