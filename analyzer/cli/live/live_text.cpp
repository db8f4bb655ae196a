// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/live/live_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::cli {
namespace {

using nlohmann::json;
using text::Shade;

// What a look shows of each list; the rest is counted.
constexpr size_t kMostLate = 5, kMostCommunicators = 8, kMostDevices = 8, kMostFindings = 6;
// Of what the others lose, that is worth a line: less is lost to the noise of a step.
constexpr double kLeastShare = 0.02;
// A rank that recorded nothing for so long stands out: CUPTI hands its records over within a second.
constexpr double kSilentS = 5;

const char* toText(LivePhase phase) {
    switch (phase) {
        case LivePhase::starting:
            return "starting";
        case LivePhase::running:
            return "running";
        case LivePhase::ended:
            return "ended";
    }
    return "";
}

std::string hostOf(const LiveState& state, int rank) {
    const auto row = std::ranges::find(state.ranks, rank, &RankRow::rank);
    return row == state.ranks.end() || row->host.empty() ? "" : " (" + text::oneLine(row->host) + ")";
}

std::string headText(const LiveState& state, const text::Painter& paint) {
    std::string head = fmt::format("{}: {}", text::oneLine(state.run), toText(state.phase));
    if (state.phase == LivePhase::starting) return paint.bold(head) + "; nothing is recorded yet\n";
    head += fmt::format(", {}", text::countedText(std::ssize(state.ranks), "rank"));
    if (state.worldSize && *state.worldSize != std::ssize(state.ranks)) head += fmt::format(" of {}", *state.worldSize);
    std::string line = paint.bold(head);
    if (state.ageS && state.phase == LivePhase::running)
        line += fmt::format("; the last record is {:.0f} s old", *state.ageS);
    line += '\n';
    if (state.stepNs)
        line += fmt::format("step {} (median of the last {}), the last one {}\n", text::durationText(*state.stepNs),
                            state.steps, text::durationText(*state.lastStepNs));
    else if (state.stepSource == "none" && !state.communicators.empty())
        line += fmt::format("no steps are recognised in the last {:.0f} s: name them by NVTX ranges ProfilerStep#N\n",
                            state.windowS);
    else if (state.heldBackS > 0 && state.phase == LivePhase::running)
        line += fmt::format("no step is told yet: in light mode a step is told when it is {:.0f} s old (--ring)\n",
                            state.heldBackS);
    else
        line += fmt::format("no step ended in the last {:.0f} s\n", state.windowS);
    return line;
}

std::string lateText(const LiveState& state, const text::Painter& paint) {
    std::string lines;
    size_t shown = 0;
    for (const LateRankRow& late : state.late) {
        if (late.share < kLeastShare || shown++ >= kMostLate) break;
        lines += fmt::format("late     {}{} costs the others {} of each step, {} of what they lose to ranks\n",
                             paint(Shade::yellow, fmt::format("rank {}", late.rank)), hostOf(state, late.rank),
                             text::durationText(late.costNsPerStep), text::percentText(late.share));
    }
    for (const RankRow& rank : state.ranks)
        if (rank.silentS && *rank.silentS >= kSilentS)
            lines += fmt::format("silent   {}{} has recorded nothing for {:.0f} s\n",
                                 paint(Shade::red, fmt::format("rank {}", rank.rank)), hostOf(state, rank.rank),
                                 *rank.silentS);
    return lines;
}

std::string communicatorText(const LiveState& state) {
    std::vector<const CommunicatorRow*> rows;
    for (const CommunicatorRow& row : state.communicators) rows.push_back(&row);
    std::ranges::stable_sort(rows, std::greater(),
                             [](const CommunicatorRow* row) { return row->bytesPerStep.value_or(0); });
    std::string lines;
    for (size_t i = 0; i < rows.size() && i < kMostCommunicators; ++i)
        lines += fmt::format("traffic  {}: {} on the bus, {} waiting a step\n", text::oneLine(rows[i]->group),
                             rows[i]->busBytesPerS ? text::bandwidthText(*rows[i]->busBytesPerS) : "unknown",
                             rows[i]->waitNsPerRankStep ? text::durationText(*rows[i]->waitNsPerRankStep) : "unknown");
    if (rows.size() > kMostCommunicators)
        lines += fmt::format("         and {} communicators with less traffic\n", rows.size() - kMostCommunicators);
    return lines;
}

// Devices that have something to tell; the others in one line.
std::string deviceText(const LiveState& state, const text::Painter& paint) {
    std::string lines;
    size_t well = 0, shown = 0;
    for (const DeviceRow& device : state.devices) {
        std::vector<std::string> said;
        if (const std::string why = clocksEventsText(device.clocksEvents.value_or(0)); !why.empty())
            said.push_back(why);
        if (device.xid) said.push_back(fmt::format("Xid {}", *device.xid));
        if (device.eccUncorrected.value_or(0) > 0)
            said.push_back(fmt::format("{} uncorrected memory errors", *device.eccUncorrected));
        if (said.empty()) {
            ++well;
            continue;
        }
        if (shown++ >= kMostDevices) continue;
        std::string numbers;
        if (device.smMhz && device.smMaxMhz)
            numbers += fmt::format("{:.2f} of {:.2f} GHz", static_cast<double>(*device.smMhz) / 1000,
                                   static_cast<double>(*device.smMaxMhz) / 1000);
        if (device.powerMw)
            numbers +=
                fmt::format("{}{:.0f} W", numbers.empty() ? "" : ", ", static_cast<double>(*device.powerMw) / 1000);
        if (device.temperatureC) numbers += fmt::format("{}{} C", numbers.empty() ? "" : ", ", *device.temperatureC);
        lines += fmt::format("device   {}{}: {}: {}\n", paint(Shade::yellow, fmt::format("rank {}", device.rank)),
                             hostOf(state, device.rank), fmt::join(said, "; "), numbers);
    }
    if (shown > kMostDevices) lines += fmt::format("         and {} more\n", shown - kMostDevices);
    if (state.devices.empty()) return lines + "device   nothing is known of how the devices do\n";
    return lines + (well > 0 ? fmt::format("device   {} without throttling or errors\n",
                                           well == state.devices.size() ? "all of them" : fmt::format("{}", well))
                             : "");
}

std::string findingText(const LiveState& state, const text::Painter& paint) {
    std::string lines;
    for (size_t i = 0; i < state.findings.size() && i < kMostFindings; ++i) {
        const job::Finding& finding = state.findings[i];
        lines += text::wrapped(
            fmt::format("{}{}", finding.cause,
                        finding.severity > 0
                            ? fmt::format(" ({} of the step{})", text::percentText(finding.severity),
                                          finding.verdict == job::Verdict::inconclusive ? ", inconclusive" : "")
                            : ""),
            paint(Shade::red, fmt::format("{}    ", finding.id)));
    }
    if (state.findings.size() > kMostFindings)
        lines += fmt::format("         and {} more findings\n", state.findings.size() - kMostFindings);
    return state.phase == LivePhase::starting || !lines.empty() ? lines : "no finding in the last steps\n";
}

json orNull(const auto& value) {
    return value ? json(*value) : json();
}

json findingJson(const job::Finding& finding) {
    return {{"id", finding.id},
            {"title", finding.title},
            {"verdict", finding.verdict == job::Verdict::found ? "found" : "inconclusive"},
            {"ranks", finding.ranks},
            {"severity", finding.severity},
            {"cause", finding.cause},
            {"evidence", finding.evidence.facts}};
}

json deviceJson(const DeviceRow& device) {
    return {{"rank", device.rank},
            {"sm_mhz", orNull(device.smMhz)},
            {"sm_max_mhz", orNull(device.smMaxMhz)},
            {"clocks_events", orNull(device.clocksEvents)},
            {"throttled_by", clocksEventsText(device.clocksEvents.value_or(0))},
            {"power_mw", orNull(device.powerMw)},
            {"power_limit_mw", orNull(device.powerLimitMw)},
            {"temperature_c", orNull(device.temperatureC)},
            {"memory_used_bytes", orNull(device.memoryUsedBytes)},
            {"memory_total_bytes", orNull(device.memoryTotalBytes)},
            {"utilization_percent", orNull(device.utilizationPercent)},
            {"ecc_uncorrected", orNull(device.eccUncorrected)},
            {"nvlink_errors", orNull(device.nvlinkErrors)},
            {"xid", orNull(device.xid)}};
}

}  // namespace

