// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/engine/nccl_rules.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace rankscope::vgpu {
namespace {

// Names NCCL knows; CollNet has no model here: it is understood and never chosen.
const std::vector<std::string> kAlgorithmNames = {"tree",     "ring", "collnetdirect", "collnetchain", "nvls",
                                                  "nvlstree", "pat"};
const std::vector<std::string> kProtocolNames = {"ll", "ll128", "simple"};
const std::vector<std::string> kFunctionNames = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"};

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    size_t begin = 0;
    for (size_t end; (end = text.find(separator, begin)) != std::string::npos; begin = end + 1)
        parts.push_back(text.substr(begin, end - begin));
    parts.push_back(text.substr(begin));
    return parts;
}

bool parseMask(std::string list, const std::vector<std::string>& names, uint32_t& mask) {
    bool inverted = list.starts_with('^');
    if (inverted) list.erase(0, 1);
    mask = 0;
    for (const std::string& token : split(list, ',')) {
        auto it = std::find(names.begin(), names.end(), token);
        if (it == names.end()) return false;
        mask |= 1u << (it - names.begin());
    }
    if (inverted) mask = ~mask;
    return true;
}

bool parseList(const char* text, const std::vector<std::string>& names, uint32_t (&masks)[kTunedFunctions]) {
    if (!text || !*text) return true;
    std::string lower = text;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    bool first = true;
    for (const std::string& section : split(lower, ';')) {
        if (section.empty()) continue;
        size_t colon = section.find(':');
        uint32_t mask;
        if (!parseMask(colon == std::string::npos ? section : section.substr(colon + 1), names, mask)) return false;
        if (colon == std::string::npos) {
            if (!first) return false;  // only the first item may leave the function out
            for (uint32_t& each : masks) each = mask;
        } else {
            if (first)
                for (uint32_t& each : masks) each = ~0u;
            auto function = std::find(kFunctionNames.begin(), kFunctionNames.end(), section.substr(0, colon));
            if (function == kFunctionNames.end()) return false;
            masks[function - kFunctionNames.begin()] = mask;
        }
        first = false;
    }
    return true;
}

}  // namespace

const char* nameOf(Algorithm algorithm) {
    static const char* const names[kAlgorithms] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                                   "NVLS_TREE", "PAT"};
    return names[static_cast<int>(algorithm)];
}

const char* nameOf(Protocol protocol) {
    static const char* const names[kProtocols] = {"LL", "LL128", "SIMPLE"};
    return names[static_cast<int>(protocol)];
}

int functionIndex(TransferKind function) {
    switch (function) {
        case TransferKind::broadcast:
            return 0;
        case TransferKind::reduce:
            return 1;
        case TransferKind::allGather:
            return 2;
        case TransferKind::reduceScatter:
            return 3;
        default:
            return 4;
    }
}

bool AlgorithmRules::parse(const char* algorithms, const char* protocols) {
    return parseList(algorithms, kAlgorithmNames, m_algorithms) && parseList(protocols, kProtocolNames, m_protocols);
}

bool AlgorithmRules::namesProtocols(TransferKind function) const {
    return m_protocols[functionIndex(function)] != ~0u;
}

bool AlgorithmRules::allows(TransferKind function, Algorithm algorithm, Protocol protocol) const {
    int index = functionIndex(function);
    return (m_algorithms[index] >> static_cast<int>(algorithm) & 1) &&
           (m_protocols[index] >> static_cast<int>(protocol) & 1);
}

}  // namespace rankscope::vgpu
