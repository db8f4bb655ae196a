// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/costs/size_curve.h"
#include "analyzer/edits/beside_compute.h"
#include "analyzer/edits/edit_arguments.h"
#include "analyzer/edits/graph_changes.h"
#include "analyzer/edits/graph_view.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::edits {
namespace {

constexpr size_t kMostListed = 8;  // kernels or communicators in a sentence: more would fill lines of it

/// What a Speed edit makes faster. One of kernels (of ranks, of a name), or transfers (of communicators, a class of
/// links, the links of ranks).
struct SpeedOf {
    double factor = 1;
    std::vector<int> ranks;  // kernels, or links with `links` "rank"
    std::string kernel;      // name, with * for any characters; empty: all kernels
    std::vector<int> communicators;
    std::string links;      // "": none; "intra", "inter", "rank": every exchange that a rank of `ranks` takes part in
    bool upToPeak = false;  // no transfer gets faster than the configured links give
};

/// `pattern` with * for any characters; without one it may stand anywhere in the text.
bool matches(std::string_view pattern, std::string_view text) {
    size_t star = pattern.find('*');
    if (star == std::string_view::npos) return text.find(pattern) != std::string_view::npos;
    if (!text.starts_with(pattern.substr(0, star))) return false;
    size_t at = star;  // in the text, behind what was found
    for (size_t next; (next = pattern.find('*', star + 1)) != std::string_view::npos; star = next) {
        const std::string_view part = pattern.substr(star + 1, next - star - 1);
        at = text.find(part, at);
        if (at == std::string_view::npos) return false;
        at += part.size();
    }
    return text.substr(at).ends_with(pattern.substr(star + 1));
}

/// What is left of a transfer whose start-up stays and whose bytes take `factor` of their time.
int64_t transferNs(int64_t ns, double startUpNs, double factor) {
    const double fixed = std::clamp(startUpNs, 0.0, static_cast<double>(ns));
    return std::llround(fixed + (static_cast<double>(ns) - fixed) * factor);
}

/// Start-up times of exchanges.
class StartUps {
  public:
    StartUps(const TaskGraph& graph, const Analysis& analysis) : m_graph(graph), m_analysis(analysis) {}

    /// 0 where it is unknown.
    double ns(const Exchange& exchange) {
        const double ns = startUpNs(m_graph, m_analysis, exchange);
        if (ns < 0) m_unknown.insert(static_cast<int>(exchange.communicatorId));
        return std::max(0.0, ns);
    }

    /// Of all that ns() was asked for.
    void tellUnknown(EditEffect& effect) const {
        if (m_unknown.empty()) return;
        std::vector<std::string> listed = text::rankRanges({m_unknown.begin(), m_unknown.end()});
        if (listed.size() > kMostListed) {
            listed.resize(kMostListed);
            listed.push_back("…");
        }
        const bool one = m_unknown.size() == 1;
        effect.assume(fmt::format(
            "start-up time on communicator{} {} is unknown (one size of message, no configured link): {} transfers "
            "count as bytes only",
            one ? "" : "s", fmt::join(listed, ", "), one ? "its" : "their"));
    }

