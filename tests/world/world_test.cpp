// SPDX-License-Identifier: Apache-2.0
// Holds what the analyzer makes of published nccl-tests tables against these tables: every size is left out once and
// read off the others. Prints what reference/README.md says of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "analyzer/costs/nccl_tests_table.h"
#include "analyzer/costs/table_evidence.h"
#include "analyzer/costs/table_trust.h"
#include "analyzer/facts/statistics.h"
#include "collector/store/error.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

constexpr int kSkipped = 77;  // as CTest is told
constexpr double kMostMedian = 0.02, kMostTail = 0.25, kLeastInside = 0.9;

/// Holds what was found of one kind of tables.
struct Group {
    size_t tables = 0, kinked = 0, kinks = 0, inside = 0, hostBound = 0;
    std::vector<double> errors, widths;  // shares of the measured time

    void add(const Group& other) {
        tables += other.tables, kinked += other.kinked, kinks += other.kinks;
        inside += other.inside, hostBound += other.hostBound;
        errors.insert(errors.end(), other.errors.begin(), other.errors.end());
        widths.insert(widths.end(), other.widths.begin(), other.widths.end());
    }
    double insideShare() const { return errors.empty() ? 0 : static_cast<double>(inside) / errors.size(); }
    std::string line(const std::string& name) const {
        return fmt::format("| {} | {} | {} | {:.1f} % | {:.1f} % | {:.0f} % | {:.1f} % | {} in {} | {} |\n", name,
                           tables, errors.size(), 100 * facts::median(errors), 100 * facts::quantile(errors, 0.9),
                           100 * insideShare(), 100 * facts::median(widths), kinks, kinked, hostBound);
    }
};

Group leaveEachOut(const costs::NcclTestsTable& table) {
    const std::vector<costs::SizedTime> all = costs::sizedTimes(table);
    Group group;
    group.tables = 1;
    const costs::SizeCurve whole(all);
    group.kinks = whole.kinks().size();
    group.kinked = group.kinks > 0 ? 1 : 0;
    group.hostBound = costs::hostBoundBytes(table) > 0 ? 1 : 0;
    for (const costs::SizedTime& left : whole.points()) {
        std::vector<costs::SizedTime> others;
        for (const costs::SizedTime& one : all)
            if (std::abs(std::log(one.bytes / left.bytes)) > std::log(costs::SizeCurve::kAlike)) others.push_back(one);
        const auto read = costs::SizeCurve(others).ns(left.bytes);
        if (!read) continue;
        group.errors.push_back(std::abs(read->expected / left.ns - 1));
        group.widths.push_back((read->high - read->low) / 2 / left.ns);
        group.inside += left.ns >= read->low && left.ns <= read->high ? 1 : 0;
    }
    return group;
}

std::vector<fs::path> foldersOf(const char* given) {
    std::vector<fs::path> folders{RANKSCOPE_RECORDED_TABLES};
    std::string text = given == nullptr ? "" : given;
    for (size_t from = 0; from < text.size();) {
        const size_t colon = std::min(text.find(':', from), text.size());
        if (colon > from) folders.emplace_back(text.substr(from, colon - from));
        from = colon + 1;
    }
    std::erase_if(folders, [](const fs::path& folder) { return !fs::is_directory(folder); });
    return folders;
}

std::vector<fs::path> filesIn(const std::vector<fs::path>& folders) {
    std::vector<fs::path> files;
    for (const fs::path& folder : folders)
        for (const auto& entry : fs::recursive_directory_iterator(folder))
            if (entry.is_regular_file() && entry.path().extension() != ".md") files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

/// Where nothing tells an all-gather from a reduce-scatter or an all-to-all: their times are all out of place.
std::vector<costs::NcclTestsTable> read(const fs::path& file) {
    try {
        return costs::readNcclTestsTables(file);
    } catch (const store::Error& error) {
        if (error.cause().find("operation is not told") == std::string::npos) throw;
        return costs::readNcclTestsTables(file, {store::Op::allGather, {}, {}});
    }
}

int run(bool eachTable) {
    const std::vector<fs::path> folders = foldersOf(std::getenv("RANKSCOPE_WORLD_TABLES"));
    std::map<int, Group> byNodes;  // 1: one node; 2: several
    std::map<std::string, size_t> refused;
    size_t files = 0, setAside = 0;
    for (const fs::path& file : filesIn(folders)) {
        std::vector<costs::NcclTestsTable> tables;
        try {
            tables = read(file);
        } catch (const store::Error& error) {
            ++refused[error.cause().substr(error.cause().find(": ") + 2)];
            if (eachTable) fmt::print("{}: refused: {}\n", file.string(), error.cause());
            continue;
        }
        ++files;
        for (const costs::NcclTestsTable& table : tables) {
            for (const costs::TableNote& note : costs::trustedTables({table}).setAside) {
                ++setAside;
                fmt::print("set aside: {}\n", note.text);
            }
            const Group one = leaveEachOut(table);
            if (eachTable) {
                fmt::print("{}:{} {} of {} on {}: {}", file.string(), table.line, store::toText(table.op), table.ranks,
                           table.nodes, one.line(""));
                const costs::SizeCurve curve(costs::sizedTimes(table));
                for (const costs::Kink& kink : curve.kinks())
                    fmt::print("    {:.0f} B {:.1f} us, smooth {:.1f}; {:.0f} B {:.1f} us\n", kink.bytes, kink.ns / 1e3,
                               kink.smoothNs / 1e3, kink.insteadBytes, kink.insteadNs / 1e3);
            }
            byNodes[table.nodes > 1 ? 2 : 1].add(one);
        }
    }
    if (files == 0) {
        fmt::print("no published tables beside this source tree ({}) nor in RANKSCOPE_WORLD_TABLES: nothing to hold\n",
                   RANKSCOPE_RECORDED_TABLES);
        return kSkipped;
    }
    Group all;
    fmt::print(
        "| tables of | number | sizes | median error | p90 | in the quoted error | half of its width, median | kinks | "
        "host-bound |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (const auto& [nodes, group] : byNodes) {
        fmt::print("{}", group.line(nodes > 1 ? "several nodes" : "one node"));
        all.add(group);
    }
    fmt::print("{}", all.line("all"));
    for (const auto& [why, count] : refused) fmt::print("refused {}: {}\n", count, why);
    int failed = 0;
    const auto hold = [&](bool holds, const std::string& goal) {
        fmt::print("{}: {}\n", holds ? "holds" : "FAILS", goal);
        failed += holds ? 0 : 1;
    };
    hold(facts::median(all.errors) <= kMostMedian, fmt::format("median error at most {:.0f} %", 100 * kMostMedian));
    hold(facts::quantile(all.errors, 0.9) <= kMostTail, fmt::format("p90 at most {:.0f} %", 100 * kMostTail));
    hold(all.insideShare() >= kLeastInside,
         fmt::format("{:.0f} % of sizes within the quoted error", 100 * kLeastInside));
    hold(setAside == 0, "no published table is taken for one that cannot be so");
    return failed;
}

}  // namespace
}  // namespace rankscope

int main(int count, char** arguments) {
    return rankscope::run(count > 1 && std::string(arguments[1]) == "--each");
}
