// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/algorithm_support.h"

namespace rankscope::costs {
namespace {

using store::Algorithm;
using store::Op;
using store::Protocol;

bool hasAlgorithm(Op op, GroupShape shape, Algorithm algorithm, const std::optional<NcclVersion>& version) {
    const bool allReduce = op == Op::allReduce;
    const bool chunked = op == Op::allGather || op == Op::reduceScatter;
    switch (algorithm) {
        case Algorithm::ring:
            return allReduce || chunked || op == Op::broadcast || op == Op::reduce;
        case Algorithm::tree:
            return allReduce;
        case Algorithm::collnetChain:
            return allReduce;
        case Algorithm::collnetDirect:
            return allReduce || chunked;
        case Algorithm::nvls:
            return allReduce || chunked;
        case Algorithm::nvlsTree:
            return allReduce && shape.nodes > 1;
        case Algorithm::pat:
            return chunked && shape.nodes == shape.ranks && version &&
                   version->atLeast(2, 23);  // one GPU per node only
        default:
            return false;
    }
}

}  // namespace

bool isSupported(Op op, GroupShape shape, AlgorithmChoice choice, const std::optional<NcclVersion>& version,
                 const SeenChoices& seen) {
    if (shape.ranks < 2 || !hasAlgorithm(op, shape, choice.algorithm, version)) return false;
    const bool ringOrTree = choice.algorithm == Algorithm::ring || choice.algorithm == Algorithm::tree;
    if (!ringOrTree && choice.protocol != Protocol::simple) return false;
    if (choice.protocol == Protocol::unknown) return false;
    if (choice.protocol == Protocol::ll128 && seen.protocols.count(Protocol::ll128) == 0) return false;
    return ringOrTree || choice.algorithm == Algorithm::pat || seen.algorithms.count(choice.algorithm) != 0;
}

std::vector<AlgorithmChoice> unseenChoices(Op op, GroupShape shape, const SeenChoices& seen) {
    std::vector<AlgorithmChoice> choices;
    if (seen.protocols.count(Protocol::ll128) != 0 || shape.ranks < 2) return choices;
    for (Algorithm algorithm : {Algorithm::ring, Algorithm::tree})
        if (hasAlgorithm(op, shape, algorithm, std::nullopt)) choices.push_back({algorithm, Protocol::ll128});
    return choices;
}

std::vector<AlgorithmChoice> supportedChoices(Op op, GroupShape shape, const std::optional<NcclVersion>& version,
                                              const SeenChoices& seen) {
    std::vector<AlgorithmChoice> choices;
    for (Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::nvls, Algorithm::nvlsTree,
                                Algorithm::collnetDirect, Algorithm::collnetChain, Algorithm::pat})
        for (Protocol protocol : {Protocol::simple, Protocol::ll128, Protocol::ll})
            if (isSupported(op, shape, {algorithm, protocol}, version, seen)) choices.push_back({algorithm, protocol});
    return choices;
}

}  // namespace rankscope::costs
