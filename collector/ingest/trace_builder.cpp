// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <set>

#include "collector/ingest/collective_matching.h"
#include "collector/ingest/first_death.h"
#include "collector/ingest/packed_ranks.h"
#include "collector/ingest/rank_sources.h"
#include "collector/ingest/shared_ranks.h"
#include "collector/ingest/step_segmentation.h"
#include "collector/ingest/trace_tables.h"
#include "collector/ingest/written_shard.h"
#include "collector/store/error.h"
#include "collector/store/shards.h"
#include "collector/store/writer.h"
#include "collector/team/packing.h"

namespace rankscope::collector {
struct TraceBuilder::State {
    /// Where a rank's recording is.
    struct Place {
        int32_t rank = 0;
        int process = 0;   ///< of the team; 0: here
        size_t index = 0;  ///< here: into `sources`
    };

    void summarizeAll();
    void shareNames(store::TraceWriter& writer, const TraceTables& tables);
    std::unique_ptr<RankRecording> translated(size_t place, const TraceTables& tables);
    void writeEvents(store::TraceWriter& writer, const TraceTables& tables);
    void writeShards(store::TraceWriter& writer, const TraceTables& tables);
    void finishShards(store::TraceWriter& writer);
    void addMissingRanks();
    void tellUnsummarised();
    void tellApart(const HostClocks& clocks);

