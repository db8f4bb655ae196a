// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "analyzer/compare/run_summary.h"
#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"
#include "collector/store/vocabulary.h"

namespace rankscope::compare {
namespace {

struct Sums {
    TrafficSummary row;
    std::vector<double> busbws;
    std::map<std::string, int> algorithms, protocols, dataTypes;
    std::set<int> ranks;
};

/// Bytes that a port carries in one direction. Messages to several neighbours leave by the same port; of a group of
/// sends and receives half leave and half arrive.
double portBytes(const facts::CommTask& task) {
    const auto bytes = static_cast<double>(task.bytes);
    return task.pointToPoint() && task.calls > 1 ? bytes / 2 : bytes;
}

void add(const facts::CommTask& task, int rank, int members, Sums& sums) {
    ++sums.row.count;
    sums.ranks.insert(rank);
    if (task.bytes > 0) sums.row.bytes += static_cast<double>(task.bytes);
    const auto transferNs = static_cast<double>(task.transferNs());
    sums.row.transferNs += transferNs;
    sums.row.waitNs += static_cast<double>(task.waitNs);
    sums.row.exposedTransferNs += static_cast<double>(task.exposedTransferNs);
    sums.row.exposedWaitNs += static_cast<double>(task.exposedWaitNs);
    if (transferNs > 0 && task.bytes > 0)
        sums.busbws.push_back(portBytes(task) / transferNs * 1e9 * facts::busFactor(task.op, members));
    if (task.algorithm != store::Algorithm::unknown) ++sums.algorithms[std::string(store::toText(task.algorithm))];
    if (task.protocol != store::Protocol::unknown) ++sums.protocols[std::string(store::toText(task.protocol))];
    if (task.dataType != store::DataType::unknown) ++sums.dataTypes[std::string(store::toText(task.dataType))];
}

}  // namespace

std::vector<TrafficSummary> summarizeTraffic(const job::Analysis& analysis) {
    std::map<std::tuple<facts::CommRole, store::Op, int, int>, Sums> groups;
    for (const facts::RankSummary& rank : analysis.ranks) {
        for (const facts::CommTask& task : rank.communication) {
            if (task.step < 0) continue;
            const facts::Communicator* communicator = analysis.facts.findCommunicator(task.communicatorId);
            const int members = communicator ? communicator->size : 0;
            Sums& sums = groups[{analysis.layout.role(task), task.op, members, text::sizeClassOf(task.bytes)}];
            add(task, rank.rank, members, sums);
            if (communicator) sums.row.nodes = std::max(sums.row.nodes, communicator->nodes);
        }
    }
    std::vector<TrafficSummary> traffic;
    for (auto& [key, sums] : groups) {
        const auto& [use, op, members, sizeClass] = key;
        const double share =
            static_cast<double>(sums.ranks.size()) * static_cast<double>(std::max<size_t>(1, analysis.steps.size()));
        TrafficSummary& row = sums.row;
        for (const auto& field : kTrafficNumbers) row.*field.member /= share;
        row.use = std::string(toText(use));
        row.op = std::string(store::toText(op));
        row.dataType = text::mostCommon(sums.dataTypes);
        row.ranks = members;
        row.sizeClass = sizeClass;
        row.busbw = facts::median(std::move(sums.busbws));
        row.algorithm = text::mostCommon(sums.algorithms);
        row.protocol = text::mostCommon(sums.protocols);
        traffic.push_back(std::move(row));
    }
    std::ranges::stable_sort(traffic, std::greater{},
                             [](const TrafficSummary& row) { return row.transferNs + row.waitNs; });
    return traffic;
}

}  // namespace rankscope::compare
