// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/xplane_words.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "collector/importers/most_devices.h"

namespace rankscope::collector {

namespace {
constexpr std::string_view kGpuPlane = "/device:GPU:", kTpuPlane = "/device:TPU:";
}  // namespace

std::optional<int64_t> ordinalOfPlane(std::string_view plane) {
    for (const std::string_view prefix : {kGpuPlane, kTpuPlane}) {
        if (!plane.starts_with(prefix)) continue;
        plane.remove_prefix(prefix.size());
        int64_t ordinal = 0;
        const auto [end, error] = std::from_chars(plane.data(), plane.data() + plane.size(), ordinal);
        // "/device:TPU:0 SparseCore 1" is a part of a device.
        if (end == plane.data() || end != plane.data() + plane.size()) return std::nullopt;
        return error == std::errc() && ordinal >= 0 && ordinal < kMostDevices ? ordinal : -1;
    }
    return std::nullopt;
}

store::Op opOfHlo(std::string_view name) {
    if (name.starts_with('%')) name.remove_prefix(1);
    constexpr std::pair<std::string_view, store::Op> kOps[] = {
        {"all-reduce", store::Op::allReduce},         {"all-gather", store::Op::allGather},
        {"reduce-scatter", store::Op::reduceScatter}, {"all-to-all", store::Op::allToAll},
        {"ragged-all-to-all", store::Op::allToAll},   {"collective-broadcast", store::Op::broadcast}};
    for (const auto& [prefix, op] : kOps) {
        if (!name.starts_with(prefix)) continue;
        std::string_view rest = name.substr(prefix.size());
        for (const std::string_view part : {"-start", "-done"})
            if (rest.starts_with(part)) rest.remove_prefix(part.size());
        if (rest.empty() || rest.front() == '.' || rest.front() == ' ') return op;
    }
    return store::Op::unknown;
}

bool isHloStart(std::string_view name) {
    return name.substr(0, name.find_first_of(". =")).ends_with("-start");
}

std::string_view wordIn(std::string_view details, std::string_view key) {
    for (size_t at = 0; at < details.size();) {
        const size_t end = std::min(details.find_first_of(" \n", at), details.size());
        const std::string_view word = details.substr(at, end - at);
        if (word.starts_with(key) && word.size() > key.size() && word[key.size()] == ':')
            return word.substr(key.size() + 1);
        at = end + 1;
    }
    return {};
}

std::optional<int64_t> wholeNumber(std::string_view text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::optional<uint32_t> productIn(std::string_view factors) {
    uint64_t all = factors.empty() ? UINT64_MAX : 1;
    for (size_t at = 0; at < factors.size();) {
        const size_t end = std::min(factors.find(',', at), factors.size());
        const auto factor = wholeNumber(factors.substr(at, end - at));
        if (!factor || *factor < 0 || *factor > UINT32_MAX) return std::nullopt;
        all = std::min<uint64_t>(all * static_cast<uint64_t>(*factor), UINT32_MAX);
        at = end + 1;
    }
    return all == UINT64_MAX ? std::nullopt : std::optional(static_cast<uint32_t>(all));
}

std::optional<int32_t> memoryOf(std::string_view kind) {
    if (kind == "pageable") return 1;
    if (kind == "pinned") return 2;
    if (kind == "device") return 3;
    return std::nullopt;
}

}  // namespace rankscope::collector
