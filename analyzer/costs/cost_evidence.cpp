// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/cost_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/costs/nccl_names.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::costs {
namespace {

constexpr double kErrors = 2;       // standard errors that an interval holds
constexpr size_t kNamedTables = 3;  // beside the first, where many have the same said of them

/// Takes the medians of the job's own sizes, each with what its samples leave open.
SizeCurve curveOf(const TimesBySize& timesBySize) {
    std::vector<SizedTime> points;
    for (const auto& [bytes, times] : timesBySize) {
        const double typical = facts::median(times);
        if (times.size() >= CostCurve::kFewestAtOneSize)
            points.push_back({bytes, typical, kErrors * facts::medianError(times) / typical});
    }
    return SizeCurve(std::move(points));
}

/// Takes kinks side by side as one.
std::vector<std::string> kinkTexts(const SizeCurve& curve, const CurveKey& key) {
    const std::string algorithm = ncclName(key.choice.algorithm), protocol = ncclName(key.choice.protocol);
    const std::string setting = algorithm + (algorithm.empty() || protocol.empty() ? "" : "/") + protocol;
    const std::string what = fmt::format("{} over {} ranks{}", store::toText(key.op), key.shape.ranks,
                                         setting.empty() ? "" : " with " + setting);
    std::vector<std::string> texts;
    const std::vector<Kink>& kinks = curve.kinks();
    for (size_t first = 0; first < kinks.size();) {
        size_t end = first;
        const Kink* worst = &kinks[first];
        for (; end < kinks.size() && kinks[end].insteadBytes == kinks[first].insteadBytes; ++end)
            if (kinks[end].times() > worst->times()) worst = &kinks[end];
        const std::string sizes = text::bytesText(kinks[first].bytes) +
                                  (end - first > 1 ? " to " + text::bytesText(kinks[end - 1].bytes) : "");
        texts.push_back(fmt::format(
            "avoid {} in {}: {} takes {}, {:.1f} times what the sizes around let expect, where {} takes {}", sizes,
            what, end - first > 1 ? text::bytesText(worst->bytes) : "it", text::durationText(worst->ns), worst->times(),
            text::bytesText(kinks[first].insteadBytes), text::durationText(kinks[first].insteadNs)));
        first = end;
    }
    return texts;
}

/// Says once of all tables of another NCCL what becomes of them.
TableNote otherVersionNote(const std::vector<const NcclTestsTable*>& tables, const NcclVersion& version) {
    std::string others;
    for (size_t i = 1; i < tables.size() && i <= kNamedTables; ++i)
        others += fmt::format("{}{} line {} ({})", i == 1 ? "; so were " : ", ", tables[i]->file, tables[i]->line,
                              parseNcclVersion(tables[i]->ncclVersion)->text());
    if (tables.size() > kNamedTables + 1) others += fmt::format(" and {} more", tables.size() - kNamedTables - 1);
    return {TableNote::Kind::otherVersion, tables.front()->file, tables.front()->line,
            fmt::format("measured with NCCL {}, the job ran with {}{}. What NCCL chooses by itself, its channels and "
                        "its chunks differ by version, by how much nobody measured here: what rests on such tables is "
                        "worth a trial, and not recommended",
                        parseNcclVersion(tables.front()->ncclVersion)->text(), version.text(), others)};
}

struct Transfer {
    int64_t id = 0;
    int64_t communicatorId = 0;
    int64_t durNs = 0;
    int64_t besideNs = 0;
};

struct Edge {
    int64_t atNs = 0;
    bool begins = false;
    size_t transfer = 0;
    auto operator<=>(const Edge&) const = default;  // by time
};

/// Goes over one rank's edges in time with the few transfers that are under way.
void addBeside(std::vector<Transfer>& transfers, std::vector<Edge>& edges) {
    std::ranges::sort(edges);
    std::vector<size_t> active;
    int64_t sinceNs = 0;
    for (const Edge& edge : edges) {
        const bool several = std::ranges::any_of(
            active, [&](size_t i) { return transfers[i].communicatorId != transfers[active.front()].communicatorId; });
        if (several)
            for (size_t i : active) transfers[i].besideNs += edge.atNs - sinceNs;
        sinceNs = edge.atNs;
        const auto at = std::ranges::find(active, edge.transfer);
        if (edge.begins)
            active.push_back(edge.transfer);
        else if (at != active.end())
            active.erase(at);
    }
}

}  // namespace

size_t CostCurve::samples() const {
    size_t count = 0;
    for (const auto& [bytes, times] : timesBySize) count += times.size();
    return count;
}

std::optional<facts::Estimate> CostCurve::at(double bytes) const {
    if (bytes * kExtrapolation < sizes.smallestBytes() || bytes > sizes.largestBytes() * kExtrapolation)
        return std::nullopt;
    return sizes.ns(bytes);
}

CurveKey keyOf(const NcclTestsTable& table) {
    return {EvidenceFrom::ncclTests, {table.nodes, table.ranks}, table.op, {table.algorithm, table.protocol}};
}