    std::filesystem::path target;
    RunFacts facts;
    RankSources sources;
    std::vector<Place> places;  ///< by rank once finish() has begun, as summaries and names
    std::vector<RankSummary> summaries;
    std::vector<std::vector<std::string>> names;  ///< namesOf() of each rank; with a team only
    team::Team* team = nullptr;
    std::vector<store::Loss> losses;
    std::vector<ToldStack> stacks;
    std::vector<capture::HealthFile> health;
    std::vector<int32_t> missingRanks;
    std::vector<std::string> shardNames;  ///< by process; empty: no shards
    std::optional<WrittenShard> shard;    ///< of the ranks that are here
    std::map<int, std::string> otherShards;
};

void TraceBuilder::State::summarizeAll() {
    std::vector<std::vector<std::string>> ownNames(sources.size());
    const auto keepNames = [&](size_t i, RankRecording& recording) { ownNames[i] = namesOf(recording); };
    std::vector<RankSummary> own = team ? sources.prepareAll(facts.threads, facts.keepBytes, keepNames)
                                        : sources.prepareAll(facts.threads, facts.keepBytes);
    for (size_t i = 0; i < own.size(); ++i) places.push_back({own[i].rank, 0, i});
    std::ranges::stable_sort(places, {}, &Place::rank);
    summaries.resize(places.size());
    names.resize(places.size());
    for (size_t i = 0; i < places.size(); ++i) {
        if (places[i].process == 0) {
            summaries[i] = std::move(own[places[i].index]);
            names[i] = std::move(ownNames[places[i].index]);
            continue;
        }
        const std::string message = team->receiveFrom(places[i].process);
        team::Unpacker(message, team->nameOf(places[i].process))(summaries[i])(names[i]);
    }
}

/// Texts get their ids by rank, as they would be written.
void TraceBuilder::State::shareNames(store::TraceWriter& writer, const TraceTables& tables) {
    if (!team) return;
    std::vector<std::vector<RankTranslation>> ofProcess(static_cast<size_t>(team->size()));
    for (size_t i = 0; i < places.size(); ++i) {
        std::vector<int32_t> ids;
        for (const std::string& name : names[i]) ids.push_back(writer.intern(name));
        if (places[i].process == 0) continue;
        RankTranslation& to = ofProcess[static_cast<size_t>(places[i].process)].emplace_back(tables.translationOf(i));
        to.names = std::move(ids);
    }
    names.clear();
    for (int process = 1; process < team->size(); ++process)
        team->sendTo(process, team::Packer()(ofProcess[static_cast<size_t>(process)]).take());
}

std::unique_ptr<RankRecording> TraceBuilder::State::translated(size_t place, const TraceTables& tables) {
    std::unique_ptr<RankRecording> recording = sources.take(places[place].index);
    translate(tables.translationOf(place), *recording);
    return recording;
}

void TraceBuilder::State::writeEvents(store::TraceWriter& writer, const TraceTables& tables) {
    // The next rank that is here is translated while SQLite takes in this one.
    std::vector<size_t> here;
    for (size_t i = 0; i < places.size(); ++i)
        if (places[i].process == 0) here.push_back(i);
    std::future<std::unique_ptr<RankRecording>> next;
    size_t at = 0;  // into `here`
    for (size_t i = 0; i < places.size(); ++i) {
        if (places[i].process != 0) {
            const std::string message = team->receiveFrom(places[i].process);
            const auto tablesOfRank =
                team::Unpacker(message, team->nameOf(places[i].process)).get<std::vector<store::EncodedRows>>();
            for (const store::EncodedRows& rows : tablesOfRank) writer.write(rows);
            continue;
        }
        std::unique_ptr<RankRecording> recording = next.valid() ? next.get() : translated(i, tables);
        if (++at < here.size())
            next =
                std::async(std::launch::async, [this, &tables, place = here[at]] { return translated(place, tables); });
        nameTexts(writer, *recording);
        writeEventTables(writer, *recording);
    }
}

void TraceBuilder::State::writeShards(store::TraceWriter& writer, const TraceTables& tables) {
    std::vector<store::Shard> rows;
    for (size_t i = 0; i < places.size(); ++i) {
        const auto process = static_cast<size_t>(places[i].process);
        rows.push_back({places[i].rank, shardNames[process]});
        if (process != 0) {
            otherShards[places[i].process] = shardNames[process];
            continue;
        }
        const std::unique_ptr<RankRecording> recording = translated(i, tables);
        nameTexts(writer, *recording);
        if (!shard) shard.emplace(target, shardNames[0]);
        writeEventTables(shard->events(), *recording);
    }
    writer.write(std::span<const store::Shard>(rows));
    if (shard) writer.write(std::span<const store::Extent>(shard->events().extents()));
    if (team) writer.write(std::span<const store::Extent>(receiveExtents(*team, otherShards)));
}

/// Nothing is in its place until all is whole, on all hosts. Who looks between one rename and the next sees that the
/// files do not belong together.
void TraceBuilder::State::finishShards(store::TraceWriter& writer) {
    const std::vector<std::string> texts = writer.texts();
    const std::string mark = store::newShardMark();
    writer.setMeta(store::kShardsKey, mark);
    if (shard) shard->seal(mark, texts);
    writer.prepare();
    if (team) {
        sealShards(*team, otherShards, mark, texts);
        placeShards(*team, otherShards, writer.partFile());
    }
    if (shard) shard->putInPlace();
    writer.putInPlace();
}

/// Files of a user's choice may be of several runs. Two ranks that are never there at the same time tell it.
void TraceBuilder::State::tellApart(const HostClocks& clocks) {
    if (facts.source == "capture") return;                          // one run's folder
    size_t earliest = summaries.size(), latest = summaries.size();  // who ends first, who begins last
    for (size_t i = 0; i < summaries.size(); ++i) {
        if (summaries[i].firstNs > summaries[i].lastNs) continue;
        if (earliest == summaries.size() ||
            clocks.jobNs(i, summaries[i].lastNs) < clocks.jobNs(earliest, summaries[earliest].lastNs))
            earliest = i;
        if (latest == summaries.size() ||
            clocks.jobNs(i, summaries[i].firstNs) > clocks.jobNs(latest, summaries[latest].firstNs))
            latest = i;
    }
    if (earliest == summaries.size()) return;
    const int64_t apartNs =
        clocks.jobNs(latest, summaries[latest].firstNs) - clocks.jobNs(earliest, summaries[earliest].lastNs);
    // A rank that hangs stops calling long before the others' last calls; jobs that run for hours afterwards are rare.
    constexpr int64_t kLongestHangNs = 6 * int64_t{3'600'000'000'000};
    if (apartNs <= (facts.isRecorder ? kLongestHangNs : 0)) return;
    const double seconds = static_cast<double>(apartNs) / 1e9;
    losses.push_back({0,
                      "recordings_apart",
                      store::Severity::warning,
                      {},
                      "collector",
                      1,
                      {},
                      {},
                      fmt::format("rank {} begins {:.{}f} s after rank {} has ended: recordings of different runs, or "
                                  "by clocks that far apart, are no one job; import each run by itself",
                                  summaries[latest].rank, seconds, seconds < 10 ? 3 : 0, summaries[earliest].rank)});
}

void TraceBuilder::State::addMissingRanks() {
    std::set<int32_t> present;
    int32_t worldSize = facts.worldSize.value_or(-1);
    for (const RankSummary& summary : summaries) {
        present.insert(summary.rank);
        worldSize = std::max(worldSize, summary.worldSize);
    }
    // A hostile file may claim any size; a list of what is missing is of no use beyond this.
    constexpr int32_t kMostMissing = 100'000;
    for (int32_t rank = 0; rank < worldSize && missingRanks.size() < kMostMissing; ++rank) {
        if (!present.count(rank)) missingRanks.push_back(rank);
    }
    // What no file tells stays unknown: the largest rank says only that there are as many.
    if (worldSize > 0)
        facts.worldSize =
            std::max({worldSize, present.empty() ? 0 : *present.rbegin() + 1, static_cast<int32_t>(present.size())});
    for (const int32_t rank : missingRanks) {
        losses.push_back({0,
                          "missing_rank",
                          store::Severity::error,
                          rank,
                          "collector",
                          1,
                          {},
                          {},
                          fmt::format("rank {} of {} left no recording: nothing is known of it, and collectives it "
                                      "took part in are incomplete",
                                      rank, *facts.worldSize)});
    }
}

/// Ranks of a run that was to have summaries of kernels and that has none of them: their silence is no rest.
void TraceBuilder::State::tellUnsummarised() {
    if (facts.meta.contains("imported_from")) return;  // an export holds no sums of kernels
    const auto light = facts.meta.find("light");
    if (light == facts.meta.end() || light->second != "kernels") return;
    for (const RankSummary& summary : summaries) {
        if (summary.rowCounts[RankSummary::kKernelSpanTable] != 0) continue;
        losses.push_back({0,
                          "no_kernel_summaries",
                          store::Severity::warning,
                          summary.rank,
                          "cupti",
                          1,
                          {},
                          {},
                          fmt::format("nothing of rank {}'s kernels was summarised: CUPTI delivered none, so that its "
                                      "calls alone can be judged",
                                      summary.rank)});
    }
}

TraceBuilder::TraceBuilder(std::filesystem::path target, RunFacts facts) : m_state(std::make_unique<State>()) {
    m_state->target = std::move(target);
    m_state->facts = std::move(facts);
}

TraceBuilder::~TraceBuilder() = default;

void TraceBuilder::add(int32_t rank, Load load) {
    m_state->sources.add(rank, std::move(load));
}

void TraceBuilder::add(RankRecording recording) {
    m_state->sources.add(std::move(recording));
}

void TraceBuilder::shareWith(team::Team& team) {
    m_state->team = &team;
}

void TraceBuilder::addElsewhere(int32_t rank, int process) {
    m_state->places.push_back({rank, process, 0});
}

void TraceBuilder::useShards(std::vector<std::string> names) {
    m_state->shardNames = std::move(names);
}

void TraceBuilder::addLoss(store::Loss loss) {
    m_state->losses.push_back(std::move(loss));
}

void TraceBuilder::addStacks(std::vector<ToldStack> stacks) {
    m_state->stacks = std::move(stacks);
}

void TraceBuilder::addHealth(std::vector<capture::HealthFile> files) {
    m_state->health = std::move(files);
}

void TraceBuilder::finish() {
    State& state = *m_state;
    store::TraceWriter writer(state.target);  // first, so that a folder that cannot be written is known before the work
    state.summarizeAll();
    state.addMissingRanks();
    state.tellUnsummarised();

    const CommunicatorSet communicators(state.summaries);
    const InstanceGroups collectives = groupCollectives(state.summaries, communicators);
    const std::vector<MessagePair> messages = pairMessages(state.summaries, communicators);
    const HostClocks clocks = alignClocks(state.summaries, collectives, messages);
    state.tellApart(clocks);
    const std::vector<int64_t> communicatorIds = orderCommunicators(state.summaries, communicators, clocks);
    const RowIds ids(state.summaries);
    const JoinedRanks ranks{state.summaries, communicators, clocks, ids, communicatorIds};

    const TraceTables tables(ranks);
    tables.writeIdentities(writer, state.missingRanks);
    tables.writeStacks(writer, state.stacks, state.facts.virtualGpu);
    tables.writeHealth(writer, state.health, state.facts.virtualGpu);
    state.shareNames(writer, tables);
    if (state.shardNames.empty())
        state.writeEvents(writer, tables);
    else
        state.writeShards(writer, tables);

    MatchedCollectives matchedCollectives = matchCollectives(ranks, collectives);
    for (store::Loss& loss : tellFailures(ranks, matchedCollectives.disagreeing, state.facts.exitStatus.value_or(0),
                                          state.facts.stopSignal.value_or(0)))
        state.losses.push_back(std::move(loss));
    MatchedMessages matchedMessages = matchMessages(ranks, messages);
    Segmentation segmentation;
    if (state.facts.isRecorder) {
        std::erase_if(matchedCollectives.losses,
                      [](const store::Loss& loss) { return loss.severity != store::Severity::error; });
        matchedMessages.losses.clear();
        segmentation.source = "none";
    } else {
        segmentation = findSteps(state.summaries, communicators, {collectives, messages}, clocks);
    }
    matchedCollectives.losses.insert(matchedCollectives.losses.end(), segmentation.losses.begin(),
                                     segmentation.losses.end());
    placeInSteps(segmentation.steps, matchedCollectives);
    writeMatches(writer, matchedCollectives, matchedMessages, segmentation);
    tables.writeLosses(writer, state.losses, matchedCollectives.losses, matchedMessages.losses);
    tables.writeMeta(writer, state.facts, segmentation.source);
    if (!state.shardNames.empty()) return state.finishShards(writer);
    writer.finish();
    removeShards(state.target);
}

}  // namespace rankscope::collector
