// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/missing_input.h"

#include <algorithm>

#include "analyzer/diagnose/critical_step.h"
#include "analyzer/job/light_recording.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
namespace {

bool isOneOf(facts::CommRole role, std::initializer_list<facts::CommRole> roles) {
    return roles.size() == 0 || std::find(roles.begin(), roles.end(), role) != roles.end();
}

template <typename Test>
bool anyTask(const job::Analysis& analysis, Test&& test) {
    for (const facts::RankSummary& rank : analysis.ranks)
        if (std::any_of(rank.communication.begin(), rank.communication.end(),
                        [&](const facts::CommTask& task) { return task.step >= 0 && test(task); }))
            return true;
    return false;
}

}  // namespace

bool communicates(const job::Analysis& analysis) {
    return anyTask(analysis, [](const facts::CommTask&) { return true; });
}

std::string withoutHostCalls(const job::Analysis& analysis) {
    std::vector<int> silent;
    for (const facts::RankSummary& rank : analysis.ranks)
        if (!rank.hostIsKnown) silent.push_back(rank.rank);
    if (silent.empty()) return {};
    return "no launch rows" + (silent.size() == analysis.ranks.size()
                                   ? std::string(" (calls of the host)")
                                   : " (calls of the host) of " + text::ranksText(silent));
}

std::string withoutOwnDevices(const job::Analysis& analysis) {
    if (!analysis.facts.sharesDevices() || isByCalls(analysis)) return {};
    return "ranks share a device: their kernels take turns";
}

std::string withoutPeerRanks(const job::Analysis& analysis) {
    if (analysis.ranks.size() != 1) return withoutOwnDevices(analysis);
    const std::optional<int> world = analysis.facts.worldSize();
    const bool alone = world ? *world == 1 : !communicates(analysis);
    return alone ? std::string() : "one rank only" + (world ? " of " + std::to_string(*world) : std::string());
}

bool peakIsKnown(const job::Analysis& analysis, const facts::Communicator& communicator) {
    return analysis.peaks.busCeiling(communicator).has_value() && !analysis.peaks.atLeast(communicator);
}

std::string withoutLinkPeak(const job::Analysis& analysis, std::initializer_list<facts::CommRole> roles) {
    bool inside = false, between = false;
    for (const CommunicatorClass& where : communicatorClasses(analysis)) {
        if (where.role == facts::CommRole::unknown || where.role == facts::CommRole::control ||
            !isOneOf(where.role, roles) || peakIsKnown(analysis, *where.first))
            continue;
        (where.first->nodes > 1 ? between : inside) = true;
    }
    if (!inside && !between) return {};
    return inside && between ? "no link peak"
           : inside          ? "no link peak inside the nodes"
                             : "no link peak between the nodes";
}

std::string withoutCommunicators(const job::Analysis& analysis) {
    if (anyTask(analysis, [](const facts::CommTask& task) { return task.communicatorId != 0; })) return {};
    return communicates(analysis) ? "no communicators" : std::string();
}

std::string withoutSizes(const job::Analysis& analysis, std::initializer_list<facts::CommRole> roles) {
    const auto ofThese = [&](const facts::CommTask& task) {
        return task.communicatorId != 0 && isOneOf(roleOf(analysis, task), roles);
    };
    if (anyTask(analysis, [&](const facts::CommTask& task) { return ofThese(task) && task.bytes >= 0; })) return {};
    return anyTask(analysis, ofThese) ? "no message sizes" : std::string();
}

std::string withoutTransferTimes(const job::Analysis& analysis) {
    if (anyTask(analysis, [](const facts::CommTask& task) { return task.splitKnown(); })) return {};
    return communicates(analysis) ? "no transfer times (the ranks it communicates with are not recorded)"
                                  : std::string();
}

std::string withoutHosts(const job::Analysis& analysis) {
    const auto& ranks = analysis.facts.ranks;
    const bool named =
        std::any_of(ranks.begin(), ranks.end(), [](const facts::RankFacts& rank) { return !rank.host.empty(); });
    return ranks.size() < 2 || named ? std::string() : "no host names";
}

}  // namespace rankscope::diagnose
