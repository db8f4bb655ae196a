// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/link_peaks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "analyzer/costs/device_links.h"
#include "analyzer/costs/measured_links.h"
#include "analyzer/costs/most_share.h"
#include "collector/store/link_spec.h"

namespace rankscope::costs {
namespace {

// By LinkMedium.
constexpr std::array kMedia{"", "nvlink", "infinity_fabric", "pcie", "infiniband", "ethernet", "host_memory"};

struct KindWords {
    const char* text;
    const char* how;     // for a reader
    const char* source;  // that says otherwise, as the subject of a sentence
};

const KindWords& kindWords(PeakKind kind) {
    static constexpr KindWords kWords[] = {{"told", "told", "another source"},
                                           {"measured", "measured", "a measurement"},
                                           {"machine", "machine", "the machine"},
                                           {"device_table", "device table", "the device table"},
                                           {"at_least", "at least", "another source"}};
    return kWords[static_cast<size_t>(kind)];
}

/// Holds what the sources say of one class, the best first.
using Candidates = std::vector<LinkClass>;

std::optional<LinkClass> classOf(const std::optional<store::LinkSpecClass>& told, const std::string& source) {
    if (!told) return std::nullopt;
    return LinkClass{told->gbps, told->alphaUs.value_or(0) * 1000, PeakKind::told, source};
}

void add(const std::optional<LinkClass>& link, Candidates& candidates) {
    if (link) candidates.push_back(*link);
}

std::string rateText(const LinkClass& link) {
    return fmt::format("{:.4g} GB/s", link.bytesPerNs);
}

std::string saidBy(const LinkClass& link) {
    if (link.kind == PeakKind::atLeast) return link.source;  // "at least" stands before the rate
    return fmt::format("{}: {}", kindWords(link.kind).how, link.source);
}

std::optional<LinkClass> best(const Candidates& candidates, const char* place, std::vector<std::string>& warnings) {
    if (candidates.empty()) return std::nullopt;
    const LinkClass& chosen = candidates.front();
    for (const LinkClass& other : candidates) {
        const double ratio =
            std::max(chosen.bytesPerNs, other.bytesPerNs) / std::min(chosen.bytesPerNs, other.bytesPerNs);
        if (ratio <= LinkPeakThresholds::kContradiction) continue;
        warnings.push_back(fmt::format("links {}: {} ({}) is used, but {} says {} ({})", place, rateText(chosen),
                                       saidBy(chosen), kindWords(other.kind).source, rateText(other), saidBy(other)));
        return chosen;  // one is enough to look into it
    }
    LinkClass known = chosen;
    for (const LinkClass& other : candidates)
        if (known.medium == LinkMedium::unknown) known.medium = other.medium;
    return known;
}

/// Adds the fastest plateau to the candidates. Returns those that are beyond what the machine itself says (`own`, the
/// better source first), with a warning of each: a measurement can be of other machines, but no link carries more than
/// it has.
Candidates addMeasured(const LinkSources& given, const Candidates& own, bool betweenNodes, Candidates& candidates,
                       std::vector<std::string>& warnings) {
    Candidates beyond;
    std::optional<LinkClass> fastest;
    for (const auto& [link, between, mostShare] : given.measured) {
        if (between != betweenNodes) continue;
        if (!own.empty() && link.bytesPerNs > kRefuted * mostShare * own.front().bytesPerNs) {
            beyond.push_back(link);
            warnings.push_back(
                fmt::format("links {}: {} ({}) is beyond {} ({}){}: it is not used; if it is right, tell it by --links",
                            betweenNodes ? "between nodes" : "inside a node", rateText(link), saidBy(link),
                            rateText(own.front()), saidBy(own.front()),
                            mostShare > 1 ? fmt::format(" and what trees or switches make of it, {:.4g} GB/s",
                                                        mostShare * own.front().bytesPerNs)
                                          : std::string()));
        } else if (!fastest || link.bytesPerNs > fastest->bytesPerNs) {
            fastest = link;
        }
    }
    add(fastest, candidates);
    return beyond;
}

Candidates behindFirst(Candidates candidates, const Candidates& last) {
    if (!candidates.empty()) candidates.erase(candidates.begin());
    candidates.insert(candidates.end(), last.begin(), last.end());
    return candidates;
}

/// Adds what was told when the run was made.
void addRecorded(const facts::TraceFacts& facts, std::vector<LinkSources::Told>& told) {
    const std::string stored = facts.text("links"), ofJob = facts.text("env.RANKSCOPE_LINKS");
    if (!stored.empty()) told.push_back({stored, "--links of the run"});
    if (!ofJob.empty() && ofJob != stored) told.push_back({ofJob, "RANKSCOPE_LINKS of the job"});
}

std::string joinSources(const LinkPeaks& peaks) {
    if (peaks.intra && peaks.inter && saidBy(*peaks.intra) == saidBy(*peaks.inter)) return saidBy(*peaks.intra);
    std::vector<std::string> parts;
    if (peaks.intra) parts.push_back("inside a node " + saidBy(*peaks.intra));
    if (peaks.inter) parts.push_back("between nodes " + saidBy(*peaks.inter));
    return fmt::format("{}", fmt::join(parts, "; "));
}

/// Writes "inside a node 200 GB/s, start-up 6 us".
std::string classText(const char* place, const std::optional<LinkClass>& link) {
    if (!link) return fmt::format("{} unknown", place);
    const std::string latency =
        link->alphaNs > 0 ? fmt::format(", start-up {:.4g} us", link->alphaNs / 1000) : std::string();
    return fmt::format("{} {}{}{}", place, link->kind == PeakKind::atLeast ? "at least " : "", rateText(*link),
                       latency);
}

}  // namespace

const char* toText(PeakKind kind) {
    return kindWords(kind).text;
}

const char* toText(LinkMedium medium) {
    return kMedia[static_cast<size_t>(medium)];
}

LinkMedium mediumOfText(std::string_view text) {
    const auto at = std::ranges::find(kMedia, text);
    return at == kMedia.end() ? LinkMedium::unknown : static_cast<LinkMedium>(at - kMedia.begin());
}

double nicsPerRank(const facts::Communicator& communicator, store::Op op) {
    if (store::isP2p(op)) return 1;
    if (op != store::Op::allToAll) return std::max(1, communicator.smallestNode);
    return static_cast<double>(std::max(1, communicator.size - 1)) /
           std::max(1, communicator.size - communicator.smallestNode);
}

facts::Communicator pairOfRanks(bool betweenNodes) {
    facts::Communicator pair;
    pair.size = 2;
    pair.nodes = betweenNodes ? 2 : 1;
    pair.smallestNode = betweenNodes ? 1 : 2;
    return pair;
}

std::optional<LinkPeaks::Ceiling> LinkPeaks::ceiling(const facts::Communicator& communicator, store::Op op) const {
    if (communicator.nodes <= 1) return intra ? std::optional(Ceiling{intra->bytesPerNs, &*intra}) : std::nullopt;
    if (!inter) return std::nullopt;
    const Ceiling nics{nicsPerRank(communicator, op) * inter->bytesPerNs, &*inter, true};
    if (!intra || (intra->kind == PeakKind::atLeast && inter->kind != PeakKind::atLeast)) return nics;
    // A port carries at least what one NIC does, which it feeds.
    const double port =
        intra->kind == PeakKind::atLeast ? std::max(intra->bytesPerNs, inter->bytesPerNs) : intra->bytesPerNs;
    return port < nics.bytesPerNs ? Ceiling{port, &*intra} : nics;
}

std::optional<double> LinkPeaks::busCeiling(const facts::Communicator& communicator, store::Op op) const {
    const std::optional<Ceiling> limit = ceiling(communicator, op);
    return limit ? std::optional(limit->bytesPerNs) : std::nullopt;
}

bool LinkPeaks::atLeast(const facts::Communicator& communicator, store::Op op) const {
    const std::optional<Ceiling> limit = ceiling(communicator, op);
    return limit && limit->link->kind == PeakKind::atLeast;
}

double LinkPeaks::alphaPerHop(const facts::Communicator& communicator) const {
    double alpha = intra ? intra->alphaNs : 0;
    if (communicator.nodes > 1 && inter) alpha = std::max(alpha, inter->alphaNs);
    return alpha;
}

LinkPeaks parseLinkPeaks(const std::string& text) {
    const store::LinkSpec spec = store::parseLinkSpec(text);
    LinkPeaks peaks;
    peaks.intra = classOf(spec.intra, "--links");
    peaks.inter = classOf(spec.inter, "--links");
    nameSources(peaks);
    return peaks;
}

LinkPeaks resolveLinkPeaks(const facts::TraceFacts& facts, const LinkSources& sources) {
    LinkSources given = sources;
    addMeasuredLinks(sources.tables, facts, given);
    LinkPeaks peaks;
    peaks.warnings = given.complaints;
    Candidates intra, inter;
    std::vector<LinkSources::Told> told = given.told;
    if (!given.forgotten) addRecorded(facts, told);
    for (const auto& [text, source] : told) {
        const store::LinkSpec spec = store::parseLinkSpec(text);
        if (!spec.complaint.empty())
            peaks.warnings.push_back(fmt::format("link peaks of {} are not used: {}", source, spec.complaint));
        add(classOf(spec.intra, source), intra);
        add(classOf(spec.inter, source), inter);
    }
    // Ranks of one device have no link between them: what its links could do to others tells nothing.
    const DeviceLinks devices = facts.sharesDevices() ? DeviceLinks{} : deviceLinks(facts);
    Candidates ownIntra, ownInter;
    if (!given.forgotten && !facts.sharesDevices()) add(machineIntra(facts), ownIntra);
    add(devices.intra, ownIntra);
    if (!given.forgotten) add(machineInter(facts), ownInter);
    const Candidates beyondIntra = addMeasured(given, ownIntra, false, intra, peaks.warnings);
    const Candidates beyondInter = addMeasured(given, ownInter, true, inter, peaks.warnings);
    intra.insert(intra.end(), ownIntra.begin(), ownIntra.end());
    inter.insert(inter.end(), ownInter.begin(), ownInter.end());
    if (intra.empty()) peaks.unknownDevices = devices.unknown;
    peaks.intra = best(intra, "inside a node", peaks.warnings);
    peaks.inter = best(inter, "between nodes", peaks.warnings);
    peaks.intraOthers = behindFirst(intra, beyondIntra);
    peaks.interOthers = behindFirst(inter, beyondInter);
    nameSources(peaks);
    return peaks;
}

void nameSources(LinkPeaks& peaks) {
    peaks.source = joinSources(peaks);
}

std::string linkPeaksText(const LinkPeaks& peaks, size_t nodes) {
    const auto& [intra, inter] = std::tie(peaks.intra, peaks.inter);
    const bool alike = intra && inter && saidBy(*intra) == saidBy(*inter);
    const auto said = [](const std::optional<LinkClass>& link) {
        return link ? fmt::format(" ({})", saidBy(*link)) : std::string();
    };
    std::string text = intra || inter ? classText("inside a node", intra) + (alike ? "" : said(intra)) : "unknown";
    if (inter || (intra && nodes > 1)) text += "; " + classText("between nodes", inter) + said(inter);
    if (!peaks.unknownDevices.empty())
        text += fmt::format("; no data sheet is known for {}", fmt::join(peaks.unknownDevices, ", "));
    if (!intra || (nodes > 1 && !inter)) text += fmt::format("; to tell them: {}", kTellLinks);
    return text;
}

}  // namespace rankscope::costs
