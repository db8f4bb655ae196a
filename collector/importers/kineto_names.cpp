// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/kineto_names.h"

#include <charconv>
#include <utility>

namespace rankscope::collector {

namespace {

int32_t copyKind(std::string_view text) {
    constexpr std::pair<std::string_view, int32_t> kKinds[] = {{"HtoD", 1}, {"DtoH", 2}, {"HtoA", 3}, {"AtoH", 4},
                                                               {"AtoA", 5}, {"AtoD", 6}, {"DtoA", 7}, {"DtoD", 8},
                                                               {"HtoH", 9}, {"PtoP", 10}};
    for (const auto& [name, kind] : kKinds) {
        if (text == name) return kind;
    }
    return 0;
}

std::optional<int32_t> memoryKind(std::string_view text) {
    constexpr std::pair<std::string_view, int32_t> kKinds[] = {
        {"Pageable", 1}, {"Pinned", 2}, {"Device", 3}, {"Array", 4}, {"Managed", 5}};
    for (const auto& [name, kind] : kKinds) {
        if (text == name) return kind;
    }
    return std::nullopt;  // ROCm's "Host" does not tell pageable from pinned
}

/// Skips to the next number of a list; false at its end.
bool nextNumber(std::string_view& text, int64_t& number) {
    while (!text.empty() && (text.front() == ' ' || text.front() == ',')) text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return true;
}

}  // namespace

CopyText parseCopy(std::string_view name, std::string_view kind) {
    CopyText copy;
    copy.kind = copyKind(kind);
    constexpr std::string_view kPrefix = "Memcpy ";
    if (name.substr(0, kPrefix.size()) != kPrefix) return copy;
    name.remove_prefix(kPrefix.size());
    if (copy.kind == 0) copy.kind = copyKind(name.substr(0, name.find(' ')));
    const size_t open = name.find('(');
    const size_t arrow = name.find(" -> ");
    const size_t close = name.find(')');
    if (open == std::string_view::npos || arrow == std::string_view::npos || close == std::string_view::npos ||
        !(open < arrow && arrow < close))
        return copy;
    copy.srcMemory = memoryKind(name.substr(open + 1, arrow - open - 1));
    copy.dstMemory = memoryKind(name.substr(arrow + 4, close - arrow - 4));
    return copy;
}

int32_t parseSynchronizationKind(std::string_view text) {
    if (text == "Event Sync" || text == "Event Synchronize") return 1;
    if (text == "Stream Wait Event") return 2;
    if (text == "Stream Sync" || text == "Stream Synchronize") return 3;
    if (text == "Context Sync" || text == "Context Synchronize" || text == "Device Sync") return 4;
    return 0;
}

std::optional<int64_t> firstTensorElements(std::string_view dims) {
    if (dims.substr(0, 2) != "[[" || dims.substr(0, 3) == "[[[" || dims.substr(0, 3) == "[[]") return std::nullopt;
    dims.remove_prefix(2);
    int64_t elements = 1;
    for (int64_t size = 0; nextNumber(dims, size);) {
        if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) return std::nullopt;
    }
    if (dims.empty() || dims.front() != ']') return std::nullopt;
    return elements;
}

std::string_view firstInputType(std::string_view types) {
    if (types.substr(0, 2) != "[\"") return {};
    types.remove_prefix(2);
    return types.substr(0, types.find('"'));
}

std::vector<int64_t> parseRanks(std::string_view text) {
    std::vector<int64_t> ranks;
    if (text.empty() || text.front() != '[') return ranks;
    text.remove_prefix(1);
    for (int64_t rank = 0; nextNumber(text, rank);) ranks.push_back(rank);
    if (text != "]") ranks.clear();
    return ranks;
}

}  // namespace rankscope::collector
