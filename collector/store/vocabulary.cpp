// SPDX-License-Identifier: Apache-2.0
#include "collector/store/vocabulary.h"

#include <array>

namespace rankscope::store {
namespace {

constexpr std::array<std::string_view, 11> kOps = {"unknown",   "all_reduce", "all_gather", "reduce_scatter",
                                                   "broadcast", "reduce",     "all_to_all", "gather",
                                                   "scatter",   "send",       "recv"};
constexpr std::array<std::string_view, 8> kAlgorithms = {"",     "tree",      "ring", "collnet_direct", "collnet_chain",
                                                         "nvls", "nvls_tree", "pat"};
constexpr std::array<std::string_view, 4> kProtocols = {"", "ll", "ll128", "simple"};
constexpr std::array<std::string_view, 13> kDataTypes = {"i8",  "u8",  "i32",  "u32",    "i64",    "u64", "f16",
                                                         "f32", "f64", "bf16", "f8e4m3", "f8e5m2", ""};
constexpr std::array<int32_t, 13> kElementBytes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 0};
constexpr std::array<std::string_view, 5> kRankStates = {"complete", "died", "missing", "running", "unknown"};
constexpr std::array<std::string_view, 3> kSeverities = {"info", "warning", "error"};

template <typename Texts, typename Enum>
std::string_view textOf(const Texts& texts, Enum value) noexcept {
    const auto index = static_cast<size_t>(value);
    return index < texts.size() ? texts[index] : std::string_view();
}

template <typename Enum, typename Texts>
Enum valueOf(const Texts& texts, std::string_view text, Enum fallback) noexcept {
    for (size_t i = 0; i < texts.size(); ++i) {
        if (texts[i] == text) return static_cast<Enum>(i);
    }
    return fallback;
}

}  // namespace

std::string_view toText(Op value) noexcept {
    return textOf(kOps, value);
}
std::string_view toText(Algorithm value) noexcept {
    return textOf(kAlgorithms, value);
}
std::string_view toText(Protocol value) noexcept {
    return textOf(kProtocols, value);
}
std::string_view toText(DataType value) noexcept {
    return textOf(kDataTypes, value);
}
std::string_view toText(RankState value) noexcept {
    return textOf(kRankStates, value);
}
std::string_view toText(Severity value) noexcept {
    return textOf(kSeverities, value);
}

template <>
Op fromText<Op>(std::string_view text) noexcept {
    return valueOf(kOps, text, Op::unknown);
}
template <>
Algorithm fromText<Algorithm>(std::string_view text) noexcept {
    return valueOf(kAlgorithms, text, Algorithm::unknown);
}
template <>
Protocol fromText<Protocol>(std::string_view text) noexcept {
    return valueOf(kProtocols, text, Protocol::unknown);
}
template <>
DataType fromText<DataType>(std::string_view text) noexcept {
    return valueOf(kDataTypes, text, DataType::unknown);
}
template <>
RankState fromText<RankState>(std::string_view text) noexcept {
    return valueOf(kRankStates, text, RankState::missing);
}
template <>
Severity fromText<Severity>(std::string_view text) noexcept {
    return valueOf(kSeverities, text, Severity::warning);
}

int32_t elementBytes(DataType type) noexcept {
    const auto index = static_cast<size_t>(type);
    return index < kElementBytes.size() ? kElementBytes[index] : 0;
}

}  // namespace rankscope::store