  private:
    const TaskGraph& m_graph;
    const Analysis& m_analysis;
    std::set<int> m_unknown;  // communicators
};

std::string kernelNames(const TaskGraph& graph, const Analysis& analysis) {
    std::string names;
    size_t listed = 0;
    for (const facts::KernelKey& key : graph.kernelKeys) {
        const std::string name = text::readableKernelName(analysis.facts.string(key.nameId));
        if (names.find(name) != std::string::npos) continue;
        if (++listed > kMostListed) return names + " …";
        names += (names.empty() ? "" : ", ") + name;
    }
    return names;
}

void speedUpKernels(const SpeedOf& what, TaskGraph& graph, const Analysis& analysis) {
    const std::vector<int> ranks = recordedRanks(analysis, what.ranks);
    std::vector<bool> wanted;
    for (const facts::KernelKey& key : graph.kernelKeys) {
        const std::string_view name = analysis.facts.string(key.nameId);
        wanted.push_back(what.kernel.empty() || matches(what.kernel, name) ||
                         matches(what.kernel, text::readableKernelName(name)));
    }
    if (!std::ranges::count(wanted, true))
        throw EditError(fmt::format("no kernel is named '{}'", what.kernel),
                        "kernels of this run: " + kernelNames(graph, analysis));
    for (TaskId task = 0; task < graph.size(); ++task) {
        const TaskInfo& info = graph.info[task];
        if (info.kind != TaskKind::kernel || info.detail >= wanted.size() || !wanted[info.detail]) continue;
        if (std::ranges::binary_search(ranks, graph.rankOf(task)))
            graph.durationNs[task] = scaledNs(graph.durationNs[task], 1 / what.factor);
    }
}

/// Of ranks that others stand for the graph has what they share with those that are replayed.
void tellLeftOut(const std::vector<int>& ranks, const Analysis& analysis, EditEffect& effect) {
    std::vector<int> leftOut;
    std::ranges::set_intersection(ranks, analysis.replay.leftOut, std::back_inserter(leftOut));
    if (!leftOut.empty())
        effect.assume(
            fmt::format("transfers of {} with ranks that are not replayed stay as they are: others stand for "
                        "these in the replay",
                        text::ranksText(leftOut)));
}

void speedUpTransfers(const SpeedOf& what, TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
    for (const int id : what.communicators) checkCommunicator(analysis, id);
    const std::vector<int>& ranks = what.ranks;
    if (what.links == "rank") checkRecorded(analysis, ranks);
    bool found = false;
    const auto concerned = [&](const Exchange& exchange) {
        if (!what.communicators.empty()) return isNamed(what.communicators, exchange.communicatorId);
        if (what.links == "inter" && !spansNodes(graph, analysis, exchange)) return false;
        if (what.links == "intra" && spansNodes(graph, analysis, exchange)) return false;
        if (what.links != "rank" || ranks.empty()) return true;
        const auto concerns = [&](int rank) { return std::ranges::binary_search(ranks, rank); };
        if (exchange.message()) return std::ranges::any_of(graph.membersOf(exchange), concerns, &ExchangeMember::rank);
        // Of a collective members may be left out: it is theirs, too.
        const facts::Communicator* group = analysis.facts.findCommunicator(exchange.communicatorId);
        return group != nullptr && std::ranges::any_of(group->ranks, concerns);
    };
    StartUps startUps(graph, analysis);
    NamedCommunicators named(what.communicators);
    changeTransfers(graph, [&](const TransferTask&, const Exchange& exchange, int64_t ns) {
        if (!concerned(exchange)) return ns;
        found = true;
        named.carries(exchange.communicatorId);
        const int64_t faster = transferNs(ns, startUps.ns(exchange), 1 / what.factor);
        const double peak = what.upToPeak ? peakNs(graph, analysis, exchange) : -1;
        // What is at its peak already stays as it is.
        return peak > 0 && peak > static_cast<double>(faster) ? std::min(ns, static_cast<int64_t>(peak)) : faster;
    });
    startUps.tellUnknown(effect);
    named.tell(found, analysis, effect);
    if (what.links == "rank") tellLeftOut(ranks, analysis, effect);
    if (found) return;
    throw EditError("no transfer of this run goes over such a link",
                    "links: intra (inside a node), inter (between nodes), or links of ranks that communicate");
}

/// Kernels take 1 / factor of their time. Of a transfer the start-up time (alpha of the fit, or of the configured peak)
/// stays, the rest becomes 1 / factor.
void speedUp(const SpeedOf& what, TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
    if (!what.communicators.empty() || !what.links.empty())
        speedUpTransfers(what, graph, analysis, effect);
    else
        speedUpKernels(what, graph, analysis);
}

/// Transfers without their start-up time, without their bytes' time, or without any.
void idealNetwork(bool noLatency, bool noBytes, TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
    StartUps startUps(graph, analysis);
    changeTransfers(graph, [&](const TransferTask&, const Exchange& exchange, int64_t ns) -> int64_t {
        if (noLatency && noBytes) return 0;
        const double startUp = std::min(static_cast<double>(ns), startUps.ns(exchange));
        return std::llround(noLatency ? static_cast<double>(ns) - startUp : startUp);
    });
    startUps.tellUnknown(effect);
}

/// By how much a message with `factor` of its bytes may take longer or shorter than latency and bytes say: what
/// machines make of other sizes is known less well the further these are.
double otherSizeError(const Analysis& analysis, const Exchange& exchange, double factor) {
    const auto at = analysis.facts.communicators.find(exchange.communicatorId);
    if (at == analysis.facts.communicators.end() || exchange.bytes <= 0) return 0;
    const double away = std::min(1.0, std::abs(std::log(factor)) / std::log(costs::SizeCurve::kSmallestRange));
    const double bytes = static_cast<double>(exchange.bytes) * std::min(1.0, factor);
    return away * costs::sizeError({.nodes = at->second.nodes}, bytes);
}

/// What prepares the bytes on the streams of these transfers, such as casts, and puts them back: as much shorter. At
/// best nothing is left of casts, at worst it stays.
void changeCopies(double factor, bool isCast, const std::set<uint32_t>& lanes, TaskGraph& graph,
                  const EditEffect& effect) {
    const double left = effect.outlook == Outlook::dear              ? std::max(1.0, factor)
                        : effect.outlook == Outlook::cheap && isCast ? 0
                                                                     : factor;
    const LaunchIndex index(graph);
    std::map<int, int64_t> emptyNs;  // by rank
    for (TaskId task = 0; task < graph.size(); ++task) {
        const TaskInfo& info = graph.info[task];
        const bool copies = info.kind == TaskKind::kernel || info.kind == TaskKind::copy || info.kind == TaskKind::set;
        if (!copies || !lanes.contains(info.lane)) continue;
        const ComputeLane& compute = index.compute(graph.rankOf(task));
        if (compute.lane == info.lane) continue;
        const auto [empty, isNew] = emptyNs.try_emplace(graph.rankOf(task), 0);
        if (isNew) empty->second = emptyKernelNs(graph, compute.kernels);
        const int64_t ns = graph.durationNs[task];
        graph.durationNs[task] = std::max(std::min(ns, empty->second), scaledNs(ns, left));
    }
}

/// Transfers of gradients, or of these communicators, with `factor` of their bytes. What they lose to compute beside
/// them, and to collectives of their communicator that keep their bytes, does not shrink with these.
void changeVolume(double factor, const std::vector<int>& communicators, bool onlyFullPrecision, TaskGraph& graph,
                  const Analysis& analysis, EditEffect& effect) {
    for (const int id : communicators) checkCommunicator(analysis, id);
    bool found = false;
    const auto concerned = [&](const Exchange& exchange) {
        if (communicators.empty() ? !growsWithReplicas(analysis.layout.role(exchange.communicatorId, exchange.op))
                                  : !isNamed(communicators, exchange.communicatorId))
            return false;
        return !onlyFullPrecision || exchange.dataType == store::DataType::f32;
    };
    const BesideCompute besideCompute(graph, analysis);
    const std::vector<int64_t> besideNs =
        besideOthersNs(graph, simulate(graph), [&](const Exchange& exchange) { return !concerned(exchange); });
    StartUps startUps(graph, analysis);
    const auto aloneNs = [&](const Exchange& exchange, int64_t ns) {
        const int64_t expected = transferNs(ns, startUps.ns(exchange), factor);
        if (effect.outlook != Outlook::dear && effect.outlook != Outlook::cheap) return expected;
        const double error = 1 + otherSizeError(analysis, exchange, factor);
        const int64_t other = scaledNs(expected, effect.outlook == Outlook::dear ? error : 1 / error);
        // Fewer bytes take no longer, and what they take less is their part of it at most.
        const int64_t byBytes = scaledNs(ns, factor);
        return std::clamp(other, std::min(ns, byBytes), std::max(ns, byBytes));
    };
    std::set<uint32_t> lanes;
    bool shared = false;
    NamedCommunicators named(communicators);
    changeTransfers(graph, [&](const TransferTask& part, const Exchange& exchange, int64_t ns) {
        if (!concerned(exchange)) return ns;
        found = true;
        named.carries(exchange.communicatorId);
        lanes.insert(graph.info[part.task].lane);
        const int64_t toCompute = std::llround(besideCompute.lostNs(part.exchange, effect.outlook)),
                      toOthers =
                          scaledNs(std::clamp<int64_t>(ns - toCompute, 0, besideNs[part.exchange]), kHalfTheLink);
        shared = shared || toOthers > 0;
        const int64_t stays = effect.outlook == Outlook::cheap ? 0 : toOthers;
        const int64_t alone = aloneNs(exchange, std::max<int64_t>(0, ns - toCompute - stays));
        return alone + toCompute + std::min(stays, alone);
    });
    startUps.tellUnknown(effect);
    if (found && factor != 1) {
        effect.open = true;
        changeCopies(factor, onlyFullPrecision, lanes, graph, effect);
        besideCompute.reprice(graph, effect);
    }
    if (shared)
        effect.assume(
            "collectives of one communicator that run at a time share its links equally; at best they do not slow each "
            "other");
    if (!found && onlyFullPrecision)
        throw EditError("no gradients travel as float32 in this run",
                        "bytes:factor=F changes what travels in any type");
    named.tell(found, analysis, effect);
    if (!found) throw EditError("no gradients are known to travel in this run");
    for (size_t i = 0; i < graph.exchanges.size(); ++i)
        if (const int64_t bytes = graph.exchanges[i].bytes; concerned(graph.exchanges[i]) && bytes > 0)
            graph.exchanges.own(i).bytes = scaledNs(bytes, factor);
}

}  // namespace

