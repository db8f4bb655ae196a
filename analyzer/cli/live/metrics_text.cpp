// SPDX-License-Identifier: Apache-2.0
// The names and labels below are what dashboards and alerts of others rest on: docs/metrics.md promises them.
#include "analyzer/cli/live/metrics_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analyzer/cli/console/options.h"
#include "analyzer/text/exposition.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::cli {
namespace {

using text::Exposition;
using Labels = Exposition::Labels;

class Metrics {
  public:
    Metrics(const LiveState& state, const std::string& host) : m_state(state), m_run(labelOf(state.run)) {
        for (const RankRow& rank : state.ranks) m_hosts[rank.rank] = rank.host;
        const bool any = std::ranges::any_of(state.ranks, [&](const RankRow& rank) { return rank.host == host; });
        for (const RankRow& rank : state.ranks)
            if (!any || rank.host == host) m_ranks.insert(rank.rank);
    }

    std::string text() && {
        addRun();
        addRanks();
        addCommunicators();
        addDevices();
        addFindings();
        return std::move(m_out).end();
    }

  private:
    static std::string labelOf(const std::string& bytes) {
        constexpr size_t kLongest = 200;
        return text::shortened(text::oneLine(bytes), kLongest);
    }
    Labels ofRun() const { return {{"run", m_run}}; }
    Labels ofRank(int rank) const {
        const auto host = m_hosts.find(rank);
        return {{"run", m_run},
                {"rank", std::to_string(rank)},
                {"host", host == m_hosts.end() ? "" : labelOf(host->second)}};
    }

    void addRun() {
        m_out.gauge("rankscope_run_running", "", "1 while the job runs and records, 0 before and after.");
        m_out.sample(ofRun(), m_state.phase == LivePhase::running ? 1 : 0);
        m_out.gauge("rankscope_look_timestamp_seconds", "seconds", "When the job was looked at, Unix time.");
        m_out.sample(ofRun(), static_cast<double>(m_state.unixNs) / kNsPerS);
        m_out.gauge("rankscope_world_size", "", "Ranks of the job.");
        if (m_state.worldSize) m_out.sample(ofRun(), *m_state.worldSize);
        m_out.gauge("rankscope_ranks", "", "Ranks that record, on all hosts that share the run.");
        m_out.sample(ofRun(), static_cast<double>(m_state.ranks.size()));
        m_out.gauge("rankscope_step_seconds", "seconds", "Typical step: the median of those of the window.");
        if (m_state.stepNs) m_out.sample(ofRun(), *m_state.stepNs / kNsPerS);
        m_out.gauge("rankscope_last_step_seconds", "seconds", "The last step.");
        if (m_state.lastStepNs) m_out.sample(ofRun(), *m_state.lastStepNs / kNsPerS);
        m_out.gauge("rankscope_steps", "", "Steps in the window.");
        m_out.sample(ofRun(), m_state.steps);
        m_out.gauge("rankscope_losses", "", "Parts of the recording that are lost, warnings and errors.");
        m_out.sample(ofRun(), static_cast<double>(m_state.losses));
    }

    void addRanks() {
        std::map<int, double> costNs;  // ranks that cost nothing are 0, so that series do not come and go
        for (const int rank : m_ranks) costNs[rank] = 0;
        for (const LateRankRow& late : m_state.late)
            if (m_ranks.contains(late.rank)) costNs[late.rank] = late.costNsPerStep;
        m_out.gauge(
            "rankscope_rank_late_seconds", "seconds",
            "What the others lose to this rank in a step: waiting, and transfers that compute would have hidden.");
        for (const auto& [rank, ns] : costNs) m_out.sample(ofRank(rank), ns / kNsPerS);
        m_out.gauge("rankscope_rank_late_ratio", "ratio", "The same as a share of the step.");
        if (m_state.stepNs && *m_state.stepNs > 0)
            for (const auto& [rank, ns] : costNs) m_out.sample(ofRank(rank), ns / *m_state.stepNs);
        m_out.gauge("rankscope_rank_silent_seconds", "seconds",
                    "For how long the rank recorded nothing, against the rank that recorded last.");
        for (const RankRow& rank : m_state.ranks)
            if (rank.silentS && m_ranks.contains(rank.rank)) m_out.sample(ofRank(rank.rank), *rank.silentS);
    }

