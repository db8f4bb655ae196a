// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "collector/ingest/collective_matching.h"
#include "collector/ingest/first_death.h"
#include "collector/ingest/rank_preparation.h"
#include "collector/ingest/step_segmentation.h"
#include "collector/ingest/trace_tables.h"
#include "collector/store/error.h"
#include "collector/store/writer.h"

namespace rankscope::collector {
namespace {

uint64_t bytesOf(const RankRecording& recording) {
    const auto bytes = [](const auto& rows) { return rows.capacity() * sizeof(rows[0]); };
    return bytes(recording.kernels) + bytes(recording.memcpys) + bytes(recording.memsets) + bytes(recording.apiCalls) +
           bytes(recording.synchronizations) + bytes(recording.cudaEvents) + bytes(recording.allocations) +
           bytes(recording.nvtx) + bytes(recording.ncclCalls) + bytes(recording.proxyOps) +
           bytes(recording.kernelSummaries) + bytes(recording.kernelSpans) + bytes(recording.counters);
}

}  // namespace

struct TraceBuilder::State {
    struct Source {
        int32_t rank = 0;
        Load load;
        std::unique_ptr<RankRecording> kept;  ///< prepared, or not yet prepared when `ready` is false
        bool ready = false;
        bool mustKeep = false;  ///< there is nothing to load it from again
    };

    void prepareAll();
    void prepareOne(Source& source, RankSummary& summary);
    std::unique_ptr<RankRecording> take(Source& source);
    void writeEvents(store::TraceWriter& writer, const TraceTables& tables);
    void addMissingRanks();
    void tellUnsummarised();
    void tellApart(const HostClocks& clocks);

    std::filesystem::path target;
    RunFacts facts;
    std::vector<Source> sources;
    std::vector<RankSummary> summaries;
    std::vector<store::Loss> losses;
    std::vector<ToldStack> stacks;
    std::vector<capture::HealthFile> health;
    std::vector<int32_t> missingRanks;
    std::atomic<uint64_t> keptBytes{0};
};

void TraceBuilder::State::prepareOne(Source& source, RankSummary& summary) {
    std::unique_ptr<RankRecording> recording =
        source.kept ? std::move(source.kept) : std::make_unique<RankRecording>(source.load());
    recording->rank = source.rank;
    prepare(*recording);
    summary = summarize(*recording);
    const uint64_t bytes = bytesOf(*recording);
    if (!source.mustKeep && keptBytes.fetch_add(bytes) + bytes > facts.keepBytes) {
        keptBytes -= bytes;
        return;
    }
    source.kept = std::move(recording);
    source.ready = true;
}

/// Ranks side by side. The order in which threads take them changes nothing but which recordings stay in memory.
void TraceBuilder::State::prepareAll() {
    std::stable_sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) { return a.rank < b.rank; });
    summaries.resize(sources.size());
    std::atomic<size_t> next{0};
    std::mutex errorLock;
    std::exception_ptr error;
    const auto work = [&] {
        for (size_t i = next++; i < sources.size(); i = next++) {
            try {
                prepareOne(sources[i], summaries[i]);
            } catch (...) {
                const std::lock_guard lock(errorLock);
                if (!error) error = std::current_exception();
                next = sources.size();
            }
        }
    };
    const size_t wanted = facts.threads ? facts.threads : std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> threads;
    for (size_t i = 1; i < std::min(wanted, sources.size()); ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    if (error) std::rethrow_exception(error);
}

std::unique_ptr<RankRecording> TraceBuilder::State::take(Source& source) {
    if (source.ready) return std::move(source.kept);
    auto recording = std::make_unique<RankRecording>(source.load());
    recording->rank = source.rank;
    prepare(*recording);
    return recording;
}

void TraceBuilder::State::writeEvents(store::TraceWriter& writer, const TraceTables& tables) {
    // The next rank is translated while SQLite takes in this one.
    const auto translated = [this, &tables](size_t i) {
        std::unique_ptr<RankRecording> recording = take(sources[i]);
        tables.translate(i, *recording);
        return recording;
    };
    std::future<std::unique_ptr<RankRecording>> next;
    for (size_t i = 0; i < sources.size(); ++i) {
        std::unique_ptr<RankRecording> recording = next.valid() ? next.get() : translated(i);
        if (i + 1 < sources.size()) next = std::async(std::launch::async, translated, i + 1);
        try {
            writeRecording(writer, *recording);
        } catch (...) {
            if (next.valid()) next.wait();
            throw;
        }
    }
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
    State::Source& source = m_state->sources.emplace_back();
    source.rank = rank;
    source.load = std::move(load);
}

void TraceBuilder::add(RankRecording recording) {
    State::Source& source = m_state->sources.emplace_back();
    source.rank = recording.rank;
    source.kept = std::make_unique<RankRecording>(std::move(recording));
    source.mustKeep = true;
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
    state.prepareAll();
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
    state.writeEvents(writer, tables);

    MatchedCollectives matchedCollectives = matchCollectives(ranks, collectives);
    for (store::Loss& loss : tellFailures(ranks, matchedCollectives.disagreeing, state.facts.exitStatus.value_or(0)))
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
    writer.finish();
}

}  // namespace rankscope::collector
