// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/phase_one.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>

#include "collector/store/reader.h"
#include "collector/team/long_lists.h"
#include "collector/team/packing.h"
#include "collector/team/team.h"

namespace rankscope::job {
namespace {

/// Says whether two processes have the same trace.db before them: each writing of one changes its first page or its
/// length, and a file of another run differs in both.
struct TraceMark {
    uint64_t bytes = 0;
    uint64_t hash = 0;
    bool operator==(const TraceMark&) const = default;
};

TraceMark markOf(const std::filesystem::path& database) {
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

/// `instances`: none where nobody else has read them.
void readSmallTables(const std::filesystem::path& database, PhaseOne& result,
                     std::optional<facts::Instances> instances = {}, const replay::ReplayLimits& limits = {}) {
    // The first process, which has read them, has looked at the file, too.
    store::TraceReader trace(database, {}, instances ? store::MisplacedRows::lookedFor : store::MisplacedRows::refused);
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

/// Every so many-th rank. Neighbours do much the same, so that all get about as much to do.
std::vector<const facts::RankFacts*> shareOf(const std::vector<const facts::RankFacts*>& ranks, size_t part,
                                             size_t parts) {
    std::vector<const facts::RankFacts*> share;
    for (size_t i = part; i < ranks.size(); i += parts) share.push_back(ranks[i]);
    return share;
}

/// Who takes part: the first process, and those that see what it sees.
std::vector<int> findHelpers(const std::filesystem::path& database, const LoadOptions& options) {
    team::Team& team = *options.team;
    team.sendToAll(team::Packer()(markOf(database)).take());
    std::vector<int> taking{0};
    for (int process = 1; process < team.size(); ++process)
        if (const std::string answer = team.receiveFrom(process);
            team::Unpacker(answer, team.nameOf(process)).get<bool>())
            taking.push_back(process);
    team.sendToAll(team::Packer()(taking).take());
    const auto idle = static_cast<size_t>(team.size()) - taking.size();
    if (idle > 0 && options.tell)
        options.tell(fmt::format("{} of {} processes do not see this {}, and have no share in the work", idle,
                                 team.size(), database.string()));
    return taking;
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
    if (options.team != nullptr) result.taking = findHelpers(database, options);
    const std::vector<int>& taking = result.taking;
    readSmallTables(database, result, {}, options.replayed);
    if (taking.size() > 1)
        team::sendLists([&](std::string_view part) { options.team->sendToAll(part); }, result.facts.collectives,
                        result.facts.members, result.facts.pointToPoint);
    const RankObserver observer = options.observer ? options.observer(result.facts) : RankObserver();
    const std::vector<const facts::RankFacts*> recorded = facts::recordedRanks(result.facts);
    const unsigned threads =
        options.workers == 0 && options.team != nullptr ? options.team->threads() : options.workers;
    Taken own = take(database, result, shareOf(recorded, 0, taking.size()), threads, observer);
    for (size_t i = 0; i < recorded.size(); ++i) {
        facts::RankSummary& summary = result.ranks.emplace_back();
        replay::RankTasks& tasks = result.tasks.emplace_back();
        const size_t part = i % taking.size();
        if (part == 0) {
            summary = std::move(own.summaries[i / taking.size()]);
            tasks = std::move(own.tasks.at(recorded[i]->rank));
            continue;
        }
        const std::string message = options.team->receiveFrom(taking[part]);
        team::Unpacker(message, options.team->nameOf(taking[part]))(summary)(tasks);
    }
    for (size_t part = 1; part < taking.size(); ++part)
        if (const std::string seen = options.team->receiveFrom(taking[part]); options.takeObserved)
            options.takeObserved(seen);
    return result;
}

std::optional<facts::TraceFacts> helpPhaseOne(const std::filesystem::path& database, team::Team& team,
                                              const PhaseOneHelp& help) {
    const auto mark = team::Unpacker(team.await(), team.nameOf(0)).get<TraceMark>();
    team.send(team::Packer()(markOf(database) == mark).take());
    const auto taking = team::Unpacker(team.await(), team.nameOf(0)).get<std::vector<int>>();
    const auto place = std::ranges::find(taking, team.self());
    if (place == taking.end()) return std::nullopt;
    const auto part = static_cast<size_t>(place - taking.begin());
    PhaseOne small;
    readSmallTables(database, small, receiveInstances(team));
    const RankObserver observer = help.observer ? help.observer(small.facts) : RankObserver();
    const std::vector<const facts::RankFacts*> share = shareOf(facts::recordedRanks(small.facts), part, taking.size());
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
