// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/phase_one.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "collector/store/reader.h"

namespace rankscope::facts {

std::vector<RankSummary> summarizeRanks(const std::filesystem::path& trace, const TraceFacts& facts, unsigned workers,
                                        const std::function<void(const RankEvents&)>& visit) {
    std::vector<const RankFacts*> recorded;
    for (const RankFacts& rank : facts.ranks)
        if (rank.recorded) recorded.push_back(&rank);
    std::vector<RankSummary> summaries(recorded.size());
    if (recorded.empty()) return summaries;
    if (workers == 0) workers = std::max(1u, std::thread::hardware_concurrency());
    workers = std::min<unsigned>(workers, static_cast<unsigned>(recorded.size()));

    std::atomic<size_t> next{0};
    std::vector<std::exception_ptr> failures(workers);
    const auto work = [&](unsigned worker) {
        try {
            store::TraceReader reader(trace);
            for (size_t i = next++; i < recorded.size(); i = next++) {
                RankEvents events = readRankEvents(reader, facts, recorded[i]->rank);
                if (visit) visit(events);
                summaries[i] = summarize(std::move(events), *recorded[i]);
            }
        } catch (...) {
            failures[worker] = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> threads;
        for (unsigned worker = 1; worker < workers; ++worker) threads.emplace_back(work, worker);
        work(0);
    }
    for (const std::exception_ptr& failure : failures)
        if (failure) std::rethrow_exception(failure);
    return summaries;
}

}  // namespace rankscope::facts