std::string clocksEventsText(int64_t events) {
    std::vector<std::string> reasons;
    if (events & 0x4) reasons.push_back("power cap");
    if (events & 0x60) reasons.push_back("too hot");
    if (events & 0x80) reasons.push_back("power brake");
    if ((events & 0xe8) == 0x8) reasons.push_back("hardware slowdown");
    return fmt::format("{}", fmt::join(reasons, ", "));
}

std::string liveText(const LiveState& state, const text::Painter& paint) {
    std::string text = headText(state, paint);
    if (state.phase == LivePhase::starting) return text;
    text += lateText(state, paint) + communicatorText(state) + deviceText(state, paint) + findingText(state, paint);
    if (state.losses > 0) text += fmt::format("losses   {} of the recording: rankscope analyze tells\n", state.losses);
    return text;
}

std::string liveJson(const LiveState& state) {
    json object = {{"schema", "rankscope.top/1"},
                   {"run", state.run},
                   {"phase", toText(state.phase)},
                   {"unix_ns", state.unixNs},
                   {"window_s", state.windowS},
                   {"age_s", orNull(state.ageS)},
                   {"world_size", orNull(state.worldSize)},
                   {"step",
                    {{"median_ns", orNull(state.stepNs)},
                     {"last_ns", orNull(state.lastStepNs)},
                     {"count", state.steps},
                     {"source", state.stepSource}}},
                   {"losses", state.losses}};
    for (const char* list : {"ranks", "late", "communicators", "devices", "findings"}) object[list] = json::array();
    for (const RankRow& rank : state.ranks)
        object["ranks"].push_back({{"rank", rank.rank}, {"host", rank.host}, {"silent_s", orNull(rank.silentS)}});
    for (const LateRankRow& late : state.late)
        object["late"].push_back(
            {{"rank", late.rank}, {"cost_ns_per_step", late.costNsPerStep}, {"share", late.share}});
    for (const CommunicatorRow& row : state.communicators)
        object["communicators"].push_back({{"id", row.id},
                                           {"group", row.group},
                                           {"ranks", row.ranks},
                                           {"count_per_step", row.countPerStep},
                                           {"bytes_per_step", orNull(row.bytesPerStep)},
                                           {"busbw_bytes_per_s", orNull(row.busBytesPerS)},
                                           {"wait_ns_per_rank_step", orNull(row.waitNsPerRankStep)}});
    for (const DeviceRow& device : state.devices) object["devices"].push_back(deviceJson(device));
    for (const job::Finding& finding : state.findings) object["findings"].push_back(findingJson(finding));
    return object.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
}

}  // namespace rankscope::cli
