// SPDX-License-Identifier: Apache-2.0
// Everything the window does with a trace.db, done to damaged ones: whatever is in a file, nothing crashes, and what is
// shown can be shown. RANKSCOPE_DAMAGE_SEEDS=FIRST-LAST tries those seeds instead of a few.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "gui/charts/series/bandwidth_chart.h"
#include "gui/charts/series/communication_matrix.h"
#include "gui/charts/series/pipeline_chart.h"
#include "gui/charts/series/roofline_chart.h"
#include "gui/charts/series/step_charts.h"
#include "gui/session/activity_lines.h"
#include "gui/session/event_details.h"
#include "gui/session/event_links.h"
#include "gui/session/event_names.h"
#include "gui/session/event_search.h"
#include "gui/session/range_statistics.h"
#include "gui/session/run_difference.h"
#include "gui/session/step_alignment.h"
#include "gui/timeline/display_text.h"
#include "gui/timeline/lane_tree.h"
#include "gui/timeline/overview.h"
#include "gui/timeline/track_drawing.h"
#include "tests/unit/gui/row_damage.h"
#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

using test::RowDamage;
using test::SmallRun;

// What `rankscope analyze` adds to a run, and a message between two ranks.
constexpr const char* kAnalyzed = R"sql(
INSERT INTO attribution VALUES (0, 0, 1000000, 200000, 0, 150000, 50000, 0, 30000, 570000), (1, 0, 1000000, 250000, 0, 150000, 0, 0, 30000, 570000);
INSERT INTO finding (id, diagnosis, title, severity, verdict, saving_ns_per_step, start_ns, end_ns, report_json) VALUES
  (1, 'RS301', 'straggler', 0.05, 'found', 50000, 0, 1000000, '{"ranks": [1], "affected_ranks": [0], "cause": "c", "fix": ["f"],
    "evidence": {"facts": ["a"], "rows": [{"table": "collective", "id": 1, "rank": 1, "note": "n"}, {"table": "kernel", "id": 2, "rank": 0}, {"table": "idle_gap", "id": 1}]}}');
INSERT INTO idle_gap VALUES (1, 0, 0, 350000, 50000, 'late_launch');
INSERT INTO p2p (id, communicator_id, src_rank, dst_rank, seq, bytes, send_call_id, recv_call_id, send_arrival_ns, recv_arrival_ns, send_end_ns, recv_end_ns, transfer_ns, complete) VALUES
  (1, 1, 0, 1, 0, 4096, 1, 2, 600000, 610000, 640000, 640000, 30000, 1), (2, 1, 1, 0, 1, 4096, 2, 1, 700000, 710000, 740000, 740000, 30000, 1);
INSERT INTO loss (kind, severity, count, message) VALUES ('dropped', 'warning', 3, 'three events');
INSERT INTO rank_activity SELECT rank, 100000, 250, CAST(replace(hex(zeroblob(5120)), '00', '2A') AS BLOB) FROM rank;
INSERT INTO clock_model VALUES (0, 'reference', 0, 0, 0, 0, 0);
INSERT OR REPLACE INTO meta VALUES ('links', 'intra=300GB/s,inter=25GB/s'), ('world_size', '2');
)sql";

// A reader may say that the file is damaged; the window shows that.
template <typename Read>
void tryTo(Read&& read) {
    try {
        read();
    } catch (const std::exception& error) {
        EXPECT_NE(std::string(error.what()), "");
    }
}

void expectShowable(const std::string& text) {
    for (const char c : displayText(text)) ASSERT_GE(static_cast<unsigned char>(c), 0x20);
    ASSERT_LE(displayText(text).size(), 250u);
}

