// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/diagnose/critical_step.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs209 {
namespace {

constexpr Threshold kSlowdown{"slowdown", 1.05, "x the time alone",
                              "NCCL's few multiprocessors cost a few percent on healthy devices"};
constexpr Threshold kErrors{"errors", 4, "standard errors of the ranks' mean above no slowdown",
                            "noise of single kernels is no contention"};
constexpr Threshold kEveryRank{"every rank", 0.5, "of the median loss on each rank, within its standard error",
                               "one rank alone is a slow device (RS301)"};

double lostIn(const facts::Contention& contention, int step) {
    for (const auto& [number, ns] : contention.lostNs)
        if (number == step) return ns;
    return 0;
}

void detectContention(const job::Analysis& analysis, Claims&, std::vector<job::Finding>& findings) {
    std::vector<double> shares, reached, slowdowns;
    double sum = 0, error = 0;
    std::vector<int> ranks;
    const facts::RankSummary* worst = nullptr;
    for (const facts::RankSummary& rank : analysis.ranks) {
        const facts::Contention& c = rank.contention;
        if (c.samples < facts::Contention::kFewest) continue;
        sum += c.lostShare;
        error = std::hypot(error, c.lostShareError);
        shares.push_back(c.lostShare);
        reached.push_back(c.lostShare + c.lostShareError);
        slowdowns.push_back(c.slowdown());
        ranks.push_back(rank.rank);
        if (worst == nullptr || c.lostShare > worst->contention.lostShare) worst = &rank;
    }
    if (worst == nullptr || facts::median(slowdowns) < kSlowdown) return;
    // Each rank measures the same effect: together they are surer than each alone, and none may contradict the others.
    if (sum <= kErrors * error) return;
    if (*std::min_element(reached.begin(), reached.end()) < kEveryRank * facts::median(shares)) return;

    std::vector<double> costs;
    for (int step : analysis.steps) {
        // The rank that waits least sets the beat.
        const facts::RankSummary* critical = nullptr;
        int64_t least = INT64_MAX;
        for (const facts::RankSummary& rank : analysis.ranks) {
            const facts::Attribution* attribution = analysis.attribution(rank, step);
            if (attribution == nullptr || attribution->exposedWaitNs >= least) continue;
            least = attribution->exposedWaitNs;
            critical = &rank;
        }
        if (critical == nullptr) continue;
        costs.push_back(lostIn(critical->contention, step));
    }
    if (facts::median(costs) <= 0) return;
    job::Finding finding;
    finding.id = "RS209";
    finding.ranks = finding.affectedRanks = ranks;
    setCost(analysis, costs, finding);
    setTypicalStep(analysis, costs, worst->rank, finding);
    const facts::Contention& c = worst->contention;
    const auto name = static_cast<size_t>(c.key.nameId);
    finding.cause = fmt::format(
        "compute kernels run {:.2f} times slower while NCCL kernels run beside them, on {}", facts::median(slowdowns),
        ranks.size() > 1 ? fmt::format("all {} ranks that tell", ranks.size()) : fmt::format("rank {}", ranks.front()));
    finding.evidence.facts = {
        fmt::format(
            "{} ({} blocks): {} alone, {} beside communication on rank {}",
            name < analysis.facts.strings.size() ? text::readableKernelName(analysis.facts.strings[name]) : "a kernel",
            c.key.gridBlocks, text::durationText(c.keyAloneNs), text::durationText(c.keyBesideNs), worst->rank),
        fmt::format("{} kernels of that rank compared with others of the same name, grid, block and follower",
                    c.samples),
        fmt::format("{} of compute a step is lost so", text::durationText(facts::median(costs)))};
    finding.evidence.numbers = {
        {"slowdown", facts::median(slowdowns)}, {"alone_ns", c.keyAloneNs}, {"beside_ns", c.keyBesideNs}};
    for (const facts::CommTask& task : worst->communication) {
        if (task.step < 0 || task.computeAtEndNs - task.computeBeforeNs <= 0) continue;
        finding.evidence.rows.push_back({"kernel", task.kernelId, worst->rank, "compute runs beside it"});
        if (finding.evidence.rows.size() == 3) break;
    }
    std::string channels = analysis.facts.text("env.NCCL_MAX_CTAS");
    if (channels.empty()) channels = analysis.facts.text("env.NCCL_MAX_NCHANNELS");
    finding.fix = {
        fmt::format("NCCL_MAX_CTAS=8 (NCCL_MAX_NCHANNELS before 2.17{}): fewer multiprocessors for communication",
                    channels.empty() ? "" : "; now " + channels),
        "the trade-off: fewer channels also slow communication; halve them as long as it stays hidden behind compute, "
        "and measure with rankscope compare",
        "on H100 and later: NVLink SHARP (NCCL_NVLS_ENABLE=1) or copy-engine collectives need fewer multiprocessors"};
    findings.push_back(std::move(finding));
}

Changes noContention(const job::Analysis&, const job::Finding&) {
    return {{"no-contention"}};
}

}  // namespace

const Diagnosis kContention{
    .id = "RS209",
    .title = "communication slows compute",
    .definition =
        "Kernels of one name, grid and block take longer beside NCCL kernels than alone, on every rank: communication "
        "takes multiprocessors and memory bandwidth. Only kernels of equal work are compared: those with the same "
        "kernel behind them, since forward and backward share names and grids, that ran alone "
        "often enough and about as long each time; one name and grid whose time alone depends on the data says "
        "nothing. The lost share is (duration - median alone) / time beside communication, also of kernels that are "
        "beside it for a part of their time; the cost is what the step gains without the loss.",
    .thresholds =
        {kSlowdown,
         kErrors,
         {"kernels alone", facts::Contention::kFewestAlone, "of one name, grid and block",
          "fewer do not show whether they are equal work"},
         {"shortest", facts::Contention::kShortestNs / 1e3, "us alone",
          "shorter kernels are bound by latency: beside any busy device they take microseconds longer, and fewer "
          "channels change nothing"},
         {"range alone", facts::Contention::kAloneRange, "p90 / p10 of their times",
          "beyond, their work depends on the data"},
         kEveryRank},
    .falsePositives =
        "Kernels with one name and grid whose work depends on the data, when the heavier ones happen to run beside "
        "communication.",
    .fix =
        "NCCL_MAX_CTAS / fewer channels, as long as communication stays hidden; NVLS or copy engines where the "
        "hardware has them.",
    .hasSettings = true,
    .hint = "Framed are kernels that take longer while communication runs beside them (green) than alone (blue).",
    .detect = detectContention,
    .repair = noContention,
};

}  // namespace rs209
}  // namespace rankscope::diagnose
