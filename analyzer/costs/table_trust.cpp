// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/table_trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "analyzer/costs/algorithm_support.h"
#include "analyzer/costs/cost_fit.h"
#include "analyzer/costs/most_share.h"
#include "analyzer/costs/nccl_setting.h"
#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::costs {
namespace {

using Kind = TableNote::Kind;
using Thresholds = TableTrustThresholds;

constexpr size_t kFewestOwn = 3;  // messages of a size, of whose times the median tells

/// Returns a class of links as far as it is a limit: what was only reached is none.
std::optional<LinkClass> limitOf(const std::optional<LinkClass>& peak, const std::vector<LinkClass>& others) {
    const auto limits = [](const LinkClass& link) {
        return link.kind != PeakKind::measured && link.kind != PeakKind::atLeast;
    };
    if (peak && limits(*peak)) return peak;
    const auto at = std::ranges::find_if(others, limits);
    return at == others.end() ? std::nullopt : std::optional(*at);
}

/// Returns the job's group of a table's shape, else one whose ranks are spread evenly.
facts::Communicator shapedGroup(const NcclTestsTable& table, const facts::TraceFacts& facts) {
    const GroupShape shape{std::max(1, table.nodes), table.ranks};
    for (const auto& [id, communicator] : facts.communicators)
        if (shapeOf(communicator) == shape) return communicator;
    facts::Communicator group;
    group.size = shape.ranks;
    group.nodes = shape.nodes;
    group.smallestNode = std::max(1, shape.ranks / shape.nodes);
    return group;
}

/// Holds the most bus bandwidth that a table can show, bytes per ns, and why.
struct Limit {
    double bytesPerNs = 0;
    std::string why;
};

Limit physicalLimit(const NcclTestsTable& table, const facts::Communicator& group) {
    const double most =
        mostShare(linkOfRate(group, Thresholds::kFastestPort, 0), table.op, {table.algorithm, store::Protocol::simple});
    return {Thresholds::kFastestPort * most, "what the fastest port that there is could show (NVLink 6, 1800 GB/s)"};
}

std::optional<Limit> linkLimit(const NcclTestsTable& table, const LinkPeaks& peaks, const facts::Communicator& group) {
    LinkPeaks known;
    known.intra = limitOf(peaks.intra, peaks.intraOthers);
    known.inter = limitOf(peaks.inter, peaks.interOthers);
    const auto ceiling = known.ceiling(group, table.op);
    const auto link = linkModel(known, group, table.op);
    if (!ceiling || !link) return std::nullopt;
    // What a protocol leaves of a rate is the device's to say, and known less well than the rate.
    // Nor does a rate that was told say less than a ring's: what a tree does not reach of it others may not, either.
    const double most = std::max(1.0, mostShare(*link, table.op, {table.algorithm, store::Protocol::simple}));
    return Limit{
        kRefuted * most * ceiling->bytesPerNs,
        fmt::format("what the links could show: {:.4g} GB/s {} ({}: {}){}, and the tenth that clocks may be "
                    "off. If the table is right the peak is not: tell it by --links",
                    ceiling->link->bytesPerNs, ceiling->betweenNodes ? "a card between nodes" : "a rank's port",
                    toText(ceiling->link->kind), ceiling->link->source,
                    most > 1 ? fmt::format(", {:.3g} times by trees or switches", most) : std::string())};
}

/// Says which size is faster than can be; empty: none.
std::string impossibleText(const NcclTestsTable& table, const LinkPeaks& peaks, const facts::TraceFacts& facts) {
    const facts::Communicator group = shapedGroup(table, facts);
    Limit limit = physicalLimit(table, group);
    if (const auto links = linkLimit(table, peaks, group); links && links->bytesPerNs < limit.bytesPerNs)
        limit = *links;
    const NcclTestsRow* worst = nullptr;
    double most = limit.bytesPerNs;
    for (const NcclTestsRow& row : table.rows) {
        const double ns = 1000 * table.timeUs(row);
        if (ns > 0 && ns < Thresholds::kShortestNs)
            return fmt::format("{} in {:.3g} us (line {}) is less than a single hop of any link takes, {:.3g} us",
                               text::bytesText(static_cast<double>(row.bytes)), ns / 1000, row.line,
                               Thresholds::kShortestNs / 1000);
        const double rate = ns > 0 ? static_cast<double>(row.bytes) * facts::busFactor(table.op, table.ranks) / ns : 0;
        if (rate > most) most = rate, worst = &row;
    }
    if (worst == nullptr) return {};
    return fmt::format("{} in {} (line {}) are {:.4g} GB/s of bus bandwidth, beyond the {:.4g} GB/s of {}",
                       text::bytesText(static_cast<double>(worst->bytes)),
                       text::durationText(1000 * table.timeUs(*worst)), worst->line, most, limit.bytesPerNs, limit.why);
}

std::string sizeText(const NcclTestsTable& table, const NcclTestsRow& row) {
    return fmt::format("{} {} (line {})", text::bytesText(static_cast<double>(row.bytes)),
                       text::durationText(1000 * table.timeUs(row)), row.line);
}

/// Says which size has two times; empty: none.
std::string ambiguousText(const NcclTestsTable& table) {
    for (size_t i = 1; i < table.rows.size(); ++i) {
        const NcclTestsRow &one = table.rows[i - 1], &other = table.rows[i];
        const double times = table.timeUs(one) / table.timeUs(other);
        if (one.bytes == other.bytes && std::max(times, 1 / times) > SizeCurve::kKink)
            return fmt::format("it says two things of one size: {} and {}", sizeText(table, one),
                               sizeText(table, other));
    }
    return {};
}

/// Says that times fall where sizes grow; empty where they do not.
std::string fallingText(const NcclTestsTable& table) {
    size_t pairs = 0, falling = 0;
    double steepest = 0;
    const NcclTestsRow *from = nullptr, *to = nullptr;
    for (const NcclTestsRow& small : table.rows)
        for (const NcclTestsRow& large : table.rows) {
            if (static_cast<double>(large.bytes) < SizeCurve::kSmallestRange * static_cast<double>(small.bytes))
                continue;
            ++pairs;
            const double times = table.timeUs(small) / table.timeUs(large);
            falling += times > 1 + SizeCurve::kWorldError ? 1 : 0;
            if (times > steepest) steepest = times, from = &small, to = &large;
        }
    if (static_cast<double>(falling) <= Thresholds::kMostFalling * static_cast<double>(pairs)) return {};
    return fmt::format("its times fall with the size: {} takes longer than {}, and so do {} of {} pairs of sizes",
                       sizeText(table, *from), sizeText(table, *to), falling, pairs);
}

/// Returns true where a table's setting is what the job's message ran under: its choice, or the job's own variables.
bool standsFor(const NcclTestsTable& table, AlgorithmChoice present, const FunctionRule& rule) {
    const auto same = [](auto told, auto ran, const auto& allowed) {
        using Choice = decltype(ran);
        return told == ran || (told == Choice::unknown && allowed.empty());
    };
    return same(table.algorithm, present.algorithm, rule.algorithms) &&
           same(table.protocol, present.protocol, rule.protocols);
}

/// Returns the job's own times (ns) of what a table is about, medians by size (bytes).
std::map<double, double> ownTimes(const NcclTestsTable& table, const facts::TraceFacts& facts) {
    const FunctionRule rule =
        NcclSetting::parse(facts.text("env.NCCL_ALGO"), facts.text("env.NCCL_PROTO")).ruleOf(table.op);
    TimesBySize times;
    for (const store::Collective& one : facts.collectives) {
        const AlgorithmChoice choice{one.algorithm, one.protocol};
        const facts::Communicator* communicator = facts.findCommunicator(one.communicatorId);
        if (communicator == nullptr || one.op != table.op || !one.complete || !choice.known()) continue;
        if (shapeOf(*communicator) != GroupShape{std::max(1, table.nodes), table.ranks}) continue;
        if (one.bytes.value_or(0) <= 0 || one.transferNs.value_or(0) <= 0) continue;
        if (standsFor(table, choice, rule))
            times[static_cast<double>(*one.bytes)].push_back(static_cast<double>(*one.transferNs));
    }
    std::map<double, double> medians;
    for (const auto& [bytes, all] : times)
        if (all.size() >= kFewestOwn) medians[bytes] = facts::median(all);
    return medians;
}

/// Says that the job itself is much faster than a table of what it runs; empty where it is not. That it is slower says
/// nothing: tests have the links to themselves.
std::string beatenText(const NcclTestsTable& table, const facts::TraceFacts& facts) {
    const std::map<double, double> own = ownTimes(table, facts);
    if (own.empty()) return {};
    const SizeCurve curve(linkTimes(table));
    size_t compared = 0, beaten = 0;
    double most = 0;
    std::string worst;
    for (const auto& [bytes, ownNs] : own) {
        const bool inside = bytes >= curve.smallestBytes() && bytes <= curve.largestBytes();
        const auto told = inside && !curve.isKink(bytes) ? curve.ns(bytes) : std::nullopt;
        if (!told) continue;
        ++compared;
        const double times = (told->low - Thresholds::kLaunchNs) / ownNs;
        beaten += times > SizeCurve::kKink ? 1 : 0;
        if (times <= most) continue;
        most = times;
        worst = fmt::format("{} takes {} by it, and {} in this job, whose messages ran that way",
                            text::bytesText(bytes), text::durationText(told->expected), text::durationText(ownNs));
    }
    if (2 * beaten <= compared) return {};
    return fmt::format("{}: it is of another machine, or of a busy one ({} of {} sizes)", worst, beaten, compared);
}

/// Returns why a table is set aside by itself; nothing: it is not.
std::optional<TableNote> againstItself(const NcclTestsTable& table, const LinkPeaks& peaks,
                                       const facts::TraceFacts& facts) {
    const auto note = [&](Kind kind, const std::string& text) { return TableNote{kind, table.file, table.line, text}; };
    if (const std::string text = impossibleText(table, peaks, facts); !text.empty())
        return note(Kind::impossible, text);
    if (const std::string text = beatenText(table, facts); !text.empty()) return note(Kind::impossible, text);
    if (const std::string text = ambiguousText(table); !text.empty()) return note(Kind::inconsistent, text);
    if (const std::string text = fallingText(table); !text.empty()) return note(Kind::inconsistent, text);
    return std::nullopt;
}

bool isApart(const TableComparison& one) {
    return one.far > 0 && (one.far == one.shared ||
                           static_cast<double>(one.far) > Thresholds::kMostApart * static_cast<double>(one.shared));
}

/// Returns the tables of one setting and group that others contradict, each with why.
std::map<size_t, std::string> outvoted(const std::vector<NcclTestsTable>& tables, const std::vector<size_t>& same,
                                       const std::optional<NcclVersion>& version) {
    std::map<size_t, size_t> against, with;
    std::map<size_t, std::string> why;
    std::vector<std::vector<SizedTime>> times;
    for (size_t i : same) times.push_back(linkTimes(tables[i]));
    for (size_t a = 0; a < same.size(); ++a)
        for (size_t b = 0; b < same.size(); ++b) {
            if (a == b) continue;
            const TableComparison one = compareTimes(times[a], times[b]);
            if (one.shared == 0) continue;
            const NcclTestsTable &mine = tables[same[a]], &theirs = tables[same[b]];
            if (!isApart(one)) {
                ++with[same[a]];
                continue;
            }
            const bool foreign = isOtherVersion(mine, version), otherForeign = isOtherVersion(theirs, version);
            if (otherForeign && !foreign) continue;  // that one says nothing against a table of the job's own NCCL
            against[same[a]] += foreign && !otherForeign ? same.size() : 1;
            if (why.contains(same[a])) continue;
            why[same[a]] = fmt::format(
                "{} line {} says something else of the same: {} of {} sizes are more than {:.2g} times apart, {} takes "
                "{} here and {} there",
                theirs.file, theirs.line, one.far, one.shared, SizeCurve::kKink, text::bytesText(one.mine.bytes),
                text::durationText(one.mine.ns), text::durationText(one.theirs.ns));
        }
    std::erase_if(why, [&](const auto& one) { return against[one.first] <= with[one.first]; });
    return why;
}

}  // namespace

