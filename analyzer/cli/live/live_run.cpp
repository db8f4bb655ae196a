// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/live/live_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/job/live_processes.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/report/analyze.h"
#include "analyzer/text/plain_text.h"
#include "collector/store/bounded_json.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;
// CUPTI hands its records over within a second; until then the device seems to stand still.
constexpr int64_t kHandedOverNs = 1'000'000'000;

int64_t lookedAtNs() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

fs::path recordingOf(const fs::path& name) {
    const RunInput input = findRun(name.string());
    if (input.captures.empty())
        throw VerbError(kExitInput, fmt::format("{} has no capture folder: no job is recorded there", name.string()),
                        fmt::format("of what is imported or stands in a .db file: rankscope analyze {}",
                                    text::shellWord(name.string())));
    return input.directory;
}

fs::path makeScratch() {
    std::string pattern = (fs::temp_directory_path() / "rankscope-top-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
        throw fs::filesystem_error("mkdtemp", pattern, std::error_code(errno, std::generic_category()));
    return pattern;
}

void addSteps(const report::Report& report, LiveState& state) {
    std::vector<double> durations;
    for (const report::StepRow& step : report.steps) {
        if (step.warmUp) continue;
        durations.push_back(static_cast<double>(step.durNs));
        state.lastStepNs = static_cast<double>(step.durNs);
    }
    state.steps = static_cast<int>(durations.size());
    state.stepSource = report.run.stepSource;
    if (state.stepSource == "none") {  // the window as a whole is no step
        state.steps = 0;
        state.lastStepNs.reset();
    } else if (!durations.empty()) {
        state.stepNs = facts::median(std::move(durations));
    }
}

// Its collectives are told by operation and size; of the group the rates count by the time that they take.
void addCommunicators(const report::Report& report, LiveState& state) {
    struct Sum {
        CommunicatorRow row;
        double bytes = 0, waitNs = 0, rateTimesNs = 0, ns = 0;
        bool hasBytes = true, hasWait = true;
    };
    std::map<int64_t, Sum> sums;
    for (const report::CollectiveRow& row : report.collectives) {
        if (!row.communicator) continue;
        Sum& sum = sums[*row.communicator];
        sum.row.id = *row.communicator;
        sum.row.group = row.group;
        sum.row.ranks = row.ranks;
        sum.row.countPerStep += row.countPerStep;
        sum.hasBytes = sum.hasBytes && row.bytesPerStep;
        sum.bytes += row.bytesPerStep.value_or(0);
        sum.hasWait = sum.hasWait && row.waitNsPerRankStep;
        sum.waitNs += row.waitNsPerRankStep.value_or(0);
        if (!row.busbw || !row.transferNs) continue;
        sum.ns += static_cast<double>(*row.transferNs);
        sum.rateTimesNs += *row.busbw * static_cast<double>(*row.transferNs);
    }
    for (auto& [id, sum] : sums) {
        if (sum.hasBytes) sum.row.bytesPerStep = sum.bytes;
        if (sum.hasWait) sum.row.waitNsPerRankStep = sum.waitNs;
        if (sum.ns > 0) sum.row.busBytesPerS = sum.rateTimesNs / sum.ns;
        state.communicators.push_back(std::move(sum.row));
    }
}

void addDevices(store::TraceReader& trace, LiveState& state) {
    std::map<int, DeviceRow> latest;
    for (const store::DeviceHealth& row : trace.all<store::DeviceHealth>()) {
        DeviceRow& device = latest[row.rank];
        device.rank = row.rank;
        device.smMhz = row.smMhz;
        device.smMaxMhz = row.smMaxMhz;
        device.clocksEvents = row.clocksEvents;
        device.powerMw = row.powerMw;
        device.powerLimitMw = row.powerLimitMw;
        device.temperatureC = row.temperatureC;
        device.memoryUsedBytes = row.memoryUsedBytes;
        device.memoryTotalBytes = row.memoryTotalBytes;
        device.utilizationPercent = row.utilizationPercent;
        // Counters are not read each time, and an error is not over with the next reading.
        if (row.eccUncorrected) device.eccUncorrected = row.eccUncorrected;
        if (row.nvlinkErrors) device.nvlinkErrors = row.nvlinkErrors;
        if (row.xid) device.xid = row.xid;
    }
    for (auto& [rank, device] : latest) state.devices.push_back(device);
}

// For how long each capture was not written, against the one that was written last: a rank that gets on writes five
// times a second.
std::map<std::string, double> silentSeconds(const fs::path& captures) {
    std::map<std::string, fs::file_time_type> written;  // by file name
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(captures, ignored))
        if (entry.path().extension() == ".cap") {
            const auto time = entry.last_write_time(ignored);
            if (!ignored) written[entry.path().filename().string()] = time;
        }
    std::map<std::string, double> silent;
    if (written.empty()) return silent;
    const auto last = std::ranges::max_element(written, {}, [](const auto& entry) { return entry.second; })->second;
    for (const auto& [name, time] : written) silent[name] = std::chrono::duration<double>(last - time).count();
    return silent;
}