    Labels ofCommunicator(const CommunicatorRow& row) const {
        return {{"run", m_run}, {"communicator", std::to_string(row.id)}, {"group", labelOf(row.group)}};
    }
    void addCommunicators() {
        m_out.gauge("rankscope_communicator_bus_bytes_per_second", "",
                    "Bus bandwidth of its collectives as nccl-tests count it, weighted by their time.");
        for (const CommunicatorRow& row : m_state.communicators)
            if (row.busBytesPerS) m_out.sample(ofCommunicator(row), *row.busBytesPerS);
        m_out.gauge("rankscope_communicator_wait_seconds", "seconds",
                    "Time that a member waits for the last one in a step, mean over the members.");
        for (const CommunicatorRow& row : m_state.communicators)
            if (row.waitNsPerRankStep) m_out.sample(ofCommunicator(row), *row.waitNsPerRankStep / kNsPerS);
    }

    template <typename Value>
    void ofDevices(Value DeviceRow::*value, double factor) {
        for (const DeviceRow& device : m_state.devices)
            if ((device.*value) && m_ranks.contains(device.rank))
                m_out.sample(ofRank(device.rank), static_cast<double>(*(device.*value)) * factor);
    }
    void addDevices() {
        constexpr double kHzPerMhz = 1e6, kWPerMw = 1e-3, kPerPercent = 0.01;
        m_out.gauge("rankscope_device_sm_clock_hertz", "hertz", "Clock of the device's multiprocessors.");
        ofDevices(&DeviceRow::smMhz, kHzPerMhz);
        m_out.gauge("rankscope_device_sm_clock_max_hertz", "hertz", "The highest that it can have.");
        ofDevices(&DeviceRow::smMaxMhz, kHzPerMhz);
        m_out.gauge("rankscope_device_throttled", "", "1 for a reason by which NVML says that clocks are low.");
        for (const DeviceRow& device : m_state.devices)
            if (device.clocksEvents && m_ranks.contains(device.rank))
                for (const auto& [reason, bits] :
                     {std::pair{"power_cap", 0x4}, {"thermal", 0x60}, {"power_brake", 0x80}}) {
                    Labels labels = ofRank(device.rank);
                    labels.emplace_back("reason", reason);
                    m_out.sample(labels, (*device.clocksEvents & bits) != 0 ? 1 : 0);
                }
        m_out.gauge("rankscope_device_power_watts", "watts", "Power that it draws.");
        ofDevices(&DeviceRow::powerMw, kWPerMw);
        m_out.gauge("rankscope_device_power_limit_watts", "watts", "Its enforced limit.");
        ofDevices(&DeviceRow::powerLimitMw, kWPerMw);
        m_out.gauge("rankscope_device_temperature_celsius", "celsius", "Its temperature.");
        ofDevices(&DeviceRow::temperatureC, 1);
        m_out.gauge("rankscope_device_utilization_ratio", "ratio", "Of the time, in which a kernel ran.");
        ofDevices(&DeviceRow::utilizationPercent, kPerPercent);
        m_out.gauge("rankscope_device_memory_used_bytes", "bytes", "Its memory in use, by all processes.");
        ofDevices(&DeviceRow::memoryUsedBytes, 1);
        m_out.counter("rankscope_device_ecc_uncorrected_errors", "",
                      "Uncorrected memory errors since the driver was loaded.");
        ofDevices(&DeviceRow::eccUncorrected, 1);
        m_out.counter("rankscope_device_nvlink_errors", "", "Replays, recoveries and CRC errors of its NVLinks.");
        ofDevices(&DeviceRow::nvlinkErrors, 1);
        m_out.gauge("rankscope_device_last_xid", "", "The last critical error (Xid) of the device in this job.");
        ofDevices(&DeviceRow::xid, 1);
    }

    void addFindings() {
        m_out.gauge("rankscope_finding_ratio", "ratio",
                    "A finding in the window; the value is the share of the step that its repair saves.");
        std::map<Labels, double> worst;  // two of one diagnosis may name the same ranks
        for (const job::Finding& finding : m_state.findings) {
            const Labels labels = {{"run", m_run},
                                   {"diagnosis", finding.id},
                                   {"ranks", labelOf(text::rangesText(finding.ranks))},
                                   {"verdict", finding.verdict == job::Verdict::found ? "found" : "inconclusive"}};
            double& value = worst[labels];
            value = std::max(value, finding.severity);
        }
        for (const auto& [labels, value] : worst) m_out.sample(labels, value);
    }

    const LiveState& m_state;
    std::string m_run;
    std::map<int, std::string> m_hosts;
    std::set<int> m_ranks;
    Exposition m_out;
};

}  // namespace

std::string metricsText(const LiveState& state, const std::string& host) {
    return Metrics(state, host).text();
}

}  // namespace rankscope::cli
