// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/phase_one.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include "analyzer/text/lists.h"
#include "collector/store/error.h"
#include "collector/store/folder_access.h"
#include "collector/store/reader.h"
#include "collector/team/file_copies.h"
#include "collector/team/long_lists.h"
#include "collector/team/packing.h"
#include "collector/team/team.h"

namespace rankscope::job {
namespace {

/// Says whether two processes have the same trace.db before them: each writing of one changes its first page or its
/// length, and a file of another run differs in both. With shards each host has a copy of what was collected, and
/// results are kept in the first process's alone: there it is the mark of the collection.
struct TraceMark {
    uint64_t bytes = 0;
    uint64_t hash = 0;
    std::string ofShards;
    bool operator==(const TraceMark&) const = default;
};

template <typename Visit>
void forEachField(TraceMark& value, const Visit& visit) {
    auto& [bytes, hash, ofShards] = value;
    visit(bytes, hash, ofShards);
}

/// A trace.db as a process sees it.
struct SeenTrace {
    TraceMark mark;
    std::vector<std::string> shards;  // that are there
};

/// The same for a team.
struct Readers {
    std::vector<int> taking;                          // processes that see the trace.db
    std::map<std::string, std::vector<int>> ofShard;  // those that see a shard
};

template <typename Visit>
void forEachField(Readers& value, const Visit& visit) {
    auto& [taking, ofShard] = value;
    visit(taking, ofShard);
}

TraceMark markOfBytes(const std::filesystem::path& database) {
    constexpr std::streamoff kLooked = 1 << 16;  // at either end: the schema, and the last table's rows
    std::error_code ignored;
    TraceMark mark;
    mark.bytes = std::filesystem::file_size(database, ignored);
    if (ignored) return {};
    std::ifstream file(database, std::ios::binary);
    std::string part(kLooked, '\0');
    mark.hash = 0xcbf29ce484222325u;  // FNV-1a
    for (const std::streamoff at : {std::streamoff{0}, static_cast<std::streamoff>(mark.bytes) - kLooked}) {
        file.clear();
        file.seekg(std::max<std::streamoff>(0, at)).read(part.data(), kLooked);
        for (const char byte : std::string_view(part).substr(0, static_cast<size_t>(file.gcount())))
            mark.hash = (mark.hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
    }
    return mark;
}

/// Nothing of a file that is not there, or no trace.db.
SeenTrace lookAt(const std::filesystem::path& database) {
    std::error_code ignored;
    if (!std::filesystem::exists(database, ignored)) return {};
    try {
        store::TraceReader trace(database, {}, store::MisplacedRows::kept, store::MissingShards::elsewhere);
        if (trace.shardOfRank().empty()) return {markOfBytes(database), {}};
        SeenTrace seen{{.ofShards = trace.meta(store::kShardsKey, "")}, {}};
        std::set<std::string> there;
        for (const auto& [rank, file] : trace.shardOfRank()) there.insert(file);
        for (const std::string& file : trace.missingShards()) there.erase(file);
        seen.shards.assign(there.begin(), there.end());
        return seen;
    } catch (const store::Error&) {
        return {};
    }
}

/// `instances`: none where nobody else has read them.
void readSmallTables(const std::filesystem::path& database, PhaseOne& result,
                     std::optional<facts::Instances> instances = {}, const replay::ReplayLimits& limits = {}) {
    // The first process, which has read them, has looked at the file, too.
    store::TraceReader trace(
        database, {}, instances ? store::MisplacedRows::lookedFor : store::MisplacedRows::refused,
        result.taking.size() > 1 || instances ? store::MissingShards::elsewhere : store::MissingShards::refused);
    result.shardOfRank = trace.shardOfRank();
    result.facts = instances ? facts::readTraceFacts(trace, *std::move(instances)) : facts::readTraceFacts(trace);
    result.window = replay::replayWindowOfReplicas(trace, result.facts, limits);
}

/// What comes of the ranks that a process takes.
struct Taken {
    std::vector<facts::RankSummary> summaries;
    std::map<int, replay::RankTasks> tasks;
};

Taken take(const std::filesystem::path& database, const PhaseOne& of, const std::vector<const facts::RankFacts*>& ranks,
           unsigned workers, const RankObserver& observer) {
    Taken taken;
    std::mutex mutex;  // guards the tasks, which the workers fill
    taken.summaries = facts::summarizeRanks(database, of.facts, ranks, workers, [&](const facts::RankEvents& events) {
        replay::RankTasks tasks = replay::rankTasks(events, of.facts, of.window);
        if (observer) observer(events);
        const std::lock_guard lock(mutex);
        taken.tasks.emplace(events.rank, std::move(tasks));
    });
    return taken;
}

std::vector<const facts::RankFacts*> shareOf(const std::vector<const facts::RankFacts*>& ranks,
                                             const std::vector<size_t>& dealt, size_t part) {
    std::vector<const facts::RankFacts*> share;
    for (size_t i = 0; i < ranks.size(); ++i)
        if (dealt[i] == part) share.push_back(ranks[i]);
    return share;
}

/// Which of `taking` reads each rank: of those that see its shard the one that has fewest, so that neighbours, which
/// are alike, are spread, and all get about as much to do. Throws store::Error where nobody sees it.
std::vector<size_t> deal(const std::filesystem::path& database, const std::vector<const facts::RankFacts*>& ranks,
                         const std::map<int32_t, std::string>& shardOfRank, const Readers& readers) {
    std::vector<size_t> count(readers.taking.size(), 0), dealt;
    for (const facts::RankFacts* rank : ranks) {
        const auto shard = shardOfRank.find(rank->rank);
        std::optional<size_t> least;
        for (size_t part = 0; part < count.size(); ++part) {
            if (least && count[part] >= count[*least]) continue;
            if (shard != shardOfRank.end()) {
                const auto sees = readers.ofShard.find(shard->second);
                if (sees == readers.ofShard.end() || !text::contains(sees->second, readers.taking[part])) continue;
            }
            least = part;
        }
        if (!least)
            throw store::Error((store::shardFolder(database) / shard->second).string(),
                               fmt::format("no process sees this file, which holds the events of rank {}{}", rank->rank,
                                           rank->host.empty() ? "" : " (" + rank->host + ")"),
                               "start a process on each of the job's hosts, or copy the file here");
        ++count[*least];
        dealt.push_back(*least);
    }
    return dealt;
}

/// Who takes part: the first process, and those that see what it sees.
Readers findReaders(const std::filesystem::path& database, const LoadOptions& options) {
    team::Team& team = *options.team;
    const SeenTrace own = lookAt(database);
    team.sendToAll(team::Packer()(own.mark).take());
    Readers readers{{0}, {}};
    for (const std::string& shard : own.shards) readers.ofShard[shard].push_back(0);
    for (int process = 1; process < team.size(); ++process) {
        bool sees = false;
        std::vector<std::string> shards;
        const std::string answer = team.receiveFrom(process);
        team::Unpacker(answer, team.nameOf(process))(sees)(shards);
        if (!sees) continue;
        readers.taking.push_back(process);
        for (const std::string& shard : shards) readers.ofShard[shard].push_back(process);
    }
    team.sendToAll(team::Packer()(readers).take());
    const auto idle = static_cast<size_t>(team.size()) - readers.taking.size();
    if (idle > 0 && options.tell)
        options.tell(fmt::format("{} of {} processes do not see this {}, and have no share in the work", idle,
                                 team.size(), database.string()));
    return readers;
}

/// Has the shards that the first process does not see copied to it. `wanted`: it does.
void fetchShards(const std::filesystem::path& database, const Readers& readers, const std::vector<std::string>& wanted,
                 const LoadOptions& options) {
    team::Team& team = *options.team;
    std::map<int, std::vector<std::string>> from;
    for (const std::string& file : wanted)
        if (const auto sees = readers.ofShard.find(file); sees != readers.ofShard.end())
            from[sees->second.front()].push_back(file);
    for (const int process : readers.taking) {
        if (process == 0) continue;
        team.sendTo(process, team::Packer()(from[process]).take());
        for (const std::string& file : from[process]) {
            const std::filesystem::path folder = store::shardFolder(database);
            store::makeFolderInside(folder);
            std::string part;
            team::receiveFile([&] { return std::string_view(part = team.receiveFrom(process)); }, team.nameOf(process),
                              folder / file);
        }
    }
    if (!wanted.empty() && options.tell)
        options.tell(
            fmt::format("copied {} of other hosts here, as the end of a failed job and a job without steps "
                        "need them",
                        text::countedText(wanted.size(), "shard")));
}

/// Whether the small tables were read with the help of events of all ranks.
bool tellsOfAllEvents(const facts::TraceFacts& facts) {
    return facts.end || facts.wholeRunIsOneStep || std::ranges::any_of(facts.ranks, &facts::RankFacts::cuptiTaken);
}

/// In the first process of a team. Where only it can read all events, and they are needed, it goes on alone.
void readSmallTablesOfTeam(const std::filesystem::path& database, Readers& readers, const LoadOptions& options,
                           PhaseOne& result) {
    std::vector<std::string> missing;
    try {
        readSmallTables(database, result, {}, options.replayed);
    } catch (const store::Error&) {
        missing = store::TraceReader(database, {}, store::MisplacedRows::kept, store::MissingShards::elsewhere)
                      .missingShards();
        if (missing.empty()) throw;
    }
    fetchShards(database, readers, missing, options);
    if (!missing.empty()) readSmallTables(database, result, {}, options.replayed);
    const bool allSeeAll = missing.empty() && std::ranges::all_of(readers.ofShard, [&](const auto& seenBy) {
                               return seenBy.second.size() == readers.taking.size();
                           });
    const bool alone = !allSeeAll && tellsOfAllEvents(result.facts);
    for (const int process : readers.taking)
        if (process != 0) options.team->sendTo(process, team::Packer()(alone).take());
    if (alone) readers.taking = {0};
}

facts::Instances receiveInstances(team::Team& team) {
    facts::Instances instances;
    team::receiveLists([&team] { return team.awaitPart(); }, team.nameOf(0), instances.collectives, instances.members,
                       instances.pointToPoint);
    return instances;
}

}  // namespace

PhaseOne phaseOne(const std::filesystem::path& database, const LoadOptions& options) {
    PhaseOne result;
    Readers readers{{0}, {}};
    if (options.team != nullptr) readers = findReaders(database, options);
    if (readers.taking.size() > 1) {
        result.taking = readers.taking;  // which tells that shards may be elsewhere
        readSmallTablesOfTeam(database, readers, options, result);
    } else {
        readSmallTables(database, result, {}, options.replayed);
    }
    const std::vector<int>& taking = result.taking = readers.taking;
    if (taking.size() < 2)  // alone it sees all
        for (const auto& [rank, file] : result.shardOfRank) readers.ofShard[file] = taking;
    if (taking.size() > 1)
        team::sendLists([&](std::string_view part) { options.team->sendToAll(part); }, result.facts.collectives,
                        result.facts.members, result.facts.pointToPoint);
    const RankObserver observer = options.observer ? options.observer(result.facts) : RankObserver();
    const std::vector<const facts::RankFacts*> recorded = facts::recordedRanks(result.facts);
    const std::vector<size_t> dealt = deal(database, recorded, result.shardOfRank, readers);
    const unsigned threads =
        options.workers == 0 && options.team != nullptr ? options.team->threads() : options.workers;
    Taken own = take(database, result, shareOf(recorded, dealt, 0), threads, observer);
    size_t next = 0;  // of the own ones
    for (size_t i = 0; i < recorded.size(); ++i) {
        facts::RankSummary& summary = result.ranks.emplace_back();
        replay::RankTasks& tasks = result.tasks.emplace_back();
        if (dealt[i] == 0) {
            summary = std::move(own.summaries[next++]);
            tasks = std::move(own.tasks.at(recorded[i]->rank));
            continue;
        }
        const int process = taking[dealt[i]];
        const std::string message = options.team->receiveFrom(process);
        team::Unpacker(message, options.team->nameOf(process))(summary)(tasks);
    }
    for (size_t part = 1; part < taking.size(); ++part)
        if (const std::string seen = options.team->receiveFrom(taking[part]); options.takeObserved)
            options.takeObserved(seen);
    return result;
}

std::optional<facts::TraceFacts> helpPhaseOne(const std::filesystem::path& database, team::Team& team,
                                              const PhaseOneHelp& help) {
    const auto mark = team::Unpacker(team.await(), team.nameOf(0)).get<TraceMark>();
    const SeenTrace seen = lookAt(database);
    team.send(team::Packer()(seen.mark == mark)(seen.shards).take());
    const auto readers = team::Unpacker(team.await(), team.nameOf(0)).get<Readers>();
    const auto place = std::ranges::find(readers.taking, team.self());
    if (place == readers.taking.end()) return std::nullopt;
    const auto part = static_cast<size_t>(place - readers.taking.begin());
    for (const auto& file : team::Unpacker(team.await(), team.nameOf(0)).get<std::vector<std::string>>())
        team::sendFile([&team](std::string_view bytes) { team.send(bytes); }, store::shardFolder(database) / file);
    if (team::Unpacker(team.await(), team.nameOf(0)).get<bool>()) return std::nullopt;
    PhaseOne small;
    readSmallTables(database, small, receiveInstances(team));
    const RankObserver observer = help.observer ? help.observer(small.facts) : RankObserver();
    const std::vector<const facts::RankFacts*> recorded = facts::recordedRanks(small.facts);
    const std::vector<const facts::RankFacts*> share =
        shareOf(recorded, deal(database, recorded, small.shardOfRank, readers), part);
    Taken own = take(database, small, share, help.workers == 0 ? team.threads() : help.workers, observer);
    for (size_t i = 0; i < share.size(); ++i) {
        team.send(team::Packer()(own.summaries[i])(own.tasks.at(share[i]->rank)).take());
        own.summaries[i] = {};
        own.tasks.erase(share[i]->rank);
    }
    team.send(help.give ? help.give() : std::string());
    return std::move(small.facts);
}

}  // namespace rankscope::job