CostEvidence::CostEvidence(const facts::TraceFacts& facts, const std::vector<NcclTestsTable>& tables)
    : m_tables(tables) {
    for (const store::Collective& collective : facts.collectives) {
        const facts::Communicator* communicator = facts.findCommunicator(collective.communicatorId);
        const AlgorithmChoice choice{collective.algorithm, collective.protocol};
        if (communicator == nullptr || !collective.complete || !choice.known()) continue;
        if (collective.bytes.value_or(0) <= 0 || collective.transferNs.value_or(0) <= 0) continue;
        const CurveKey key{EvidenceFrom::trace, shapeOf(*communicator), collective.op, choice};
        add(key, static_cast<double>(*collective.bytes), static_cast<double>(*collective.transferNs));
    }
    for (auto& [key, curve] : m_curves) curve.sizes = curveOf(curve.timesBySize);
    std::map<CurveKey, std::vector<SizedTime>> rows;
    const std::optional<NcclVersion> version = ncclVersionOf(facts);
    for (const NcclTestsTable& table : tables) {
        const CurveKey key = keyOf(table);
        const std::vector<SizedTime> times = linkTimes(table);
        if (!table.severalChoices.empty() || !table.noSuchChoice.empty() || times.empty()) continue;
        for (const SizedTime& time : times) add(key, time.bytes, time.ns);
        rows[key].insert(rows[key].end(), times.begin(), times.end());
        CostCurve& curve = m_curves[key];
        curve.files.push_back(table.file);
        curve.otherVersion = curve.otherVersion || isOtherVersion(table, version);
    }
    for (auto& [key, times] : rows) m_curves[key].sizes = SizeCurve(std::move(times));
    for (auto& [key, curve] : m_curves) {
        curve.key = key;
        curve.line = lineThrough(curve.timesBySize, key.op, key.shape.ranks);
    }
}

std::vector<TableNote> CostEvidence::notes(const std::optional<NcclVersion>& version) const {
    using Kind = TableNote::Kind;
    std::vector<TableNote> notes = contradictions(m_tables);
    std::vector<const NcclTestsTable*> foreign;  // of another NCCL
    for (const NcclTestsTable& table : m_tables) {
        const auto add = [&](Kind kind, const std::string& text) {
            notes.push_back({kind, table.file, table.line, text});
        };
        if (const double bytes = hostBoundBytes(table); bytes > 0)
            add(Kind::hostBound,
                fmt::format("one thread starts the kernels of {} GPUs, which may be all that its times up to {} show: "
                            "these are not used; run the test with a process per GPU (-g 1)",
                            table.gpusPerThread, text::bytesText(bytes)));
        if (isOtherVersion(table, version)) foreign.push_back(&table);
        if (table.cutLine > 0) notes.push_back({Kind::cut, table.file, table.cutLine, cutText(table)});
        if (!table.noSuchChoice.empty())
            add(Kind::notUsed,
                fmt::format("its variables name {}, which NCCL does not have for {} on {}: {}. What ran "
                            "instead is not told",
                            table.noSuchChoice, store::toText(table.op),
                            text::countedText(std::max(1, table.nodes), "node"), existingText(table.op, table.nodes)));
        else if (!table.severalChoices.empty())
            add(Kind::notUsed, fmt::format("{} names several: which of them ran is not told", table.severalChoices));
        else
            for (const std::string& text : kinkTexts(SizeCurve(linkTimes(table)), keyOf(table))) add(Kind::kink, text);
    }
    if (!foreign.empty()) notes.push_back(otherVersionNote(foreign, *version));
    for (const auto& [key, curve] : m_curves)
        if (key.from == EvidenceFrom::trace)
            for (const std::string& text : kinkTexts(curve.sizes, key))
                notes.push_back({Kind::kink, "", 0, "this run's own messages: " + text});
    return notes;
}

void CostEvidence::add(const CurveKey& key, double bytes, double ns) {
    if (bytes > 0 && ns > 0) m_curves[key].timesBySize[bytes].push_back(ns);
    m_seen.algorithms.insert(key.choice.algorithm);
    m_seen.protocols.insert(key.choice.protocol);
}

const CostCurve* CostEvidence::find(const CurveKey& key) const {
    const auto at = m_curves.find(key);
    return at == m_curves.end() ? nullptr : &at->second;
}

std::map<int64_t, double> sharedTransfers(const facts::TraceFacts& facts) {
    std::map<int64_t, double> shares;
    std::vector<Transfer> transfers;  // of one rank
    std::vector<Edge> edges;
    for (size_t i = 0; i < facts.members.size(); ++i) {
        const store::CollectiveMember& member = facts.members[i];
        const store::Collective* collective = facts.findCollective(member.collectiveId);
        if (collective != nullptr && member.endNs && collective->transferNs.value_or(0) > 0) {
            edges.push_back({*member.endNs - *collective->transferNs, true, transfers.size()});
            edges.push_back({*member.endNs, false, transfers.size()});
            transfers.push_back({collective->id, collective->communicatorId, *collective->transferNs});
        }
        if (i + 1 < facts.members.size() && facts.members[i + 1].rank == member.rank) continue;
        addBeside(transfers, edges);
        for (const Transfer& transfer : transfers) {
            if (transfer.besideNs <= 0) continue;
            double& share = shares[transfer.id];
            share = std::max(share, static_cast<double>(transfer.besideNs) / static_cast<double>(transfer.durNs));
        }
        transfers.clear();
        edges.clear();
    }
    return shares;
}

}  // namespace rankscope::costs
