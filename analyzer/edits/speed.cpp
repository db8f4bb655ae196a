// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/edits/change_transfers.h"
#include "analyzer/edits/edit_arguments.h"
#include "analyzer/edits/graph_view.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::edits {
namespace {

/// `pattern` with * for any characters; without one it may stand anywhere in the text.
bool matches(std::string_view pattern, std::string_view text) {
    if (pattern.find('*') == std::string_view::npos) return text.find(pattern) != std::string_view::npos;
    size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

/// What is left of a transfer whose start-up stays and whose bytes take `factor` of their time.
int64_t transferNs(int64_t ns, double startUpNs, double factor) {
    const double fixed = std::clamp(startUpNs, 0.0, static_cast<double>(ns));
    return static_cast<int64_t>(std::llround(fixed + (static_cast<double>(ns) - fixed) * factor));
}

/// Start-up of an exchange, 0 and a remark where it is unknown.
double knownStartUpNs(const replay::TaskGraph& graph, const job::Analysis& analysis, const replay::Exchange& exchange,
                      EditEffect& effect) {
    const double ns = startUpNs(graph, analysis, exchange);
    if (ns < 0)
        effect.assume(
            fmt::format("start-up time on communicator {} is unknown (one size of message, no configured link): its "
                        "transfers count as bytes only",
                        exchange.communicatorId));
    return std::max(0.0, ns);
}

std::string kernelNames(const replay::TaskGraph& graph, const job::Analysis& analysis) {
    std::string names;
    size_t listed = 0;
    for (const facts::KernelKey& key : graph.kernelKeys) {
        const auto id = static_cast<size_t>(key.nameId);
        if (id >= analysis.facts.strings.size()) continue;
        const std::string name = text::readableKernelName(analysis.facts.strings[id]);
        if (names.find(name) != std::string::npos) continue;
        if (++listed > 8) return names + " …";
        names += (names.empty() ? "" : ", ") + name;
    }
    return names;
}

bool carriesGradients(facts::CommRole role) {
    return role == facts::CommRole::gradients || role == facts::CommRole::shardedParameters ||
           role == facts::CommRole::replicas;
}

}  // namespace

void Speed::kernels(replay::TaskGraph& graph, const job::Analysis& analysis) const {
    const std::vector<int> ranks = recordedRanks(analysis, m_what.ranks);
    std::vector<bool> wanted;
    for (const facts::KernelKey& key : graph.kernelKeys) {
        const auto id = static_cast<size_t>(key.nameId);
        const std::string name = id < analysis.facts.strings.size() ? analysis.facts.strings[id] : std::string();
        wanted.push_back(m_what.kernel.empty() || matches(m_what.kernel, name) ||
                         matches(m_what.kernel, text::readableKernelName(name)));
    }
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end())
        throw EditError(fmt::format("no kernel is named '{}'", m_what.kernel),
                        "kernels of this run: " + kernelNames(graph, analysis));
    for (replay::TaskId task = 0; task < graph.size(); ++task) {
        const replay::TaskInfo& info = graph.info[task];
        if (info.kind != replay::TaskKind::kernel || info.detail >= wanted.size() || !wanted[info.detail]) continue;
        if (std::binary_search(ranks.begin(), ranks.end(), graph.rankOf(task)))
            graph.durationNs[task] = scaledNs(graph.durationNs[task], 1 / m_factor);
    }
}