std::unique_ptr<Edit> parseSpeed(EditArguments& arguments) {
    SpeedOf what;
    what.ranks = arguments.ranks();
    what.kernel = arguments.text("kernel").value_or("");
    what.communicators = arguments.communicators();
    what.links = arguments.word("links", {"intra", "inter", "rank"}, "");
    what.upToPeak = arguments.word("limit", {"peak", "none"}, "none") == "peak";
    what.factor = arguments.requiredPositive("factor");
    const int transfers = (what.communicators.empty() ? 0 : 1) + (what.links.empty() ? 0 : 1);
    if (transfers > 1) arguments.refuse("either communicator or links");
    if (transfers == 1 && !what.kernel.empty()) arguments.refuse("either kernels or transfers");
    if (what.upToPeak && transfers == 0) arguments.refuse("limit goes with transfers");
    if (what.links == "rank" ? what.ranks.empty() : transfers == 1 && !what.ranks.empty())
        arguments.refuse("ranks go with kernels or with links=rank");
    return editBy(speedUp, std::move(what));
}

std::unique_ptr<Edit> parseNetwork(EditArguments& arguments) {
    const std::string ideal = arguments.word("ideal", {"latency", "bandwidth", "both"}, "both");
    return editBy(idealNetwork, ideal != "bandwidth", ideal != "latency");
}

std::unique_ptr<Edit> parseBytes(EditArguments& arguments) {
    const double factor = arguments.requiredPositive("factor");
    if (std::isinf(factor)) arguments.refuse("factor is 'inf', but bytes are counted");
    return editBy(changeVolume, factor, arguments.communicators(), false);
}

std::unique_ptr<Edit> parseGradients(EditArguments& arguments) {
    arguments.word("dtype", {"bf16", "fp16"}, "bf16");
    return editBy(changeVolume, 0.5, std::vector<int>(), true);
}

}  // namespace rankscope::edits