TrustedTables trustedTables(const std::vector<NcclTestsTable>& tables, const LinkPeaks& peaks,
                            const facts::TraceFacts& facts) {
    TrustedTables result;
    std::vector<NcclTestsTable> kept;
    for (const NcclTestsTable& table : tables) {
        if (auto note = againstItself(table, peaks, facts))
            result.setAside.push_back(std::move(*note));
        else
            kept.push_back(table);
    }
    using Same = std::tuple<store::Op, int, int, store::Algorithm, store::Protocol>;
    std::map<Same, std::vector<size_t>> bySetting;
    for (size_t i = 0; i < kept.size(); ++i)
        if (kept[i].severalChoices.empty() && kept[i].noSuchChoice.empty())
            bySetting[{kept[i].op, kept[i].ranks, kept[i].nodes, kept[i].algorithm, kept[i].protocol}].push_back(i);
    std::map<size_t, std::string> out;
    for (const auto& [setting, same] : bySetting)
        if (same.size() > 1) out.merge(outvoted(kept, same, ncclVersionOf(facts)));
    for (size_t i = 0; i < kept.size(); ++i) {
        const auto why = out.find(i);
        if (why == out.end())
            result.tables.push_back(std::move(kept[i]));
        else
            result.setAside.push_back(
                {Kind::contradicted, kept[i].file, kept[i].line, why->second + ". It is not used"});
    }
    return result;
}

}  // namespace rankscope::costs
