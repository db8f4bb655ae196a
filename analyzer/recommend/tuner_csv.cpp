// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/tuner_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <ranges>

namespace rankscope::recommend {
namespace {

constexpr const char* kHeading =
    "collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff";
constexpr size_t kMinColumns = 8, kMaxColumns = 10;
const std::vector<std::string> kCollectives = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"};
const std::vector<std::string> kAlgorithms = {"tree",      "ring", "collnet_direct", "collnet_chain", "nvls",
                                              "nvls_tree", "pat"};
const std::vector<std::string> kProtocols = {"ll", "ll128", "simple"};

/// Ends the reading of a line.
struct Refusal {
    std::string what, hint;
};

std::vector<std::string> columnsOf(std::string_view line) {
    std::vector<std::string> columns;
    for (const auto column : line | std::views::split(','))
        columns.emplace_back(trimmed(std::string_view(column.begin(), column.end())));
    return columns;
}

std::string readName(const std::string& text, const char* column, const std::vector<std::string>& names) {
    if (std::ranges::find(names, text) != names.end()) return text;
    std::string plain;
    for (char c : text)
        if (std::isalnum(static_cast<unsigned char>(c)))
            plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (const std::string& name : names) {
        std::string bare = name;
        std::erase(bare, '_');
        if (bare == plain) throw Refusal{fmt::format("unknown {} '{}'", column, text), fmt::format("write {}", name)};
    }
    throw Refusal{fmt::format("unknown {} '{}'", column, text), fmt::format("choose from {}", fmt::join(names, ", "))};
}

/// A number of at least `smallest`, or -1.
int64_t readNumber(const std::string& text, const char* column, int64_t smallest, int64_t largest = INT64_MAX) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = !text.empty() && text.size() <= 18 && error == std::errc() && end == text.data() + text.size();
    if (whole && (value == -1 || (value >= smallest && value <= largest)) && text != "-0") return value;
    const std::string range = largest == INT64_MAX ? fmt::format("a whole number of {} or more", smallest)
                                                   : fmt::format("a whole number from {} to {}", smallest, largest);
    throw Refusal{fmt::format("{} is '{}'", column, text),
                  fmt::format("write {}, or -1 for {}", range,
                              std::string_view(column) == "channels" ? "NCCL's own choice" : "any")};
}

/// What NCCL never offers, whatever the machine (generate.py and tuning.cc of NCCL 2.28).
void refuseImpossible(const TunerRow& row) {
    const std::string& a = row.algorithm;
    const bool lowLatency = row.protocol != "simple";
    if (lowLatency && a != "ring" && a != "tree")
        throw Refusal{fmt::format("{} with {}", a, row.protocol),
                      "ll and ll128 exist for ring and tree only: write simple"};
    const bool gathers = row.collective == "allgather" || row.collective == "reducescatter";
    const auto refuse = [&](const char* hint) { throw Refusal{fmt::format("{} with {}", row.collective, a), hint}; };
    if (a == "pat" && !gathers) refuse("pat exists for allgather and reducescatter only");
    if ((a == "tree" || a == "collnet_chain" || a == "nvls_tree") && row.collective != "allreduce")
        refuse("tree, collnet_chain and nvls_tree exist for allreduce only");
    if ((a == "nvls" || a == "collnet_direct") && !gathers && row.collective != "allreduce")
        refuse("broadcast and reduce have ring only");
    if (a == "nvls_tree" && row.nodes == 1) refuse("nvls_tree needs more than one node; inside a node it is nvls");
    // Across nodes these run in all the channels they are told, without a look at how many the communicator has
    // (scheduleCollTasksToPlan).
    if (row.channels != -1 && a != "ring" && a != "tree" && a != "pat")
        throw Refusal{fmt::format("{} with {} channels", a, row.channels),
                      "channels can be set for ring, tree and pat only: write -1"};
}

TunerRow parseRow(std::string_view line) {
    const auto columns = columnsOf(line);
    if (columns.size() < kMinColumns || columns.size() > kMaxColumns)
        throw Refusal{fmt::format("{} column{} instead of {} to {}", columns.size(), columns.size() == 1 ? "" : "s",
                                  kMinColumns, kMaxColumns),
                      fmt::format("the columns are {}", kHeading)};
    TunerRow row;
    row.collective = readName(columns[0], "collective", kCollectives);
    row.minBytes = std::max<int64_t>(0, readNumber(columns[1], "min_bytes", 0));
    row.maxBytes = readNumber(columns[2], "max_bytes", 0);
    if (row.maxBytes != -1 && row.minBytes > row.maxBytes)
        throw Refusal{fmt::format("min_bytes {} is above max_bytes {}", row.minBytes, row.maxBytes),
                      "write the smaller size first; -1 as max_bytes has no end"};
    row.algorithm = readName(columns[3], "algorithm", kAlgorithms);
    row.protocol = readName(columns[4], "protocol", kProtocols);
    row.channels = readNumber(columns[5], "channels", 1, kMaxTunerChannels);
    row.nodes = readNumber(columns[6], "nNodes", 1);
    row.ranks = readNumber(columns[7], "nRanks", 2);
    if (row.nodes != -1 && row.ranks != -1 && row.nodes > row.ranks)
        throw Refusal{fmt::format("{} nodes with {} ranks", row.nodes, row.ranks),
                      "nNodes comes first, then nRanks, which counts all nodes together"};
    if (columns.size() > 8) row.pipeOps = readNumber(columns[8], "numPipeOps", 1);
    if (columns.size() > 9) row.registered = readNumber(columns[9], "regBuff", 0, 1);
    refuseImpossible(row);
    return row;
}

bool meet(int64_t a, int64_t b) {
    return a == -1 || b == -1 || a == b;
}

bool overlap(const TunerRow& a, const TunerRow& b) {
    const bool sizesMeet =
        (b.maxBytes == -1 || a.minBytes <= b.maxBytes) && (a.maxBytes == -1 || b.minBytes <= a.maxBytes);
    return a.collective == b.collective && sizesMeet && meet(a.nodes, b.nodes) && meet(a.ranks, b.ranks) &&
           meet(a.pipeOps, b.pipeOps) && meet(a.registered, b.registered);
}

void addRow(TunerFile& file, TunerRow row) {
    for (const TunerRow& earlier : file.rows)
        if (overlap(earlier, row))
            throw Refusal{fmt::format("overlaps line {}: some {} matches both", earlier.line, row.collective),
                          "give them sizes, nNodes or nRanks that cannot both hold"};
    if (file.rows.size() == kMaxTunerRows)
        throw Refusal{fmt::format("more than {} rows", kMaxTunerRows),
                      "join neighbouring sizes that use the same algorithm and protocol"};
    file.rows.push_back(std::move(row));
}

bool isSilent(std::string_view line) {
    const auto text = trimmed(line);
    if (text.empty() || text.front() == '#') return true;
    const auto first = text.substr(0, text.find(','));
    return first.size() < text.size() &&
           (trimmed(first) == "collective" || trimmed(first) == "collective_type");  // the latter in NVIDIA's files
}

}  // namespace

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
    return text;
}

