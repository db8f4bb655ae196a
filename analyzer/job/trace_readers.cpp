// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/trace_readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>

#include "analyzer/text/lists.h"
#include "collector/store/error.h"
#include "collector/store/folder_access.h"
#include "collector/store/reader.h"
#include "collector/team/file_copies.h"
#include "collector/team/packing.h"
#include "collector/team/team.h"

namespace rankscope::job {
namespace {

/// What it takes the first process to receive what another has read of a rank, as a share of what one thread takes to
/// read one: between 0.05, where all ranks are replayed (64 and 256), and 0.03, where a few stand for the others
/// (1,024), of jobs of the reference harness. Where it is off, some process is ready later, and nothing else changes.
constexpr double kTakeOver = 0.04;

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

}  // namespace

TraceMark markOf(const std::filesystem::path& database) {
    TraceMark mark{.ofShards = store::shardMarkIn(database, store::kShardsKey)};
    return mark.ofShards.empty() ? markOfBytes(database) : mark;
}

std::vector<std::string> shardsHere(const std::filesystem::path& database, const TraceMark& mark) {
    if (mark.ofShards.empty()) return {};
    store::TraceReader trace(database, {}, store::MisplacedRows::refused, store::MissingShards::elsewhere);
    std::set<std::string> here;
    for (const auto& [rank, file] : trace.shardOfRank()) here.insert(file);
    for (const std::string& file : trace.missingShards()) here.erase(file);
    return {here.begin(), here.end()};
}

TraceReaders findReaders(const std::filesystem::path& database, const LoadOptions& options) {
    team::Team& team = *options.team;
    const TraceMark mark = markOf(database);
    const std::vector<std::string> own = shardsHere(database, mark);
    team.sendToAll(team::Packer()(mark).take());
    TraceReaders readers{{0}, {}, team::threadsFor(options.workers, &team)};
    for (const std::string& shard : own) readers.ofShard[shard].push_back(0);
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

void fetchShards(const std::filesystem::path& database, const TraceReaders& readers,
                 const std::vector<std::string>& wanted, const LoadOptions& options) {
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
            try {
                store::makeFolderInside(folder);
            } catch (const std::filesystem::filesystem_error& error) {
                throw store::Error(folder.string(), "cannot make the folder: " + error.code().message(),
                                   "where a job failed, or has no steps, its shards are copied into it");
            }
            team::receiveFile([&] { return team.receivePartFrom(process); }, team.nameOf(process), folder / file);
        }
    }
    size_t copied = 0;
    for (const auto& [process, files] : from) copied += files.size();
    if (copied > 0 && options.tell)
        options.tell(
            fmt::format("copied {} of other hosts here: where a job failed, or has no steps, the events of all "
                        "ranks are looked at together",
                        text::countedText(copied, "shard")));
}

std::vector<size_t> dealRanks(const std::filesystem::path& database, const std::vector<const facts::RankFacts*>& ranks,
                              const std::map<int32_t, std::string>& shardOfRank, const TraceReaders& readers) {
    std::vector<double> load(readers.taking.size(), 0);  // in ranks that it reads
    std::vector<size_t> dealt;
    for (const facts::RankFacts* rank : ranks) {
        const auto shard = shardOfRank.find(rank->rank);
        std::optional<size_t> least;
        for (size_t part = 0; part < load.size(); ++part) {
            if (least && load[part] >= load[*least]) continue;
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
        load[*least] += 1;
        if (*least != 0) load[0] += kTakeOver * readers.threads;
        dealt.push_back(*least);
    }
    return dealt;
}

}  // namespace rankscope::job
