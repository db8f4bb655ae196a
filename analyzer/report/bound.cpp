// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analyzer/facts/rank_summary.h"
#include "analyzer/report/sentences.h"
#include "analyzer/text/units.h"

namespace rankscope::report {
namespace {

constexpr double kMostOfStep = 0.5;    // of the step: no other share can be larger
constexpr double kAheadOfNext = 2;     // times the next one
constexpr double kShownShare = 0.005;  // of the step: less rounds to nothing

struct NamedShare {
    BoundBy by;
    const char* words;
    double share;
};

const char* restWords(const Bound& bound) {
    if (bound.isOfPath) return "gaps on the device";
    return bound.isSplitKnown ? "waiting and other idle time"
                              : "waiting or communication (unknown which) and idle time";
}

std::vector<NamedShare> sharesOf(const Bound& bound) {
    std::vector<NamedShare> shares{{BoundBy::compute, "compute", bound.compute},
                                   {BoundBy::communication, "communication", bound.communication},
                                   {BoundBy::memory, "copies", bound.memory},
                                   {BoundBy::host, "the host", bound.host},
                                   {BoundBy::unknown, restWords(bound), bound.rest}};
    std::ranges::stable_sort(shares, std::greater{}, &NamedShare::share);
    return shares;
}

bool isHostsDoing(std::string_view idleCause) {
    using facts::IdleCause;
    for (const IdleCause cause :
         {IdleCause::blockingCall, IdleCause::lateLaunch, IdleCause::allocator, IdleCause::input})
        if (idleCause == facts::toText(cause)) return true;
    return false;
}

/// Returns false where there is no path.
bool addPathTimes(const ReplaySection& replay, Bound& bound) {
    double whole = 0;
    for (const auto& [category, ns] : replay.criticalPathNs) whole += ns;
    if (whole <= 0) return false;
    for (const auto& [category, ns] : replay.criticalPathNs) {
        double& share = category == "compute"                        ? bound.compute
                        : category == "transfer"                     ? bound.communication
                        : category == "memory"                       ? bound.memory
                        : category == "host" || category == "launch" ? bound.host
                                                                     : bound.rest;
        share += ns / whole;
    }
    bound.isOfPath = true;
    return true;
}

bool addTimes(const std::vector<BreakdownRow>& breakdown, Bound& bound) {
    facts::Attribution sum;
    double hostNs = 0, transferNs = 0;
    for (const BreakdownRow& row : breakdown) {
        sum += row.total;
        bound.isSplitKnown = bound.isSplitKnown && row.splitKnown;
        if (row.splitKnown) transferNs += static_cast<double>(row.total.exposedTransferNs);
        for (const auto& [cause, ns] : row.idleByCauseNs)
            if (isHostsDoing(cause)) hostNs += static_cast<double>(ns);
    }
    if (sum.stepNs <= 0) return false;
    const auto whole = static_cast<double>(sum.stepNs);
    bound.compute = static_cast<double>(sum.computeNs) / whole;
    bound.communication = transferNs / whole;
    bound.memory = static_cast<double>(sum.memoryNs) / whole;
    bound.host = hostNs / whole;
    bound.rest = std::max(0.0, 1 - bound.compute - bound.communication - bound.memory - bound.host);
    return true;
}

}  // namespace

Bound boundOf(const ReplaySection& replay, const std::vector<BreakdownRow>& breakdown, bool knowsKernels) {
    Bound bound;
    if (!knowsKernels || (!addPathTimes(replay, bound) && !addTimes(breakdown, bound))) return bound;
    const std::vector<NamedShare> shares = sharesOf(bound);
    const bool isFirst = shares[0].share > kMostOfStep && shares[0].share >= kAheadOfNext * shares[1].share;
    bound.isMeasured = true;
    bound.by = isFirst                                                             ? shares[0].by
               : shares[0].by == BoundBy::unknown && shares[0].share > kMostOfStep ? BoundBy::unknown
                                                                                   : BoundBy::mixed;
    return bound;
}

std::string_view toText(BoundBy by) {
    constexpr std::array<std::string_view, 6> kTexts{
        "unknown", "mixed", "compute-bound", "communication-bound", "memory-bound", "host-bound"};
    return kTexts[static_cast<size_t>(by)];
}

std::string boundByText(const Bound& bound) {
    if (!bound.isMeasured) return {};
    std::string text = bound.by == BoundBy::unknown ? "bound by what is unknown" : std::string(toText(bound.by));
    bool isFirst = true;
    for (const NamedShare& share : sharesOf(bound)) {
        if (share.share < kShownShare) continue;
        text += isFirst ? fmt::format(": {} of {} is {}", text::percentText(share.share),
                                      bound.isOfPath ? "the critical path" : "the ranks' time", share.words)
                        : fmt::format(", {} {}", text::percentText(share.share), share.words);
        isFirst = false;
    }
    return text;
}

std::string boundLine(const Report& report) {
    const std::string path = criticalPathText(report.replay);
    if (!report.bound.isMeasured || path.empty() || !report.bound.isOfPath) return boundByText(report.bound);
    return fmt::format("{}; {}", toText(report.bound.by), path);
}

}  // namespace rankscope::report
