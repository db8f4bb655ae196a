// SPDX-License-Identifier: Apache-2.0
// Reads NCCL_ALGO and NCCL_PROTO as rules per function: which choices they leave to NCCL, and how the variables spell
// them.
#pragma once

#include <map>
#include <set>
#include <string>

#include "analyzer/costs/nccl_formulas.h"

namespace rankscope::costs {

/// Holds what is allowed for one function; an empty set leaves it to NCCL.
struct FunctionRule {
    std::set<store::Algorithm> algorithms;
    std::set<store::Protocol> protocols;
    bool allows(AlgorithmChoice choice) const {
        return (algorithms.empty() || algorithms.count(choice.algorithm) != 0) &&
               (protocols.empty() || protocols.count(choice.protocol) != 0);
    }
    bool empty() const { return algorithms.empty() && protocols.empty(); }
};

/// Holds both variables as a whole. Functions that are not named are NCCL's own.
struct NcclSetting {
    std::map<store::Op, FunctionRule> rules;

    const FunctionRule& ruleOf(store::Op op) const;
    /// Reads the two variables as they stand in an environment: "list[;function:list…]", "^" for all but, words of any
    /// case. What NCCL would refuse is passed over.
    static NcclSetting parse(const std::string& algo, const std::string& proto);
    /// Writes the value of the variable, in the syntax per function; empty: not to be set.
    std::string algoValue() const;
    std::string protoValue() const;
};

}  // namespace rankscope::costs
