// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/nccl_setting.h"

#include "analyzer/recommend/nccl_names.h"

namespace rankscope::analyzer {
namespace {

template <typename Choice>
void append(std::string& value, store::Op op, const std::set<Choice>& choices) {
    if (choices.empty()) return;
    if (!value.empty()) value += ';';
    value += ncclName(op) + ':';
    bool first = true;
    for (Choice choice : choices) {
        if (!first) value += ',';
        value += ncclName(choice);
        first = false;
    }
}

}  // namespace

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

}  // namespace rankscope::analyzer
