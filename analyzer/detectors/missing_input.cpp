// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/missing_input.h"

#include <algorithm>

#include "analyzer/detectors/critical_step.h"
#include "analyzer/report/units.h"

namespace rankscope::analyzer {
namespace {

bool isOneOf(CommRole role, std::initializer_list<CommRole> roles) {
    return roles.size() == 0 || std::find(roles.begin(), roles.end(), role) != roles.end();
}

template <typename Test>
bool anyTask(const Analysis& analysis, Test&& test) {
    for (const RankSummary& rank : analysis.ranks)
        if (std::any_of(rank.communication.begin(), rank.communication.end(),
                        [&](const CommTask& task) { return task.step >= 0 && test(task); }))
            return true;
    return false;
}

}  // namespace

bool communicates(const Analysis& analysis) {
    return anyTask(analysis, [](const CommTask&) { return true; });
}

std::string withoutHostCalls(const Analysis& analysis) {
    std::vector<int> silent;
    for (const RankSummary& rank : analysis.ranks)
        if (!rank.hostIsKnown) silent.push_back(rank.rank);
    if (silent.empty()) return {};
    return "no launch rows" + (silent.size() == analysis.ranks.size() ? std::string(" (calls of the host)")
                                                                      : " (calls of the host) of " + ranksText(silent));
}

std::string withoutPeerRanks(const Analysis& analysis) {
    if (analysis.ranks.size() != 1) return {};
    const std::optional<int> world = analysis.facts.worldSize();
    const bool alone = world ? *world == 1 : !communicates(analysis);
    return alone ? std::string() : "one rank only" + (world ? " of " + std::to_string(*world) : std::string());
}

bool peakIsKnown(const Analysis& analysis, const Communicator& communicator) {
    return analysis.peaks.busCeiling(communicator).has_value() && !analysis.peaks.atLeast(communicator);
}

std::string withoutLinkPeak(const Analysis& analysis, std::initializer_list<CommRole> roles) {
    bool inside = false, between = false;
    for (const CommunicatorClass& where : communicatorClasses(analysis)) {
        if (where.role == CommRole::unknown || where.role == CommRole::control || !isOneOf(where.role, roles) ||
            peakIsKnown(analysis, *where.first))
            continue;
        (where.first->nodes > 1 ? between : inside) = true;
    }
    if (!inside && !between) return {};
    return inside && between ? "no link peak"
           : inside          ? "no link peak inside the nodes"
                             : "no link peak between the nodes";
}

std::string withoutCommunicators(const Analysis& analysis) {
    const bool nameless = anyTask(analysis, [](const CommTask& task) { return task.communicatorId == 0; });
    const bool named = anyTask(analysis, [](const CommTask& task) { return task.communicatorId != 0; });
    return nameless && !named ? "no communicators" : std::string();
}

std::string withoutSizes(const Analysis& analysis, std::initializer_list<CommRole> roles) {
    const auto ofThese = [&](const CommTask& task) {
        return task.communicatorId != 0 && isOneOf(roleOf(analysis, task), roles);
    };
    const bool unsized = anyTask(analysis, [&](const CommTask& task) { return ofThese(task) && task.bytes < 0; });
    const bool sized = anyTask(analysis, [&](const CommTask& task) { return ofThese(task) && task.bytes >= 0; });
    return unsized && !sized ? "no message sizes" : std::string();
}

std::string withoutTransferTimes(const Analysis& analysis) {
    const bool split = anyTask(analysis, [](const CommTask& task) { return task.splitKnown(); });
    return communicates(analysis) && !split ? "no transfer times (the ranks it communicates with are not recorded)"
                                            : std::string();
}

std::string withoutHosts(const Analysis& analysis) {
    const auto& ranks = analysis.facts.ranks;
    const bool named =
        std::any_of(ranks.begin(), ranks.end(), [](const RankFacts& rank) { return !rank.host.empty(); });
    return ranks.size() < 2 || named ? std::string() : "no host names";
}

}  // namespace rankscope::analyzer