void Speed::transfers(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const {
    if (m_what.communicator) checkCommunicator(analysis, *m_what.communicator);
    const std::vector<int> ranks = m_what.links == "rank" ? recordedRanks(analysis, m_what.ranks) : std::vector<int>();
    bool found = false;
    const auto concerned = [&](const replay::Exchange& exchange) {
        if (m_what.communicator && exchange.communicatorId != *m_what.communicator) return false;
        if (m_what.links == "inter" && !spansNodes(graph, analysis, exchange)) return false;
        if (m_what.links == "intra" && spansNodes(graph, analysis, exchange)) return false;
        const auto members = graph.membersOf(exchange);
        return m_what.links != "rank" ||
               std::any_of(members.begin(), members.end(), [&](const replay::ExchangeMember& m) {
                   return std::binary_search(ranks.begin(), ranks.end(), m.rank);
               });
    };
    changeTransfers(graph, [&](const TransferTask&, const replay::Exchange& exchange, int64_t ns) {
        if (!concerned(exchange)) return ns;
        found = true;
        const int64_t faster = transferNs(ns, knownStartUpNs(graph, analysis, exchange, effect), 1 / m_factor);
        const double peak = m_what.upToPeak ? peakNs(graph, analysis, exchange) : -1;
        // What is at its peak already stays as it is.
        return peak > 0 && peak > static_cast<double>(faster) ? std::min(ns, static_cast<int64_t>(peak)) : faster;
    });
    if (found) return;
    if (m_what.communicator)
        throw EditError(fmt::format("communicator {} carries nothing in this run", *m_what.communicator));
    throw EditError("no transfer of this run goes over such a link",
                    "links: intra (inside a node), inter (between nodes), or links of ranks that communicate");
}

void Speed::apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const {
    if (m_what.communicator || !m_what.links.empty())
        transfers(graph, analysis, effect);
    else
        kernels(graph, analysis);
}

void IdealNetwork::apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const {
    changeTransfers(graph, [&](const TransferTask&, const replay::Exchange& exchange, int64_t ns) -> int64_t {
        if (m_noLatency && m_noBytes) return 0;
        const double startUp = std::min(static_cast<double>(ns), knownStartUpNs(graph, analysis, exchange, effect));
        return std::llround(m_noLatency ? static_cast<double>(ns) - startUp : startUp);
    });
}

void Volume::apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const {
    if (m_communicator) checkCommunicator(analysis, *m_communicator);
    bool found = false;
    const auto concerned = [&](const replay::Exchange& exchange) {
        if (m_communicator ? exchange.communicatorId != *m_communicator
                           : !carriesGradients(analysis.layout.role(exchange.communicatorId, exchange.op)))
            return false;
        return !m_onlyFullPrecision || exchange.dataType == store::DataType::f32;
    };
    changeTransfers(graph, [&](const TransferTask&, const replay::Exchange& exchange, int64_t ns) {
        if (!concerned(exchange)) return ns;
        found = true;
        return transferNs(ns, knownStartUpNs(graph, analysis, exchange, effect), m_factor);
    });
    if (!found && m_onlyFullPrecision)
        throw EditError("no gradients travel as float32 in this run",
                        "bytes:factor=F changes what travels in any type");
    if (!found)
        throw EditError(m_communicator ? fmt::format("communicator {} carries nothing in this run", *m_communicator)
                                       : "no gradients are known to travel in this run");
    for (replay::Exchange& exchange : graph.exchanges)
        if (concerned(exchange) && exchange.bytes > 0) exchange.bytes = scaledNs(exchange.bytes, m_factor);
}

std::unique_ptr<Edit> parseSpeed(EditArguments& arguments) {
    SpeedOf what;
    what.ranks = arguments.ranks();
    what.kernel = arguments.text("kernel").value_or("");
    if (const std::optional<int> id = arguments.whole("communicator")) what.communicator = *id;
    what.links = arguments.word("links", {"intra", "inter", "rank"}, "");
    what.upToPeak = arguments.word("limit", {"peak", "none"}, "none") == "peak";
    const double factor = arguments.requiredPositive("factor");
    const int transfers = (what.communicator ? 1 : 0) + (what.links.empty() ? 0 : 1);
    if (transfers > 1) arguments.refuse("either communicator or links");
    if (transfers == 1 && !what.kernel.empty()) arguments.refuse("either kernels or transfers");
    if (what.upToPeak && transfers == 0) arguments.refuse("limit goes with transfers");
    if (what.links == "rank" ? what.ranks.empty() : transfers == 1 && !what.ranks.empty())
        arguments.refuse("ranks go with kernels or with links=rank");
    return std::make_unique<Speed>(std::move(what), factor);
}

std::unique_ptr<Edit> parseNetwork(EditArguments& arguments) {
    const std::string ideal = arguments.word("ideal", {"latency", "bandwidth", "both"}, "both");
    return std::make_unique<IdealNetwork>(ideal != "bandwidth", ideal != "latency");
}

std::unique_ptr<Edit> parseBytes(EditArguments& arguments) {
    const double factor = arguments.requiredPositive("factor");
    if (std::isinf(factor)) arguments.refuse("factor is 'inf', but bytes are counted");
    std::optional<int64_t> communicator;
    if (const std::optional<int> id = arguments.whole("communicator")) communicator = *id;
    return std::make_unique<Volume>(factor, communicator, false);
}

std::unique_ptr<Edit> parseGradients(EditArguments& arguments) {
    arguments.word("dtype", {"bf16", "fp16"}, "bf16");
    return std::make_unique<Volume>(0.5, std::nullopt, true);
}

}  // namespace rankscope::edits