void addRanks(store::TraceReader& trace, const report::Report& report, const std::map<std::string, double>& silent,
              LiveState& state) {
    std::map<int64_t, std::string> captureOf;
    int64_t lastNs = INT64_MIN;
    for (const store::Process& process : trace.all<store::Process>()) {
        captureOf[process.id] = fs::path(process.captureFile.value_or("")).filename().string();
        lastNs = std::max(lastNs, process.endNs.value_or(INT64_MIN));
    }
    for (const store::Rank& rank : trace.all<store::Rank>()) {
        RankRow row{rank.rank, {}, {}};
        if (const auto host = report.hostOfRank.find(rank.rank); host != report.hostOfRank.end())
            row.host = host->second;
        if (const auto seconds = silent.find(captureOf[rank.processId.value_or(-1)]); seconds != silent.end())
            row.silentS = seconds->second;
        state.ranks.push_back(std::move(row));
    }
    const int64_t startUnixNs = trace.metaInteger("start_unix_ns", 0);
    if (startUnixNs > 0 && trace.meta("virtual", "0") == "0" && lastNs != INT64_MIN)
        state.ageS = std::max(0.0, static_cast<double>(state.unixNs - startUnixNs - lastNs) / kNsPerS);
}

}  // namespace

LiveRun::LiveRun(const fs::path& run, double windowS, unsigned threads)
    : m_run(recordingOf(run)), m_windowS(windowS), m_threads(threads) {
    m_links = linkSources({});
    m_scratch = makeScratch();
    m_followed = collector::followCaptures(m_scratch / "captures");
}

LiveRun::~LiveRun() {
    std::error_code ignored;
    fs::remove_all(m_scratch, ignored);
}

// The newest time in any capture; each byte of them is read once.
std::optional<int64_t> LiveRun::newestNs() {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(m_run / "capture", ignored)) {
        if (entry.path().extension() != ".cap") continue;
        const std::string path = entry.path().string();
        m_tails.try_emplace(path, path)
            .first->second.poll([this](const capture::BlockHeader& block, const std::vector<uint8_t>&) {
                if (block.highWaterNs > 0) m_newestNs = std::max(m_newestNs.value_or(0), block.highWaterNs);
            });
    }
    return m_newestNs;
}

// Of light mode: what is younger stays where only the end of the job, or a trigger, brings it from.
double LiveRun::heldBackS() const {
    const auto run = store::readJsonOrNothing(m_run / "run.json");
    const auto options = run.is_object() ? run.find("options") : run.end();
    if (options == run.end() || !options->is_object() || options->value("light", nlohmann::json()) != true) return 0;
    const auto ring = options->find("ring_s");
    return ring != options->end() && ring->is_number() ? ring->get<double>() : 0;
}

// A wrapper writes the end into run.json; with a launcher outside others of this host may still be at it.
bool LiveRun::hasEnded() const {
    const auto run = store::readJsonOrNothing(m_run / "run.json");
    return run.is_object() && run.contains("end_unix_ns") && liveRanks(m_run / "capture").empty();
}

void LiveRun::analyse(int64_t untilNs, LiveState& state) {
    const auto silent = silentSeconds(m_run / "capture");  // first: what is read below takes its time
    collector::CollectOptions options;
    options.output = m_scratch / "trace.db";
    // All ranks to the same moment, while they go on: what some have told of and others not yet would look like delay.
    options.part = {untilNs - static_cast<int64_t>(m_windowS * kNsPerS), untilNs};
    options.threads = m_threads;
    options.followed = m_followed.get();
    collector::collect(m_run, options);
    report::AnalyzeOptions settings;
    settings.workers = m_threads;
    settings.storeResults = false;
    settings.links = m_links;
    const report::Report report = report::analyze(options.output, settings);
    store::TraceReader trace(options.output);
    state.worldSize = report.run.worldSize;
    addRanks(trace, report, silent, state);
    addSteps(report, state);
    for (const job::Delay& delay : report.delays.byRank)
        state.late.push_back({delay.rank, delay.nsPerStep(), delay.share});
    addCommunicators(report, state);
    addDevices(trace, state);
    state.findings = report.findings;
    for (const report::LossRow& loss : report.losses) state.losses += loss.severity != "info" ? 1 : 0;
}

// Of a job that has ended nothing more will be written.
void LiveRun::refuseUnreadable() const {
    size_t unreadable = 0;
    for (const auto& [path, tail] : m_tails) unreadable += tail.complaint().empty() ? 0 : 1;
    if (unreadable == 0 || unreadable < m_tails.size()) return;
    throw VerbError(kExitInput,
                    unreadable == 1 ? fmt::format("the capture file of {} cannot be read: {}", m_run.string(),
                                                  m_tails.begin()->second.complaint())
                                    : fmt::format("none of the {} capture files of {} can be read; the first: {}",
                                                  unreadable, m_run.string(), m_tails.begin()->second.complaint()),
                    "the files are damaged, or of another version of rankscope");
}

LiveState LiveRun::look() {
    LiveState state;
    state.run = m_run.filename().string();
    state.unixNs = lookedAtNs();
    state.windowS = m_windowS;
    state.heldBackS = heldBackS();
    const bool ended = hasEnded();  // first: what is read below is then all of it
    const auto newest = newestNs();
    if (ended) refuseUnreadable();
    if (newest) {
        try {
            analyse(*newest - (ended ? 0 : kHandedOverNs), state);
            state.phase = LivePhase::running;
        } catch (const store::Error&) {  // no process has used a device yet
        }
    }
    if (ended) state.phase = LivePhase::ended;
    return state;
}

}  // namespace rankscope::cli
