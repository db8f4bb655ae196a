// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/algorithm_support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "analyzer/costs/nccl_names.h"

namespace rankscope::costs {
namespace {

using store::Algorithm;
using store::Op;
using store::Protocol;

/// True where there is a kernel (algos_of_coll in src/device/generate.py).
bool hasKernel(Op op, int nodes, Algorithm algorithm) {
    const bool allReduce = op == Op::allReduce;
    const bool chunked = op == Op::allGather || op == Op::reduceScatter;
    switch (algorithm) {
        case Algorithm::ring:
            return allReduce || chunked || op == Op::broadcast || op == Op::reduce;
        case Algorithm::tree:
        case Algorithm::collnetChain:
            return allReduce;
        case Algorithm::collnetDirect:
        case Algorithm::nvls:
            return allReduce || chunked;
        case Algorithm::nvlsTree:
            return allReduce && nodes > 1;
        case Algorithm::pat:
            return chunked;
        default:
            return false;
    }
}

bool hasAlgorithm(Op op, GroupShape shape, Algorithm algorithm, const std::optional<NcclVersion>& version) {
    if (algorithm == Algorithm::pat && (shape.nodes != shape.ranks || !version || !version->atLeast(2, 23)))
        return false;  // one GPU per node only
    return hasKernel(op, shape.nodes, algorithm);
}

constexpr Algorithm kAlgorithms[] = {Algorithm::ring,     Algorithm::tree,          Algorithm::nvls,
                                     Algorithm::nvlsTree, Algorithm::collnetDirect, Algorithm::collnetChain,
                                     Algorithm::pat};

/// LL and LL128 are in the kernels of rings and trees only (required_cuda in src/device/generate.py).
bool hasFlags(Algorithm algorithm) {
    return algorithm == Algorithm::ring || algorithm == Algorithm::tree;
}

}  // namespace

std::optional<NcclVersion> parseNcclVersion(const std::string& text) {
    std::vector<int> numbers;
    bool inNumber = false;
    for (char c : text) {
        if (!std::isdigit(static_cast<unsigned char>(c))) {
            inNumber = false;
            if (c == '+') break;  // "2.18.3+cuda12.2"
            continue;
        }
        if (!inNumber) numbers.push_back(0);
        inNumber = true;
        if (numbers.back() < 100'000'000) numbers.back() = numbers.back() * 10 + (c - '0');
    }
    if (numbers.size() == 1 && numbers[0] >= 10'000)
        return NcclVersion{numbers[0] / 10'000, numbers[0] / 100 % 100, numbers[0] % 100};
    if (numbers.size() == 1 && numbers[0] >= 1'000)
        return NcclVersion{numbers[0] / 1'000, numbers[0] / 100 % 10, numbers[0] % 100};
    if (numbers.size() < 2) return std::nullopt;
    return NcclVersion{numbers[0], numbers[1], numbers.size() > 2 ? numbers[2] : 0};
}

std::string NcclVersion::text() const {
    return orNewer ? fmt::format("{}.{} or newer", major, minor) : fmt::format("{}.{}.{}", major, minor, patch);
}

std::optional<NcclVersion> ncclVersionOf(const facts::TraceFacts& facts) {
    if (auto version = parseNcclVersion(facts.text("nccl_version"))) return version;
    const bool pluginSpoke =
        facts.text("source") == "capture" && std::ranges::any_of(facts.collectives, [](const store::Collective& c) {
            return c.algorithm != store::Algorithm::unknown;
        });
    if (pluginSpoke) return NcclVersion{2, 26, 0, true};
    return std::nullopt;
}

bool existsIn(Op op, int nodes, AlgorithmChoice choice) {
    const auto [algorithm, protocol] = choice;
    if (algorithm == Algorithm::unknown)
        return protocol == Protocol::unknown || hasKernel(op, nodes, Algorithm::ring);  // which has all of them
    if (!hasKernel(op, nodes, algorithm)) return false;
    return hasFlags(algorithm) || protocol == Protocol::simple || protocol == Protocol::unknown;
}

std::string existingText(Op op, int nodes) {
    std::vector<std::string> flags, simple;
    for (Algorithm algorithm : kAlgorithms)
        if (hasKernel(op, nodes, algorithm)) (hasFlags(algorithm) ? flags : simple).push_back(ncclName(algorithm));
    if (flags.empty())
        return fmt::format("for {} NCCL has no algorithm or protocol to choose: leave it out", store::toText(op));
    return fmt::format("for {} NCCL has {} with LL, LL128 or Simple{}", store::toText(op), fmt::join(flags, ", "),
                       simple.empty() ? std::string() : fmt::format("; {} with Simple", fmt::join(simple, ", ")));
}

bool isSupported(Op op, GroupShape shape, AlgorithmChoice choice, const std::optional<NcclVersion>& version,
                 const SeenChoices& seen) {
    if (shape.ranks < 2 || !hasAlgorithm(op, shape, choice.algorithm, version)) return false;
    const bool ringOrTree = hasFlags(choice.algorithm);
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
    for (Algorithm algorithm : kAlgorithms)
        for (Protocol protocol : {Protocol::simple, Protocol::ll128, Protocol::ll})
            if (isSupported(op, shape, {algorithm, protocol}, version, seen)) choices.push_back({algorithm, protocol});
    return choices;
}

}  // namespace rankscope::costs
