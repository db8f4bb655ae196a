// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/health_evidence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/facts/statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
namespace {

// Of the peers' clock: devices of one model under one load differ by some percent.
constexpr double kLowerClock = 0.95;
constexpr int64_t kNsPerReading = 1'000'000'000;

struct Window {
    int64_t startNs = std::numeric_limits<int64_t>::max();
    int64_t endNs = std::numeric_limits<int64_t>::min();

    /// A row holds readings of some seconds; without a time (virtual runs) it is of the whole run.
    bool holds(std::optional<int64_t> timeNs, int64_t readings) const {
        return !timeNs || (*timeNs <= endNs && *timeNs + readings * kNsPerReading >= startNs);
    }
};

Window analysedWindow(const job::Analysis& analysis) {
    Window window;
    if (analysis.steps.empty()) return window;
    for (const facts::RankSummary& rank : analysis.ranks) {
        if (const auto* first = analysis.window(rank.rank, analysis.steps.front()))
            window.startNs = std::min(window.startNs, first->startNs);
        if (const auto* last = analysis.window(rank.rank, analysis.steps.back()))
            window.endNs = std::max(window.endNs, last->endNs());
    }
    return window;
}

/// By how much a counter grew from one reading of it to the next.
class Growth {
  public:
    void add(const std::optional<int64_t>& value) {
        if (!value) return;
        if (m_last && *value > *m_last) m_grown += *value - *m_last;
        m_last = value;
    }
    int64_t grown() const { return m_grown; }

