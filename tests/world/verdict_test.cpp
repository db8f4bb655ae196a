// SPDX-License-Identifier: Apache-2.0
// Holds verdicts on links against published nccl-tests tables: told what a user tells, the makers' rates, no size of
// any table is slow by RS204's measure, and the largest are at their ceiling by RS203's. Prints the table that
// reference/README.md has of it. An argument names a file of further tables (table_list.h); these are printed only.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "analyzer/costs/nccl_tests_table.h"
#include "analyzer/costs/reached_share.h"
#include "analyzer/facts/operation.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/job/link_probes.h"
#include "collector/store/error.h"
#include "tests/world/table_list.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

constexpr int kSkipped = 77;  // as CTest is told
/// From here on a table shows what its links carry: the start-up is over, and so is the ramp.
constexpr int64_t kLarge = 256 << 20;

/// So many times as slow a link is slow, whichever healthy machine it is compared with: NVLink and InfiniBand at a
/// third of what they reach are out of order.
constexpr double kWorse = 3;

struct Verdicts {
    size_t sizes = 0, slow = 0, between = 0, large = 0, largeAtCeiling = 0, worseSlow = 0, worseAtCeiling = 0;
    double slowest = 0, reached = 0;  // of the slowness that is still healthy; of the peak

    /// A peak that a table exceeds says nothing of a slow link: it is refuted.
    bool refutes() const { return reached > job::ReachedPeakThresholds::kRefuted; }
    bool hold() const {
        return slow == 0 && largeAtCeiling == large && large > 0 &&
               (refutes() || (worseSlow == large && worseAtCeiling == 0));
    }
};

Verdicts judge(const costs::NcclTestsTable& table, const costs::LinkPeaks& peaks) {
    facts::Communicator group;
    group.size = table.ranks;
    group.nodes = std::max(1, table.nodes);
    group.smallestNode = std::max(1, group.size / group.nodes);
    Verdicts verdicts;
    job::LinkProbe probe{.share = costs::ceilingShare(peaks, group, table.op).share};
    const std::optional<costs::LinkModel> link = costs::linkModel(peaks, group, table.op);
    const auto lookAt = [&](double bytes, double ns) {
        const auto expected =
            job::expectedOfLargeNs(peaks, group, table.op, bytes, {table.algorithm, table.protocol}, ns);
        if (!expected || ns <= 0) return false;
        probe.slowness = ns / *expected;
        probe.lateness = costs::healthyLateness(*link, bytes);
        probe.compareWithOthers();
        return true;
    };
    for (const costs::NcclTestsRow& row : table.rows) {
        const double ns = 1000 * table.timeUs(row);
        // Communicators of a job count an all-gather's bytes of all ranks, as nccl-tests do.
        const auto bytes = static_cast<double>(row.bytes);
        if (!lookAt(bytes, ns)) continue;
        ++verdicts.sizes;
        verdicts.slow += probe.slow() ? 1 : 0;
        verdicts.between += !probe.slow() && !probe.atCeiling() ? 1 : 0;
        verdicts.slowest = std::max(verdicts.slowest, probe.slowness / probe.healthy);
        if (row.bytes < kLarge) continue;
        ++verdicts.large;
        verdicts.largeAtCeiling += probe.atCeiling() ? 1 : 0;
        verdicts.reached = std::max(verdicts.reached, bytes * facts::busFactor(table.op, table.ranks) / ns /
                                                          *peaks.busCeiling(group, table.op));
        if (!lookAt(bytes, kWorse * ns)) continue;
        verdicts.worseSlow += probe.slow() ? 1 : 0;
        verdicts.worseAtCeiling += probe.atCeiling() ? 1 : 0;
    }
    return verdicts;
}

/// Returns how many tables were refused their verdict.
int print(const std::vector<ListedTable>& machines, size_t& tables) {
    int failed = 0;
    fmt::print(
        "| table | told | sizes that bytes decide | slow | neither | of {} MiB and more at the ceiling | most "
        "reached of the peak | slowest, 1.5 is slow | of these slow at {:.0f} times their time |\n| --- | --- | --- | "
        "--- | --- | --- | --- | --- | --- |\n",
        kLarge >> 20, kWorse);
    for (const ListedTable& machine : machines) {
        std::vector<costs::NcclTestsTable> read;
        try {
            read = costs::readNcclTestsTables(machine.file, {machine.op, {}, {}});
        } catch (const store::Error& error) {
            fmt::print("refused: {}\n", error.cause());
            continue;
        }
        for (const costs::NcclTestsTable& table : read) {
            costs::LinkPeaks peaks = costs::parseLinkPeaks(machine.links);
            if (peaks.intra && machine.hostMemory) peaks.intra->medium = costs::LinkMedium::hostMemory;
            const Verdicts v = judge(table, peaks);
            ++tables;
            failed += v.hold() ? 0 : 1;
            fmt::print("| {}, {} of {} on {} | {} | {} | {} | {} | {} of {} | {:.2f} | {:.2f} | {} of {} |\n",
                       fs::path(machine.file).parent_path().filename().string() == "nccl_tests"
                           ? machine.file
                           : fs::path(machine.file).stem().string(),
                       store::toText(table.op), table.ranks, table.nodes, machine.links, v.sizes, v.slow, v.between,
                       v.largeAtCeiling, v.large, v.reached, v.slowest, v.worseSlow, v.large);
        }
    }
    return failed;
}

int run(const char* list) {
    size_t tables = 0;
    if (list != nullptr) {
        const int failed = print(readTableList(list), tables);
        fmt::print("{} of {} tables do not hold\n", failed, tables);
        return 0;
    }
    if (!fs::exists(RANKSCOPE_RECORDED_TABLES)) {
        fmt::print("no published tables beside this source tree ({}): nothing to hold\n", RANKSCOPE_RECORDED_TABLES);
        return kSkipped;
    }
    const std::vector<ListedTable> recorded = recordedTables(RANKSCOPE_RECORDED_TABLES);
    const int failed = print(recorded, tables);
    fmt::print(
        "{}: no size of {} tables is called slow, all large ones are at their ceiling, and slow where they take "
        "{:.0f} times as long\n",
        failed == 0 && tables == recorded.size() ? "holds" : "FAILS", tables, kWorse);
    return failed + (tables == recorded.size() ? 0 : 1);
}

}  // namespace
}  // namespace rankscope

int main(int count, char** arguments) {
    return rankscope::run(count > 1 ? arguments[1] : nullptr);
}
