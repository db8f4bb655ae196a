// SPDX-License-Identifier: Apache-2.0
#include "gui/session/column_text.h"

#include <fmt/format.h>

#include <cstdlib>

#include "gui/timeline/display_text.h"
#include "gui/timeline/time_axis.h"

namespace rankscope::gui {
namespace {

constexpr size_t kLongName = 4000;

struct Word {
    int64_t value;
    const char* text;
};

template <size_t N>
std::string word(const Word (&words)[N], int64_t value) {
    for (const Word& word : words)
        if (word.value == value) return fmt::format("{} ({})", word.text, value);
    return fmt::format("unknown code {}", value);
}

std::string evidenceText(int64_t bits) {
    constexpr Word kBits[] = {
        {1, "hook"},      {2, "NVTX payload"}, {4, "NCCL profiler plugin"}, {8, "external correlation"},
        {16, "imported"}, {32, "inferred"}};
    std::string text;
    for (const Word& bit : kBits)
        if (bits & bit.value) text += (text.empty() ? "" : ", ") + std::string(bit.text);
    return text.empty() ? "none" : text;
}

std::string named(const std::map<int64_t, std::string>& names, int64_t id) {
    const auto found = names.find(id);
    return found == names.end() ? fmt::format("#{}, which does not exist", id)
                                : fmt::format("{} (#{})", displayText(found->second), id);
}

std::string nullText(std::string_view table, std::string_view column) {
    if (column == "graph_node") return "none: launched directly";
    if (column == "group_id") return "none: outside a group";
    if (column == "domain_id") return "the default domain";
    if (table == "nvtx" && column == "dur_ns") return "never closed";
    return "unknown";
}

// Codes of CUPTI and of the schema; empty for other columns.
std::string codeText(std::string_view table, std::string_view column, int64_t value) {
    constexpr Word kNccl[] = {{0, "no"}, {1, "yes, known by its call"}, {2, "yes, by its name only"}};
    constexpr Word kCopies[] = {
        {1, "host to device"}, {2, "device to host"}, {8, "device to device"}, {10, "peer to peer"}};
    constexpr Word kMemory[] = {{1, "pageable"}, {2, "pinned"}, {3, "device"}, {4, "array"}, {5, "managed"}};
    constexpr Word kCalls[] = {{0, "other"}, {1, "launch"},      {2, "copy"},  {3, "set"},         {4, "allocate"},
                               {5, "free"},  {6, "synchronise"}, {7, "event"}, {8, "graph launch"}};
    constexpr Word kSources[] = {{1, "hook"}, {2, "CUPTI runtime"}, {3, "CUPTI driver"}, {4, "imported"}};
    constexpr Word kRanges[] = {{1, "push/pop range"}, {2, "start/end range"}, {3, "mark"}};
    constexpr Word kReductions[] = {{0, "sum"}, {1, "product"}, {2, "maximum"}, {3, "minimum"}, {4, "average"}};
    if (table == "kernel" && column == "nccl") return word(kNccl, value);
    if (table == "memcpy" && column == "kind") return word(kCopies, value);
    if (column == "src_memory" || column == "dst_memory") return word(kMemory, value);
    if (table == "api_call" && column == "kind") return word(kCalls, value);
    if (table == "api_call" && column == "source") return word(kSources, value);
    if (table == "nvtx" && column == "kind") return word(kRanges, value);
    if (column == "reduce_op") return word(kReductions, value);
    if (column == "evidence") return evidenceText(value);
    return {};
}

}  // namespace

std::string groupedNumber(int64_t number) {
    std::string digits = std::to_string(number);
    for (auto i = static_cast<ptrdiff_t>(digits.size()) - 3, first = number < 0 ? ptrdiff_t{1} : ptrdiff_t{0};
         i > first; i -= 3)
        digits.insert(static_cast<size_t>(i), " ");
    return digits;
}

std::string bytesText(int64_t bytes) {
    constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1024) return groupedNumber(bytes) + " bytes";
    double value = static_cast<double>(bytes) / 1024;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
    return fmt::format("{:.4g} {} ({} bytes)", value, kUnits[unit], groupedNumber(bytes));
}

std::string exactDuration(int64_t ns) {
    return ns > -1000 && ns < 1000 ? fmt::format("{} ns", ns)
                                   : fmt::format("{} ({} ns)", durationText(ns), groupedNumber(ns));
}

std::string timeText(int64_t ns) {
    return fmt::format("{}{}.{:09} s", ns < 0 ? "-" : "", std::abs(ns / 1'000'000'000), std::abs(ns % 1'000'000'000));
}

std::string ranksText(const std::vector<int32_t>& ranks) {
    std::string text;
    for (size_t i = 0; i < ranks.size();) {
        size_t last = i;
        while (last + 1 < ranks.size() &&
               static_cast<int64_t>(ranks[last + 1]) == static_cast<int64_t>(ranks[last]) + 1)
            ++last;
        if (!text.empty()) text += ", ";
        text += last == i ? std::to_string(ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
        i = last + 1;
    }
    return text;
}

std::string stringText(const RunInfo& run, int64_t id) {
    if (id <= 0 || id >= static_cast<int64_t>(run.strings.size()))
        return fmt::format("string #{}, which does not exist", id);
    return displayText(run.strings[static_cast<size_t>(id)], kLongName);
}

std::string columnText(const RunInfo& run, std::string_view table, const Column& column) {
    if (column.null) return nullText(table, column.name);
    if (const std::string code = codeText(table, column.name, column.integer); !code.empty()) return code;
    if (column.name == "name_id" || column.name == "domain_id") return stringText(run, column.integer);
    if (column.name == "stream_id") return named(run.streamNames, column.integer);
    if (column.name == "thread_id") return named(run.threadNames, column.integer);
    if (column.name == "start_ns" || column.name == "time_ns")
        return fmt::format("{} ({} ns)", timeText(column.integer), groupedNumber(column.integer));
    if (column.name.ends_with("_ns")) return exactDuration(column.integer);
    if (column.name == "bytes") return bytesText(column.integer);
    return displayText(column.text, kLongName);
}

}  // namespace rankscope::gui