  private:
    std::optional<int64_t> m_last;
    int64_t m_grown = 0;
};

struct DeviceSummary {
    double smMhz = 0;  // 0: not told
    int64_t smMaxMhz = 0;
    int64_t events = 0;  // seen while the clock was no higher than that
    double powerMw = 0, powerLimitMw = 0;
    int64_t temperatureC = 0;
    Growth uncorrected, nvlinkErrors;
    std::set<int64_t> xids;
};

std::map<int, DeviceSummary> summarizeDevices(const job::Analysis& analysis) {
    const Window window = analysedWindow(analysis);
    std::map<int, std::vector<const store::DeviceHealth*>> byRank;
    for (const store::DeviceHealth& row : analysis.facts.deviceHealth)
        if (window.holds(row.timeNs, row.readings)) byRank[row.rank].push_back(&row);
    std::map<int, DeviceSummary> result;
    for (const auto& [rank, rows] : byRank) {
        DeviceSummary& summary = result[rank];
        std::vector<double> clocks, powers, limits;
        for (const store::DeviceHealth* row : rows) {
            if (row->smMhz) clocks.push_back(static_cast<double>(*row->smMhz));
            if (row->powerMw) powers.push_back(static_cast<double>(*row->powerMw));
            if (row->powerLimitMw) limits.push_back(static_cast<double>(*row->powerLimitMw));
            summary.smMaxMhz = std::max(summary.smMaxMhz, row->smMaxMhz.value_or(0));
            summary.temperatureC = std::max(summary.temperatureC, row->temperatureC.value_or(0));
            summary.uncorrected.add(row->eccUncorrected);
            summary.nvlinkErrors.add(row->nvlinkErrors);
            if (row->xid) summary.xids.insert(*row->xid);
        }
        if (clocks.empty()) continue;
        summary.smMhz = facts::median(clocks);
        summary.powerMw = powers.empty() ? 0 : facts::median(powers);
        summary.powerLimitMw = limits.empty() ? 0 : facts::median(limits);
        for (const store::DeviceHealth* row : rows)
            if (row->smMhz && static_cast<double>(*row->smMhz) <= summary.smMhz)
                summary.events |= row->clocksEvents.value_or(0);
    }
    return result;
}

std::string gigahertzText(double mhz) {
    return fmt::format("{:.2f}", mhz / 1000);
}

/// Why NVML says that clocks were low; empty where it does not. Bits of nvmlClocksEventReasons (schema.sql).
std::string reasonText(const DeviceSummary& device) {
    std::vector<std::string> reasons;
    if (device.events & 0x4)
        reasons.push_back(device.powerLimitMw > 0 ? fmt::format("power cap, {:.0f} of {:.0f} W", device.powerMw / 1000,
                                                                device.powerLimitMw / 1000)
                                                  : "power cap");
    if (device.events & 0x60)
        reasons.push_back(device.temperatureC > 0 ? fmt::format("too hot, {} C", device.temperatureC) : "too hot");
    if (device.events & 0x80) reasons.push_back("power brake of the machine");
    if ((device.events & 0xe8) == 0x8) reasons.push_back("hardware slowdown");
    if (device.events & 0x10) reasons.push_back("sync boost with a slower device");
    if (device.events & 0x2) reasons.push_back("application clocks that somebody set");
    return fmt::format("{}", fmt::join(reasons, "; "));
}

/// In front, behind what was measured: it is what a reader can act on.
void addFact(job::Finding& finding, std::string fact) {
    auto& facts = finding.evidence.facts;
    facts.insert(facts.begin() + (facts.empty() ? 0 : 1), std::move(fact));
}

double clockOfPeers(const std::map<int, DeviceSummary>& devices, const std::vector<int>& ranks) {
    std::vector<double> clocks;
    for (const auto& [rank, device] : devices)
        if (device.smMhz > 0 && std::ranges::find(ranks, rank) == ranks.end()) clocks.push_back(device.smMhz);
    return clocks.empty() ? 0 : facts::median(std::move(clocks));
}

/// Ranks whose devices had low clocks for the same reason are one sentence.
void addClocks(const std::map<int, DeviceSummary>& devices, job::Finding& finding) {
    const double peersMhz = clockOfPeers(devices, finding.ranks);
    std::map<std::string, std::vector<int>> throttled;  // by what is said of them
    for (const int rank : finding.ranks) {
        const auto known = devices.find(rank);
        if (known == devices.end() || peersMhz == 0 || known->second.smMhz == 0) continue;
        const DeviceSummary& device = known->second;
        if (device.smMhz >= kLowerClock * peersMhz || device.events == 0x1) continue;  // an idle one has low clocks
        const std::string reason = reasonText(device);
        throttled[fmt::format("{}{} GHz, by NVML{}; the other ranks' ran at {}", gigahertzText(device.smMhz),
                              device.smMaxMhz > 0
                                  ? fmt::format(" of {}", gigahertzText(static_cast<double>(device.smMaxMhz)))
                                  : "",
                              reason.empty() ? " without a reason" : ": " + reason, gigahertzText(peersMhz))]
            .push_back(rank);
        if (throttled.size() != 1 || throttled.begin()->second.size() != 1) continue;
        finding.evidence.numbers.emplace_back("sm_clock_mhz", device.smMhz);
        finding.evidence.numbers.emplace_back("sm_clock_of_peers_mhz", peersMhz);
    }
    for (const auto& [said, ranks] : throttled)
        addFact(finding, fmt::format("{} throttled to {}", text::ranksText(ranks), said));
}

void addPortErrors(const job::Analysis& analysis, job::Finding& finding) {
    std::set<int64_t> hosts;
    for (const int rank : finding.ranks)
        if (const auto* known = analysis.facts.findRank(rank)) hosts.insert(known->hostId);
    const Window window = analysedWindow(analysis);
    struct Port {
        Growth errors, discards, linkDowns;
    };
    std::map<std::pair<int64_t, std::string>, Port> ports;
    constexpr int64_t kReadings = 10;  // ports are read every ten seconds
    for (const store::PortCounter& row : analysis.facts.portCounters) {
        if (!hosts.contains(row.hostId) || !window.holds(row.timeNs, kReadings)) continue;
        Port& port = ports[{row.hostId, row.name}];
        port.errors.add(row.errors);
        port.discards.add(row.discards);
        port.linkDowns.add(row.linkDowns);
    }
    for (const auto& [place, port] : ports) {
        const auto host = analysis.facts.hosts.find(place.first);
        const std::string name = host == analysis.facts.hosts.end() ? "its host" : host->second;
        if (port.errors.grown() + port.discards.grown() + port.linkDowns.grown() == 0) continue;
        addFact(finding,
                fmt::format("port {} of {} counted meanwhile: {} errors, {} discarded packets, {} times down",
                            place.second, name, port.errors.grown(), port.discards.grown(), port.linkDowns.grown()));
    }
}

}  // namespace

void addDeviceEvidence(const job::Analysis& analysis, job::Finding& finding) {
    const std::map<int, DeviceSummary> devices = summarizeDevices(analysis);
    for (const int rank : finding.ranks) {
        const auto known = devices.find(rank);
        if (known == devices.end()) continue;
        if (const int64_t errors = known->second.uncorrected.grown(); errors > 0)
            addFact(finding, fmt::format("the device of rank {} had {} uncorrected memory error{} meanwhile", rank,
                                         errors, errors == 1 ? "" : "s"));
        if (!known->second.xids.empty())
            addFact(finding,
                    fmt::format("the driver told of critical errors of the device of rank {} meanwhile: Xid {}", rank,
                                fmt::join(known->second.xids, ", ")));
    }
    addClocks(devices, finding);
}

void addLinkEvidence(const job::Analysis& analysis, bool betweenNodes, job::Finding& finding) {
    const std::map<int, DeviceSummary> devices = summarizeDevices(analysis);
    for (const int rank : finding.ranks)
        if (const auto known = devices.find(rank); known != devices.end())
            if (const int64_t errors = known->second.nvlinkErrors.grown(); errors > 0)
                addFact(finding, fmt::format("the NVLinks of rank {} had {} errors meanwhile (replays, recoveries, "
                                             "CRC), by NVML",
                                             rank, errors));
    if (betweenNodes) addPortErrors(analysis, finding);
}

}  // namespace rankscope::diagnose