TunerFile parseTunerCsv(std::string_view text) {
    TunerFile file;
    int number = 0;
    bool blank = true;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        const auto line = text.substr(begin, end - begin);
        begin = end + 1;
        ++number;
        blank = blank && trimmed(line).empty();
        if (isSilent(line)) continue;
        try {
            TunerRow row = parseRow(line);
            row.line = number;
            addRow(file, std::move(row));
        } catch (const Refusal& refusal) {
            file.problems.push_back({number, refusal.what, refusal.hint});
        }
    }
    // Nothing at all is a file that went wrong; a heading without rows forces nothing, as its author wanted.
    if (blank) file.problems.push_back({0, "nothing in it", fmt::format("write lines of {}", kHeading)});
    return file;
}

std::string formatTunerRow(const TunerRow& row) {
    std::string line = fmt::format("{},{},{},{},{},{},{},{}", row.collective, row.minBytes, row.maxBytes, row.algorithm,
                                   row.protocol, row.channels, row.nodes, row.ranks);
    if (row.pipeOps != -1 || row.registered != -1) line += fmt::format(",{}", row.pipeOps);
    if (row.registered != -1) line += fmt::format(",{}", row.registered);
    return line;
}

std::string formatTunerCsv(const std::vector<TunerRow>& rows) {
    std::string text =
        "# docs/tuner-csv.md tells what the columns mean\n# "
        "collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]\n";
    for (const TunerRow& row : rows) text += formatTunerRow(row) + '\n';
    return text;
}

}  // namespace rankscope::recommend
