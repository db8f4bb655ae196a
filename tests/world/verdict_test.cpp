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

struct Verdicts {
    size_t sizes = 0, slow = 0, between = 0, large = 0, largeAtCeiling = 0;
    double slowest = 0, reached = 0;  // of the slowness that is still healthy; of the peak

    bool hold() const { return slow == 0 && largeAtCeiling == large && large > 0; }
};

Verdicts judge(const costs::NcclTestsTable& table, const costs::LinkPeaks& peaks) {
    facts::Communicator group;
    group.size = table.ranks;
    group.nodes = std::max(1, table.nodes);
    group.smallestNode = std::max(1, group.size / group.nodes);
    Verdicts verdicts;
    job::LinkProbe probe{.share = costs::ceilingShare(peaks, group, table.op).share};
    const std::optional<costs::LinkModel> link = costs::linkModel(peaks, group, table.op);
    for (const costs::NcclTestsRow& row : table.rows) {
        const double ns = 1000 * table.timeUs(row);
        // Communicators of a job count an all-gather's bytes of all ranks, as nccl-tests do.
        const auto bytes = static_cast<double>(row.bytes);
        const auto expected =
            job::expectedOfLargeNs(peaks, group, table.op, bytes, {table.algorithm, table.protocol}, ns);
        if (!expected || ns <= 0) continue;
        probe.slowness = ns / *expected;
        probe.modelError = costs::modelError(*link, bytes);
        probe.healthy = probe.mostHealthy();
        ++verdicts.sizes;
        verdicts.slow += probe.slow() ? 1 : 0;
        verdicts.between += !probe.slow() && !probe.atCeiling() ? 1 : 0;
        verdicts.slowest = std::max(verdicts.slowest, probe.slowness / probe.healthy);
        if (row.bytes < kLarge) continue;
        ++verdicts.large;
        verdicts.largeAtCeiling += probe.atCeiling() ? 1 : 0;
        verdicts.reached = std::max(verdicts.reached, bytes * facts::busFactor(table.op, table.ranks) / ns /
                                                          *peaks.busCeiling(group, table.op));
    }
    return verdicts;
}

std::vector<ListedTable> recorded() {
    // A100: 12 links of NVLink 3, 25 GB/s each way; p4d: 4 x 100 Gbit/s for 8 ranks. The table of two nodes does not
    // name its operation; its bandwidths are an all-gather's.
    std::vector<ListedTable> machines;
    for (const char* name : {"allgather", "allreduce", "alltoall", "broadcast", "reduce", "reducescatter"})
        machines.push_back({fmt::format("superbench_a100x8/nccl_{}.log", name), "intra:gbps=300"});
    machines.push_back(
        {"p4d_a100x16_efa/nccl-tests_slurm-104.out", "intra:gbps=300;inter:gbps=6.25", store::Op::allGather});
    for (ListedTable& machine : machines) machine.file = std::string(RANKSCOPE_RECORDED_TABLES) + "/" + machine.file;
    return machines;
}

/// Returns how many tables were refused their verdict.
int print(const std::vector<ListedTable>& machines, size_t& tables) {
    int failed = 0;
    fmt::print(
        "| table | told | sizes that bytes decide | slow | neither | of {} MiB and more at the ceiling | most "
        "reached of the peak | slowest, 1.5 is slow |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
        kLarge >> 20);
    for (const ListedTable& machine : machines) {
        std::vector<costs::NcclTestsTable> read;
        try {
            read = costs::readNcclTestsTables(machine.file, {machine.op, {}, {}});
        } catch (const store::Error& error) {
            fmt::print("refused: {}\n", error.cause());
            continue;
        }
        for (const costs::NcclTestsTable& table : read) {
            const Verdicts v = judge(table, costs::parseLinkPeaks(machine.links));
            ++tables;
            failed += v.hold() ? 0 : 1;
            fmt::print("| {}, {} of {} on {} | {} | {} | {} | {} | {} of {} | {:.2f} | {:.2f} |\n",
                       fs::path(machine.file).parent_path().filename().string() == "nccl_tests"
                           ? machine.file
                           : fs::path(machine.file).stem().string(),
                       store::toText(table.op), table.ranks, table.nodes, machine.links, v.sizes, v.slow, v.between,
                       v.largeAtCeiling, v.large, v.reached, v.slowest);
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
    const int failed = print(recorded(), tables);
    fmt::print("{}: no size of {} tables is called slow, all large ones are at their ceiling\n",
               failed == 0 && tables == recorded().size() ? "holds" : "FAILS", tables);
    return failed + (tables == recorded().size() ? 0 : 1);
}

}  // namespace
}  // namespace rankscope

int main(int count, char** arguments) {
    return rankscope::run(count > 1 ? arguments[1] : nullptr);
}