void drawAll(const RunInfo& run, const RankTracks& tracks) {
    const auto device = tracks.deviceTracks();
    TrackDrawing drawing;
    std::vector<ActivityColumn> columns;
    TimeAxis axis;
    axis.setWidth(500);
    axis.setWhole(run.whole);
    for (const Lane& lane : tracks.lanes) {
        expectShowable(lane.label);
        for (const Lane::Part& part : lane.parts)
            for (const TimeRange view : {axis.whole(), TimeRange{0, 1'000'000}, part.track.extent()}) {
                axis.show(view);
                ASSERT_GE(axis.visible().span(), TimeAxis::kMinSpanNs);
                drawTrack(part.track, axis, drawing);
                for (const Speck& speck : drawing.specks)
                    ASSERT_TRUE(speck.x >= 0 && speck.x < 500 && speck.coverage >= 0 && speck.coverage <= 1);
                for (const Box& box : drawing.boxes) {
                    ASSERT_TRUE(box.width >= 0 && box.x + box.width < 510) << box.x << " " << box.width;
                    expectShowable(eventName(run, part.table, part.track.event(box.event)));
                }
                drawActivity(tracks.activityView(), axis, columns);
                (void)axis.ruler(90);
            }
    }
}

void askEverything(store::TraceReader& reader, const RunInfo& run, const std::vector<RankTracksPtr>& tracks) {
    const std::atomic<bool> cancelled{false};
    for (const char* pattern : {"", "gemm|nccl", "step"})
        for (const SearchOrder order : {SearchOrder::start, SearchOrder::duration, SearchOrder::name}) {
            SearchRequest request;
            request.pattern = pattern;
            request.order = order;
            for (const SearchHit& hit : searchEvents(request, run, tracks, cancelled).hits)
                expectShowable(eventName(run, hit.table, hit.event));
        }
    for (const RankTracksPtr& rank : tracks)
        for (const Lane& lane : rank->lanes)
            for (const Lane::Part& part : lane.parts)
                for (size_t i = 0; i < std::min<size_t>(3, part.track.size()); ++i) {
                    const int64_t row = part.table == EventTable::step ? part.track.event(i).row : part.track.rowId(i);
                    tryTo([&] { (void)detailsText(readEventDetails(reader, run, {part.table, row, rank->rank})); });
                    tryTo([&] { (void)findEventLinks(reader, {part.table, row, rank->rank}); });
                }
    for (const TimeRange range : {run.whole, TimeRange{100'000, 500'000}, TimeRange{INT64_MIN / 8, INT64_MAX / 8}}) {
        const RangeActivity activity = rangeActivity(run, tracks, range, cancelled);
        tryTo([&] { (void)rangeText(activity, readRangeTables(reader, range)); });
    }
}

void expectDrawable(const GridChart& chart) {
    ASSERT_EQ(chart.values.size(),
              chart.nothing.empty() ? chart.columns.labels.size() * chart.rows.labels.size() : chart.values.size());
    for (const float value : chart.values) ASSERT_FALSE(std::isinf(value));
}

void expectDrawable(const ScatterChart& chart) {
    for (const ScatterPoint& point : chart.points)
        ASSERT_TRUE(std::isfinite(point.x) && std::isfinite(point.y) && point.x > 0 && point.y > 0);
}

void drawCharts(store::TraceReader& reader) {
    tryTo([&] {
        const StepTable steps = readStepTable(reader);
        for (const StepMeasure measure :
             {StepMeasure::own, StepMeasure::compute, StepMeasure::waiting, StepMeasure::duration})
            expectDrawable(stragglerMap(steps, measure));
        expectDrawable(stepHistogram(steps));
    });
    tryTo([&] { expectDrawable(communicationMatrix(reader)); });
    tryTo([&] { expectDrawable(bandwidthChart(reader)); });
    tryTo([&] { expectDrawable(rooflineChart(reader)); });
    tryTo([&] {
        const PipelineCharts pipelines(reader);
        for (const int32_t step : {-1, 0}) {
            const PipelineChart chart = pipelines.chart(reader, 0, step);
            for (const PipelineStage& stage : chart.stages)
                ASSERT_TRUE(stage.bubble >= 0 && stage.bubble <= 1) << stage.bubble;
        }
    });
}

