// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/nccl_setting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "analyzer/costs/nccl_names.h"

namespace rankscope::costs {
namespace {

template <typename Choice>
void append(std::string& value, store::Op op, const std::set<Choice>& choices) {
    if (choices.empty()) return;
    std::vector<std::string> names;
    for (Choice choice : choices) names.push_back(ncclName(choice));
    value += fmt::format("{}{}:{}", value.empty() ? "" : ";", ncclName(op), fmt::join(names, ","));
}

constexpr store::Op kFunctions[] = {store::Op::broadcast, store::Op::reduce, store::Op::allGather,
                                    store::Op::reduceScatter, store::Op::allReduce};
constexpr store::Algorithm kEveryAlgorithm[] = {
    store::Algorithm::tree,         store::Algorithm::ring, store::Algorithm::collnetDirect,
    store::Algorithm::collnetChain, store::Algorithm::nvls, store::Algorithm::nvlsTree,
    store::Algorithm::pat};
constexpr store::Protocol kEveryProtocol[] = {store::Protocol::ll, store::Protocol::ll128, store::Protocol::simple};

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts(1);
    for (char c : text) {
        if (c == at)
            parts.emplace_back();
        else if (c != ' ')
            parts.back() += c;
    }
    return parts;
}

/// Calls take(op, choices) for every function the value speaks of, in its order: a list without a function is for all.
template <typename Choice, size_t N, typename Named, typename Take>
void readLists(const std::string& value, const Choice (&all)[N], Named named, Take take) {
    for (const std::string& part : split(value, ';')) {
        const size_t colon = part.find(':');
        std::string list = colon == std::string::npos ? part : part.substr(colon + 1);
        const bool inverted = !list.empty() && list[0] == '^';
        std::set<Choice> words, choices;
        for (const std::string& word : split(inverted ? list.substr(1) : list, ',')) words.insert(named(word));
        for (Choice choice : all)
            if ((words.count(choice) != 0) != inverted) choices.insert(choice);
        if (choices.empty()) continue;
        for (store::Op op : kFunctions)
            if (colon == std::string::npos || opOfName(part.substr(0, colon)) == op) take(op, choices);
    }
}

}  // namespace

NcclSetting NcclSetting::parse(const std::string& algo, const std::string& proto) {
    NcclSetting setting;
    readLists(algo, kEveryAlgorithm, algorithmOfName,
              [&](store::Op op, const auto& choices) { setting.rules[op].algorithms = choices; });
    readLists(proto, kEveryProtocol, protocolOfName,
              [&](store::Op op, const auto& choices) { setting.rules[op].protocols = choices; });
    return setting;
}

const FunctionRule& NcclSetting::ruleOf(store::Op op) const {
    static const FunctionRule kFree;
    const auto at = rules.find(op);
    return at == rules.end() ? kFree : at->second;
}

std::string NcclSetting::algoValue() const {
    std::string value;
    for (const auto& [op, rule] : rules) append(value, op, rule.algorithms);
    return value;
}

std::string NcclSetting::protoValue() const {
    std::string value;
    for (const auto& [op, rule] : rules) append(value, op, rule.protocols);
    return value;
}

}  // namespace rankscope::costs
