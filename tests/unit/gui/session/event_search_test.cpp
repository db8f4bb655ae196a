// SPDX-License-Identifier: Apache-2.0
#include "gui/session/event_search.h"

#include <gtest/gtest.h>

#include <random>

#include "gui/session/event_names.h"
#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

using test::kGoOn;
using test::SmallRun;

struct Loaded {
    SmallRun file;
    std::shared_ptr<const RunInfo> run = file.info();
    std::vector<RankTracksPtr> tracks = file.tracks(*run);

    SearchResult search(const SearchRequest& request) const { return searchEvents(request, *run, tracks, kGoOn); }
    size_t count(const SearchRequest& request) const { return search(request).found; }
};

SearchRequest named(std::string pattern) {
    SearchRequest request;
    request.pattern = std::move(pattern);
    return request;
}

TEST(EventSearch, FindsEveryKindOfEventByItsName) {
    const Loaded loaded;
    EXPECT_EQ(loaded.count(named("sgemm")), 4u);
    EXPECT_EQ(loaded.count(named("allreduce")), 2u);
    EXPECT_EQ(loaded.count(named("all_reduce")), 2u);  // the calls on the host
    EXPECT_EQ(loaded.count(named("host to device")), 2u);
    EXPECT_EQ(loaded.count(named("^step 0$")), 2u);
    EXPECT_EQ(loaded.count(named("^forward$")), 2u);
    EXPECT_EQ(loaded.count(named("cudaLaunch")), 6u);
    EXPECT_EQ(loaded.count(named("")), 2u * (3 + 1 + 4 + 1 + 1 + 1));
    EXPECT_EQ(loaded.count(named("no such name")), 0u);
}

TEST(EventSearch, FiltersByDurationRankClassAndTime) {
    const Loaded loaded;
    SearchRequest request = named("gemm");
    request.duration = parseDuration("> 100 us").value;
    EXPECT_EQ(loaded.count(request), 1u);
    request = named("gemm");
    request.ranks = {{1, 1}};
    EXPECT_EQ(loaded.count(request), 2u);
    for (const auto& [wanted, expected] : std::vector<std::pair<EventClass, size_t>>{{EventClass::compute, 4},
                                                                                     {EventClass::communication, 2},
                                                                                     {EventClass::memory, 2},
                                                                                     {EventClass::ncclCalls, 2},
                                                                                     {EventClass::cudaCalls, 8},
                                                                                     {EventClass::nvtx, 2},
                                                                                     {EventClass::steps, 2},
                                                                                     {EventClass::any, 22}}) {
        request = named("");
        request.events = wanted;
        EXPECT_EQ(loaded.count(request), expected) << static_cast<int>(wanted);
    }
    request = named("gemm");
    request.within = TimeRange{190'000, 260'000};
    EXPECT_EQ(loaded.count(request), 4u);
    request.within = TimeRange{200'000, 250'000};
    EXPECT_EQ(loaded.count(request), 0u);
}

TEST(EventSearch, SortsByAnyColumnBothWays) {
    const Loaded loaded;
    const auto key = [&](SearchOrder order, const SearchHit& hit) -> std::string {
        const auto padded = [](int64_t number) {
            return std::string(20 - std::to_string(number).size(), '0') + std::to_string(number);
        };
        switch (order) {
            case SearchOrder::start:
                return padded(hit.event.startNs);
            case SearchOrder::duration:
                return padded(hit.event.durNs);
            case SearchOrder::name:
                return eventName(*loaded.run, hit.table, hit.event);
            case SearchOrder::rank:
                return padded(hit.ref.rank);
            case SearchOrder::lane:
                return padded(hit.ref.lane);
        }
        return {};
    };
    for (const SearchOrder order :
         {SearchOrder::start, SearchOrder::duration, SearchOrder::name, SearchOrder::rank, SearchOrder::lane}) {
        for (const bool descending : {false, true}) {
            SearchRequest request = named("");
            request.order = order;
            request.descending = descending;
            const SearchResult result = loaded.search(request);
            ASSERT_EQ(result.hits.size(), 22u);
            for (size_t i = 1; i < result.hits.size(); ++i) {
                const std::string before = key(order, result.hits[i - 1]), after = key(order, result.hits[i]);
                EXPECT_TRUE(descending ? before >= after : before <= after)
                    << static_cast<int>(order) << " " << before << " " << after;
            }
        }
    }
}

TEST(EventSearch, AWrongExpressionIsSaid) {
    const SearchResult result = Loaded().search(named("gemm("));
    EXPECT_NE(result.error, "");
    EXPECT_TRUE(result.hits.empty());
    EXPECT_FALSE(result.cancelled);
}

TEST(EventSearch, CancelEndsIt) {
    const Loaded loaded;
    const std::atomic<bool> cancelled{true};
    EXPECT_TRUE(searchEvents(named("gemm"), *loaded.run, loaded.tracks, cancelled).cancelled);
}

// A rank of one lane with `events` kernels of random lengths, names 1 and 2.
RankTracksPtr randomRank(size_t events) {
    std::mt19937 random(11);
    auto tracks = std::make_shared<RankTracks>();
    Track track;
    int64_t now = 0;
    for (uint32_t i = 0; i < events; ++i) {
        const int64_t duration = 1 + static_cast<int64_t>(random() % 5000);
        track.add({now, duration, 1 + i % 2, i, EventKind::compute});
        now += duration + 1;
    }
    track.finish();
    Lane lane{LaneKind::stream, "stream 7", {}};
    lane.parts.push_back({EventTable::kernel, std::move(track)});
    tracks->lanes.push_back(std::move(lane));
    return tracks;
}

TEST(EventSearch, KeepsTheFirstOnesInTheOrderAskedForAndCountsAll) {
    RunInfo run;
    run.strings = {"", "gemm", "copy"};
    const std::vector<RankTracksPtr> tracks{randomRank(20'000)};
    SearchRequest request = named("gemm");
    request.order = SearchOrder::duration;
    request.descending = true;
    request.limit = 100;
    const SearchResult capped = searchEvents(request, run, tracks, kGoOn);
    request.limit = 1'000'000;
    const SearchResult whole = searchEvents(request, run, tracks, kGoOn);
    EXPECT_EQ(capped.found, 10'000u);
    EXPECT_EQ(whole.hits.size(), 10'000u);
    EXPECT_EQ(capped.foundNs, whole.foundNs);
    ASSERT_EQ(capped.hits.size(), 100u);
    for (size_t i = 0; i < capped.hits.size(); ++i) EXPECT_EQ(capped.hits[i].ref, whole.hits[i].ref);
}

TEST(EventSearch, IdsThatNameNothingDoNoHarm) {
    const SmallRun file(
        "UPDATE kernel SET name_id = 123456789; UPDATE nvtx SET name_id = -7; UPDATE memcpy SET kind = 77; UPDATE "
        "nccl_call SET op = 'nonsense'; UPDATE step SET step = 2147483647;UPDATE kernel SET stream_id = -3 WHERE id = "
        "2; UPDATE kernel SET dur_ns = -5 WHERE id = 1;",
        std::string(100'000, 'n'));
    const auto run = file.info();
    const auto tracks = file.tracks(*run);
    SearchRequest request = named("nothing that is there");
    EXPECT_EQ(searchEvents(request, *run, tracks, kGoOn).found, 0u);
    request = named("");
    request.order = SearchOrder::name;
    EXPECT_EQ(searchEvents(request, *run, tracks, kGoOn).found, 22u);
}

}  // namespace
}  // namespace rankscope::gui