// Beside a sound run, on either side.
void compareWithSound(const RunInfo& run) {
    static const SmallRun kSound(kAnalyzed);
    auto soundReader = kSound.reader();
    const RunInfo other = readRunInfo(soundReader);
    tryTo([&] {
        for (const auto& [a, b] : {std::pair{&run, &other}, std::pair{&other, &run}})
            for (const char c : headText(differenceOf(*a, *b, false)))
                ASSERT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
    });
    const StepAlignment alignment(run, other);
    for (const Side side : {Side::a, Side::b}) {
        for (const TimeRange view : {TimeRange{0, 1'000'000}, alignment.fit(side), alignment.room(side)})
            (void)alignment.across(side, view);
        ASSERT_GE(alignment.room(side).span(), 0);
    }
}

// True when the events of some rank could be read.
bool lookAtEverything(const std::filesystem::path& file) {
    bool anything = false;
    tryTo([&] {
        store::TraceReader reader(file, {}, store::MisplacedRows::kept);
        const RunInfo run = readRunInfo(reader);
        for (const FindingInfo& finding : run.findings)
            for (const std::string* text : {&finding.diagnosis, &finding.title, &finding.cause}) expectShowable(*text);
        std::vector<ActivityColumn> columns;
        LaneTree lanes;
        lanes.setOutline(run.outline, readActivityLines(reader));
        for (const OutlineRank& rank : run.outline.ranks) drawActivity(lanes.activity(rank.rank), TimeAxis(), columns);
        std::vector<RankTracksPtr> tracks;
        LoadControl control;
        for (const OutlineRank& rank : run.outline.ranks)
            tryTo([&] {
                RankTracksPtr loaded = loadRankTracks(reader, run, rank.rank, control);
                lanes.setTracks(loaded);
                tracks.push_back(std::move(loaded));
            });
        lanes.setAllExpanded(true);
        for (const Row& row : lanes.rows()) expectShowable(row.label);
        for (const RankTracksPtr& rank : tracks) drawAll(run, *rank);
        askEverything(reader, run, tracks);
        drawCharts(reader);
        compareWithSound(run);
        Overview overview(run.whole, 300);
        for (const RankTracksPtr& rank : tracks) overview.add(rank->activityView());
        for (size_t column = 0; column < overview.columns(); ++column)
            for (const float share : overview.column(column)) ASSERT_TRUE(share >= 0 && share <= 1.01F) << share;
        anything = !tracks.empty();
    });
    return anything;
}

// 40 seeds, or those that are asked for.
std::pair<unsigned, unsigned> seeds() {
    unsigned first = 1, last = 40;
    if (const char* wanted = std::getenv("RANKSCOPE_DAMAGE_SEEDS")) std::sscanf(wanted, "%u-%u", &first, &last);
    return {first, last};
}

TEST(DamagedRows, ASoundRunIsReadWithoutComplaint) {
    const SmallRun run(kAnalyzed);
    auto reader = run.reader();
    const auto info = run.info();
    EXPECT_TRUE(info->damage.empty());
    EXPECT_EQ(info->findings.size(), 1u);
    EXPECT_EQ(info->findings[0].evidence.size(), 3u);
    EXPECT_TRUE(lookAtEverything(run.folder.file()));
}

TEST(DamagedRows, NothingInAFileCrashesTheWindow) {
    const auto [first, last] = seeds();
    unsigned shown = 0;
    for (unsigned seed = first; seed <= last; ++seed) {
        const SmallRun run(kAnalyzed);
        RowDamage damage(seed);
        damage.apply(run.folder.file());
        SCOPED_TRACE("seed " + std::to_string(seed) + ":\n" + damage.story().substr(0, 4000));
        shown += lookAtEverything(run.folder.file());
        if (HasFatalFailure()) return;
    }
    EXPECT_GE(shown, (last - first + 1) / 3) << "too much damage to see anything";
}

}  // namespace
}  // namespace rankscope::gui
