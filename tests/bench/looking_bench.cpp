// SPDX-License-Identifier: Apache-2.0
// What looking at a run costs: frames of the timeline over 1, 10 and 100 million events beside two yardsticks of the
// same session (every event looked at; the pyramid walked without painting), memory an event, and opening a run of 10
// million events. Prints one table. Usage: rankscope_bench_looking [--frames|--opening] [MILLIONS...]; 1 10 100 when
// left out. Beside the time on the clock stands the processor time of all threads, which others on the machine take
// no part of.
//        rankscope_bench_looking --write FILE MILLIONS: a trace.db of that size, to be looked at.
#include <fmt/format.h>

#include <QApplication>
#include <QTemporaryDir>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <limits>
#include <random>
#include <string>

#include "collector/store/writer.h"
#include "gui/session/run_loader.h"
#include "gui/view/lane_canvas.h"

namespace {

using namespace rankscope;
using namespace rankscope::gui;
using Clock = std::chrono::steady_clock;

constexpr int kRanks = 8, kLanes = 8;  // 64 tracks
constexpr int kFrames = 300, kRounds = 3;

double msSince(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Of all threads of this process.
double processorMs() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

struct Cost {
    double ms = std::numeric_limits<double>::max(), processorMs = std::numeric_limits<double>::max();
};

template <typename Work>
Cost costOf(Work&& work) {
    const auto start = Clock::now();
    const double processor = processorMs();
    work();
    return {msSince(start), processorMs() - processor};
}

// Kernels of 2 to 40 us with short gaps, a long one now and then: what a training step looks like to a stream.
struct EventStream {
    explicit EventStream(unsigned seed) : random(seed) {}
    std::mt19937 random;
    int64_t now = 0;
    TrackEvent next(uint32_t row, EventKind kind) {
        const uint32_t draw = random();
        const int64_t duration = draw % 500 == 0 ? 2'000'000 + draw % 3'000'000 : 2'000 + draw % 38'000;
        const TrackEvent event{now, duration, 1 + draw % 200, row, kind, 0};
        now += duration + (draw >> 8) % 6'000;
        return event;
    }
};

RankTracksPtr syntheticRank(int32_t rank, size_t eventsPerLane) {
    auto tracks = std::make_shared<RankTracks>();
    tracks->rank = rank;
    for (int lane = 0; lane < kLanes; ++lane) {
        EventStream events(static_cast<unsigned>(rank * 100 + lane));
        Track track(1);
        const EventKind kind = lane % 3 == 2 ? EventKind::communication : EventKind::compute;
        Lane made{LaneKind::stream, fmt::format("stream {}", lane), {}};
        for (uint32_t i = 0; i < eventsPerLane; ++i) {
            TrackEvent event = events.next(i, kind);
            // Each second collective waits for another rank, half of its time.
            if (kind == EventKind::communication && i % 2 == 0) event.waitNs = event.durNs / 2;
            track.add(event);
        }
        track.finish();
        made.parts.push_back({EventTable::kernel, std::move(track)});
        tracks->lanes.push_back(std::move(made));
    }
    const auto device = tracks->deviceTracks();
    tracks->activity = ActivityBins(device, device.front()->extent());
    return tracks;
}

struct Quantiles {
    Cost median, p95;
};

Quantiles quantiles(const std::vector<Cost>& costs) {
    Quantiles of;
    for (double Cost::*time : {&Cost::ms, &Cost::processorMs}) {
        std::vector<double> values;
        for (const Cost& cost : costs) values.push_back(cost.*time);
        std::sort(values.begin(), values.end());
        of.median.*time = values[values.size() / 2];
        of.p95.*time = values[values.size() * 95 / 100];
    }
    return of;
}

// The way through the run that a hand takes: zoom in somewhere, pan on, zoom out. The same for every size.
std::vector<TimeRange> journey(TimeRange whole) {
    std::vector<TimeRange> views;
    std::mt19937 random(11);
    for (int i = 0; i < kFrames; ++i) {
        const double depth = std::pow(10.0, -6.0 * (i % 60) / 60.0);
        const auto span = std::max<int64_t>(1'000, static_cast<int64_t>(depth * static_cast<double>(whole.span())));
        const auto room = static_cast<uint64_t>(whole.span() - span) + 1;
        const int64_t begin = whole.beginNs + static_cast<int64_t>((static_cast<uint64_t>(random()) << 20) % room);
        views.push_back({begin, begin + span});
    }
    return views;
}

void benchFrames(size_t millions) {
    auto run = std::make_shared<RunInfo>();
    run->strings.resize(256);
    for (size_t i = 0; i < run->strings.size(); ++i)
        run->strings[i] = fmt::format("void kernel_{}<float, {}>(float*, int)", i, i * 7);
    run->outline.hosts = {{0, "host"}};
    for (int32_t rank = 0; rank < kRanks; ++rank) run->outline.ranks.push_back({rank, 0, fmt::format("rank {}", rank)});
    TimelineModel model;
    model.setRun(run);
    const size_t perLane = millions * 1'000'000 / (kRanks * kLanes);
    size_t bytes = 0, events = 0;
    const auto building = Clock::now();
    for (int32_t rank = 0; rank < kRanks; ++rank) {
        RankTracksPtr tracks = syntheticRank(rank, perLane);
        bytes += tracks->bytes();
        for (const Lane& lane : tracks->lanes) events += lane.parts.front().track.size();
        model.addTracks(std::move(tracks));
    }
    const double buildMs = msSince(building);
    model.changeLanes([](LaneTree& lanes) { lanes.setAllExpanded(true); });
    const QSize size(1920, model.lanes().height());  // all 64 tracks in the picture

    LaneCanvas canvas, canvasAlone(1);
    TrackDrawing drawing;
    int64_t busy = 0;
    model.setWidth(size.width());
    const std::vector<TimeRange> views = journey(model.axis().whole());
    // The whole way is gone three times, so that no frame finds in the cache what it painted before; of each frame the
    // fastest counts: machines are shared.
    const auto fastest = [&](size_t each, auto&& frame) {
        std::vector<Cost> best(views.size() / each);
        for (int round = 0; round < kRounds; ++round) {
            for (size_t i = 0; i < best.size(); ++i) {
                model.show(views[i * each]);
                const Cost cost = costOf(frame);
                best[i] = {std::min(best[i].ms, cost.ms), std::min(best[i].processorMs, cost.processorMs)};
            }
        }
        return quantiles(best);
    };
    const auto paint = [&](LaneCanvas& on) { on.paint(model, model.lanes().rows(), 0, size, 1, Palette::light()); };
    const Quantiles frame = fastest(1, [&] { paint(canvas); });
    const Quantiles one = fastest(1, [&] { paint(canvasAlone); });
    const Quantiles walk = fastest(1, [&] {
        for (const auto& [rank, tracks] : model.lanes().loaded())
            for (const Track* track : tracks->deviceTracks()) drawTrack(*track, model.axis(), drawing);
    });
    const Quantiles scan = fastest(60, [&] {  // slow: a few say enough
        const TimeRange view = model.axis().visible();
        for (const auto& [rank, tracks] : model.lanes().loaded())
            for (const Track* track : tracks->deviceTracks())
                for (size_t i = 0; i < track->size(); ++i)
                    if (track->startNs(i) < view.endNs && track->endNs(i) > view.beginNs) busy += track->durNs(i);
    });
    fmt::print(
        "{:>5} M events, 64 tracks, {}x{}: frame median {:5.2f} ms, p95 {:5.2f} ms, processor time {:5.2f}, {:5.2f} ms "
        "(one thread {:5.2f}, {:5.2f}) | pyramid alone {:5.2f} / {:5.2f} ms | scan of all {:7.1f} ms | {:.1f} bytes an "
        "event, built in {:.0f} ms{}\n",
        millions, size.width(), size.height(), frame.median.ms, frame.p95.ms, frame.median.processorMs,
        frame.p95.processorMs, one.median.processorMs, one.p95.processorMs, walk.median.processorMs,
        walk.p95.processorMs, scan.median.processorMs, static_cast<double>(bytes) / static_cast<double>(events),
        buildMs, busy == 0 ? " " : "");
}

void writeRun(const std::string& file, size_t events) {
    store::TraceWriter writer(file);
    const int32_t name = writer.intern("kernel");
    for (int i = 0; i < 199; ++i) writer.intern(fmt::format("kernel_{}", i));
    writer.write(store::Host{0, "host", {}});
    std::vector<store::Kernel> rows;
    int64_t id = 0, last = 0;
    for (int32_t rank = 0; rank < kRanks; ++rank) {
        store::Rank row;
        row.rank = rank;
        row.hostId = 0;
        writer.write(row);
        store::Stream stream;
        stream.id = rank + 1;
        stream.rank = rank;
        stream.nativeId = 7;
        writer.write(stream);
    }
    for (int32_t rank = 0; rank < kRanks; ++rank) {
        EventStream stream(static_cast<unsigned>(rank));
        for (size_t i = 0; i < events / kRanks; ++i) {
            const TrackEvent event = stream.next(0, EventKind::compute);
            store::Kernel kernel;
            kernel.id = ++id;
            kernel.rank = rank;
            kernel.streamId = rank + 1;
            kernel.startNs = event.startNs;
            kernel.durNs = event.durNs;
            kernel.nameId = name + static_cast<int32_t>(event.name % 199);
            kernel.correlationId = static_cast<uint32_t>(id);
            rows.push_back(kernel);
            last = std::max(last, kernel.startNs + kernel.durNs);
            if (rows.size() == 65'536) {
                writer.write(std::span<const store::Kernel>(rows));
                rows.clear();
            }
        }
    }
    writer.write(std::span<const store::Kernel>(rows));
    writer.setMeta("schema_version", "1");
    writer.setMeta("duration_ns", std::to_string(last));
    writer.finish();
}

void benchOpen(size_t millions) {
    QTemporaryDir folder;
    const std::string file = folder.filePath("trace.db").toStdString();
    writeRun(file, millions * 1'000'000);
    for (const char* which : {"first open", "later open", "later open", "later open"}) {
        const auto start = Clock::now();
        const double startProcessor = processorMs();
        store::TraceReader reader(file);
        auto run = std::make_shared<const RunInfo>(readRunInfo(reader));
        TimelineModel model;
        model.setRun(run);
        std::mutex mutex;
        std::condition_variable woken;
        std::vector<RankTracksPtr> arrived;
        bool done = false;
        RunLoader loader(run, {[&](RankTracksPtr tracks) {
                                   const std::lock_guard lock(mutex);
                                   arrived.push_back(std::move(tracks));
                                   woken.notify_one();
                               },
                               [](int32_t rank, const std::string& reason, const std::string&) {
                                   fmt::print("failed: rank {}: {}\n", rank, reason);
                               },
                               [&](bool) {
                                   const std::lock_guard lock(mutex);
                                   done = true;
                                   woken.notify_one();
                               }});
        double firstMs = 0, firstProcessorMs = 0;
        LaneCanvas canvas;
        model.setWidth(1920);
        std::unique_lock lock(mutex);
        while (!done || !arrived.empty()) {
            woken.wait(lock, [&] { return done || !arrived.empty(); });
            for (RankTracksPtr& tracks : std::exchange(arrived, {})) model.addTracks(std::move(tracks));
            if (firstMs == 0 && !model.lanes().loaded().empty()) {
                canvas.paint(model, model.lanes().rows(), 0, {1920, 1080}, 1, Palette::light());
                firstMs = msSince(start);
                firstProcessorMs = processorMs() - startProcessor;
            }
        }
        canvas.paint(model, model.lanes().rows(), 0, {1920, 1080}, 1, Palette::light());
        fmt::print(
            "{:>5} M events, {}: first picture with events {:.0f} ms, all of it {:.0f} ms; processor time {:.0f} and "
            "{:.0f} ms\n",
            millions, which, firstMs, msSince(start), firstProcessorMs, processorMs() - startProcessor);
    }
}

}  // namespace

int main(int argc, char** argv) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(argc, argv);
    if (argc == 4 && std::string(argv[1]) == "--write") {
        writeRun(argv[2], std::max(1ul, std::strtoul(argv[3], nullptr, 10)) * 1'000'000);
        return 0;
    }
    std::vector<size_t> sizes;
    const std::string section = argc > 1 && argv[1][0] == '-' ? argv[1] : "";
    for (int i = section.empty() ? 1 : 2; i < argc; ++i)
        sizes.push_back(std::max(1ul, std::strtoul(argv[i], nullptr, 10)));
    if (sizes.empty()) sizes = {1, 10, 100};
    for (const size_t millions : sizes)
        if (section != "--opening") benchFrames(millions);
    if (section != "--frames") benchOpen(10);
    return 0;
}
