// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/collective_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analyzer/costs/nccl_names.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/json_text.h"
#include "analyzer/text/units.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"

namespace rankscope::recommend {
namespace {

bool isSwept(store::Op op) {
    return op == store::Op::allReduce || op == store::Op::allGather || op == store::Op::reduceScatter;
}

/// By rank: its communicator among as many as can work side by side, each rank in at most one; -1: in none.
std::vector<int> sideBySide(const std::vector<std::set<int>>& communicators, int worldSize) {
    std::vector<int> groupOfRank(static_cast<size_t>(worldSize), -1);
    int groups = 0;
    for (const auto& members : communicators) {
        const auto groupOf = [&](int rank) -> int& { return groupOfRank[static_cast<size_t>(rank)]; };
        if (!std::ranges::all_of(members, [&](int rank) { return groupOf(rank) < 0; })) continue;
        for (int rank : members) groupOf(rank) = groups;
        ++groups;
    }
    return groupOfRank;
}

std::map<int64_t, std::set<int>> membersOf(store::TraceReader& reader, int& worldSize) {
    std::map<int64_t, std::set<int>> members;
    for (const auto& member : reader.all<store::CommunicatorMember>()) {
        members[member.communicatorId].insert(member.rank);
        worldSize = std::max(worldSize, member.rank + 1);
    }
    for (const auto& rank : reader.all<store::Rank>()) worldSize = std::max(worldSize, rank.rank + 1);
    return members;
}

std::map<int64_t, costs::GroupShape> shapesOf(store::TraceReader& reader) {
    std::map<int64_t, costs::GroupShape> shapes;
    for (const auto& communicator : reader.all<store::Communicator>())
        shapes[communicator.id] = {communicator.nodeCount, communicator.nRanks};
    return shapes;
}

std::string usedText(const costs::AlgorithmChoice& used) {
    return costs::tunerName(used.algorithm) + " " + costs::ncclName(used.protocol);
}

}  // namespace

SweepPlan planSweep(const std::filesystem::path& trace, int times, size_t maxSizes) {
    store::TraceReader reader(trace, {}, store::MisplacedRows::refused, store::MissingShards::elsewhere);
    SweepPlan plan;
    const auto members = membersOf(reader, plan.worldSize);
    const auto shapes = shapesOf(reader);
    std::map<costs::GroupShape, std::map<std::pair<store::Op, int64_t>, double>> timeOf;
    for (const auto& collective : reader.all<store::Collective>()) {
        const auto shape = shapes.find(collective.communicatorId);
        if (!isSwept(collective.op) || !collective.bytes || *collective.bytes <= 0 || !collective.transferNs ||
            shape == shapes.end() || shape->second.ranks < 2)
            continue;
        timeOf[shape->second][{collective.op, *collective.bytes}] += static_cast<double>(*collective.transferNs);
    }
    for (const auto& [shape, ofKind] : timeOf) {
        std::vector<std::set<int>> communicators;
        for (const auto& [id, ranks] : members)
            if (shapes.at(id) == shape && static_cast<int>(ranks.size()) == shape.ranks) communicators.push_back(ranks);
        if (communicators.empty()) {
            plan.leftOut.push_back(fmt::format("communicators of {} ranks on {} nodes: their members are not known",
                                               shape.ranks, shape.nodes));
            continue;
        }
        std::vector<std::pair<double, std::pair<store::Op, int64_t>>> byTime;
        for (const auto& [kind, ns] : ofKind) byTime.push_back({-ns, kind});
        std::sort(byTime.begin(), byTime.end());
        if (byTime.size() > maxSizes) {
            plan.leftOut.push_back(fmt::format("{} less important sizes of communicators of {} ranks on {} nodes",
                                               byTime.size() - maxSizes, shape.ranks, shape.nodes));
            byTime.resize(maxSizes);
        }
        plan.text += "groups";
        for (const int group : sideBySide(communicators, plan.worldSize)) plan.text += fmt::format(" {}", group);
        plan.text += '\n';
        for (const auto& [ns, kind] : byTime)
            plan.text += fmt::format("{} {} {}\n", costs::ncclName(kind.first), kind.second, times);
        plan.collectives += byTime.size();
    }
    if (plan.collectives == 0)
        throw store::Error(trace.string(), "no all-reduce, all-gather or reduce-scatter with its size and time in it",
                           "a sweep repeats the collectives of a recorded run");
    return plan;
}

void addSweptTimes(const std::filesystem::path& trace, SweptTimes& times) {
    store::TraceReader reader(trace, {}, store::MisplacedRows::refused, store::MissingShards::elsewhere);
    const auto shapes = shapesOf(reader);
    std::map<std::pair<int64_t, std::pair<store::Op, int64_t>>, int> seen;
    for (const auto& collective : reader.all<store::Collective>()) {
        const auto shape = shapes.find(collective.communicatorId);
        if (!isSwept(collective.op) || !collective.bytes || !collective.transferNs || shape == shapes.end()) continue;
        const costs::AlgorithmChoice choice{collective.algorithm, collective.protocol};
        if (!choice.known()) continue;
        // The first two of a kind set up connections and memory.
        if (seen[{collective.communicatorId, {collective.op, *collective.bytes}}]++ < 2) continue;
        times[{collective.op, shape->second.nodes, shape->second.ranks, *collective.bytes}][choice].push_back(
            static_cast<double>(*collective.transferNs));
    }
}

std::vector<SweepSetting> sweepSettings() {
    std::vector<SweepSetting> settings;
    for (const char* algorithm : {"ring", "tree", "nvls", "nvls_tree", "pat"})
        for (const char* protocol : {"ll", "ll128", "simple"}) {
            std::string lines;
            for (const char* collective : {"allreduce", "allgather", "reducescatter"})
                lines += fmt::format("{},0,-1,{},{},-1,-1,-1\n", collective, algorithm, protocol);
            auto rows = parseTunerCsv(lines).rows;  // those that exist
            if (!rows.empty()) settings.push_back({fmt::format("{}-{}", algorithm, protocol), std::move(rows)});
        }
    return settings;
}

std::vector<SweepChoice> chooseFromSweep(const SweptTimes& standard, const SweptTimes& all, double minGainShare) {
    std::vector<SweepChoice> choices;
    for (const auto& [what, byUse] : standard) {
        if (byUse.empty()) continue;
        // What it used most often.
        const auto most = std::ranges::max_element(byUse, {}, [](const auto& use) { return use.second.size(); });
        SweepChoice choice{what, most->first, most->first, facts::quantile(most->second, 0.5), 0, false};
        choice.bestNs = choice.standardNs;
        const auto measured = all.find(what);
        if (measured != all.end())
            for (const auto& [used, times] : measured->second) {
                const double median = facts::quantile(times, 0.5);
                if (used == choice.standard || median >= choice.bestNs) continue;
                choice.best = used;
                choice.bestNs = median;
                choice.better = median < (1 - minGainShare) * choice.standardNs &&
                                facts::quantile(times, 0.75) < facts::quantile(most->second, 0.25);
            }
        choices.push_back(choice);
    }
    return choices;
}

std::vector<TunerRow> rowsFromSweep(const std::vector<SweepChoice>& choices) {
    std::vector<TunerRow> rows;
    const auto sameKind = [](const SweptCollective& a, const SweptCollective& b) {
        return a.op == b.op && a.nodes == b.nodes && a.ranks == b.ranks;
    };
    const SweepChoice* joined = nullptr;  // the choice that the last row was made for
    for (size_t i = 0; i < choices.size(); ++i) {
        const SweepChoice& choice = choices[i];
        if (!choice.better) continue;
        const bool hasBefore = i > 0 && sameKind(choices[i - 1].what, choice.what),
                   hasBehind = i + 1 < choices.size() && sameKind(choices[i + 1].what, choice.what);
        const auto between = [](int64_t a, int64_t b) {
            return static_cast<int64_t>(std::sqrt(static_cast<double>(a) * static_cast<double>(b)));
        };
        const int64_t first = hasBefore ? between(choices[i - 1].what.bytes, choice.what.bytes) + 1 : choice.what.bytes;
        const int64_t last = hasBehind ? between(choice.what.bytes, choices[i + 1].what.bytes) : choice.what.bytes;
        if (joined && joined == &choices[i - 1] && hasBefore && joined->best == choice.best) {
            rows.back().maxBytes = last;
        } else {
            rows.push_back({.collective = costs::ncclName(choice.what.op),
                            .minBytes = std::min(first, choice.what.bytes),
                            .maxBytes = last,
                            .algorithm = costs::tunerName(choice.best.algorithm),
                            .protocol = costs::ncclName(choice.best.protocol),
                            .nodes = choice.what.nodes,
                            .ranks = choice.what.ranks});
        }
        joined = &choice;
    }
    return rows;
}

std::string renderSweepText(const std::vector<SweepChoice>& choices) {
    std::string text = fmt::format("{:<14} {:>5} x {:<5} {:>10}  {:<24} {:<24}\n", "collective", "nodes", "ranks",
                                   "size", "by default", "fastest");
    for (const SweepChoice& choice : choices) {
        const std::string standard =
            fmt::format("{:<14} {}", usedText(choice.standard), text::durationText(choice.standardNs));
        const std::string best =
            choice.better ? fmt::format("{:<14} {}", usedText(choice.best), text::durationText(choice.bestNs))
                          : "the default";
        text +=
            fmt::format("{:<14} {:>5} x {:<5} {:>10}  {:<24} {}\n", costs::ncclName(choice.what.op), choice.what.nodes,
                        choice.what.ranks, text::bytesText(static_cast<double>(choice.what.bytes)), standard, best);
    }
    return text;
}

std::string renderSweepJson(const std::vector<SweepChoice>& choices, const std::vector<TunerRow>& rows) {
    const auto used = [](const costs::AlgorithmChoice& what, double ns) {
        return text::Json{{"algorithm", costs::tunerName(what.algorithm)},
                          {"protocol", costs::ncclName(what.protocol)},
                          {"transfer_ns", text::whole(ns)}};
    };
    text::Json json;
    json["schema"] = "rankscope.sweep/1";
    json["collectives"] = text::arrayOf(choices, [&](const SweepChoice& choice) {
        return text::Json{{"op", costs::ncclName(choice.what.op)},
                          {"nodes", choice.what.nodes},
                          {"ranks", choice.what.ranks},
                          {"bytes", choice.what.bytes},
                          {"default", used(choice.standard, choice.standardNs)},
                          {"fastest", used(choice.best, choice.bestNs)},
                          {"better", choice.better}};
    });
    json["tuner_csv"] = text::arrayOf(rows, formatTunerRow);
    return text::jsonText(json);
}

}  // namespace rankscope::recommend
