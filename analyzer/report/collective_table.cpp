// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/collective_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analyzer/report/units.h"
#include "analyzer/timeline/operation.h"

namespace rankscope::analyzer {
namespace {

int sizeClassOf(const store::Collective& c) { return c.bytes && *c.bytes > 0 ? static_cast<int>(std::floor(std::log2(static_cast<double>(*c.bytes)) / 2)) : -1; }

std::string sizeClassText(int sizeClass) {
    if (sizeClass < 0) return "unknown size";
    return bytesText(std::pow(4.0, sizeClass)) + " to " + bytesText(std::pow(4.0, sizeClass + 1));
}

struct Sums {
    int64_t count = 0, bytes = 0, transferNs = 0, timedBytes = 0, waitNs = 0;
    bool anyTransfer = false;
    std::map<int, int64_t> lastRanks;
    std::map<std::string, int64_t> algorithms, protocols;
};

std::string mostCommon(const std::map<std::string, int64_t>& counts) {
    const auto most = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == counts.end() ? "" : most->first;
}

}  // namespace

std::vector<CollectiveRow> collectiveTable(const Analysis& analysis) {
    const TraceFacts& facts = analysis.facts;
    std::map<int64_t, int64_t> waits;  // by collective, over its members
    for (const store::CollectiveMember& member : facts.members) waits[member.collectiveId] += member.waitNs.value_or(0);
    std::map<std::tuple<int64_t, store::Op, int>, Sums> sums;
    for (const store::Collective& c : facts.collectives) {
        if (!facts.wholeRunIsOneStep && (!c.step || !std::binary_search(analysis.steps.begin(), analysis.steps.end(), *c.step))) continue;
        Sums& sum = sums[{c.communicatorId, c.op, sizeClassOf(c)}];
        ++sum.count;
        sum.bytes += c.bytes.value_or(0);
        sum.waitNs += waits[c.id];
        if (c.transferNs) {
            sum.anyTransfer = true;
            sum.transferNs += *c.transferNs;
            sum.timedBytes += c.bytes.value_or(0);
        }
        if (c.lastRank) ++sum.lastRanks[*c.lastRank];
        if (c.algorithm != store::Algorithm::unknown) ++sum.algorithms[std::string(store::toText(c.algorithm))];
        if (c.protocol != store::Protocol::unknown) ++sum.protocols[std::string(store::toText(c.protocol))];
    }
    std::vector<CollectiveRow> rows;
    for (const auto& [key, sum] : sums) {
        const auto& [communicatorId, op, sizeClass] = key;
        CollectiveRow row;
        row.communicator = communicatorId;
        const auto communicator = facts.communicators.find(communicatorId);
        if (communicator != facts.communicators.end()) {
            row.communicatorName = communicator->second.name;
            row.ranks = communicator->second.size;
        }
        row.op = store::toText(op);
        row.sizeClass = sizeClassText(sizeClass);
        row.count = sum.count;
        if (sizeClass >= 0) row.bytes = sum.bytes;
        row.waitNs = sum.waitNs;
        if (sum.anyTransfer) row.transferNs = sum.transferNs;
        if (sum.transferNs > 0 && sum.timedBytes > 0) {
            row.algbw = static_cast<double>(sum.timedBytes) / static_cast<double>(sum.transferNs) * 1e9;
            row.busbw = *row.algbw * busFactor(op, row.ranks);
        }
        row.algorithm = mostCommon(sum.algorithms);
        row.protocol = mostCommon(sum.protocols);
        if (const CostFit* fit = analysis.findFit(communicatorId, op)) {
            row.alphaNs = fit->alphaNs;
            row.crossoverBytes = fit->crossoverBytes();
            row.fitSource = fit->source;
        }
        row.lastRanks.assign(sum.lastRanks.begin(), sum.lastRanks.end());
        std::stable_sort(row.lastRanks.begin(), row.lastRanks.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
        rows.push_back(std::move(row));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const CollectiveRow& a, const CollectiveRow& b) {
        return a.transferNs.value_or(0) + a.waitNs > b.transferNs.value_or(0) + b.waitNs;
    });
    return rows;
}

}  // namespace rankscope::analyzer
