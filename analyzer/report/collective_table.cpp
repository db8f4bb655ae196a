// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "analyzer/facts/layout.h"
#include "analyzer/facts/operation.h"
#include "analyzer/report/analyze.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::report {
namespace {

struct Sums {
    int64_t count = 0, bytes = 0, transferNs = 0, timedBytes = 0, waitNs = 0;
    int64_t timed = 0, waits = 0;  // instances whose transfer is known, members whose wait is
    bool anyTransfer = false;
    std::map<int, int64_t> lastRanks;
    std::map<std::string, int64_t> algorithms, protocols;
};

}  // namespace

std::vector<CollectiveRow> collectiveTable(const job::Analysis& analysis) {
    const facts::TraceFacts& facts = analysis.facts;
    struct Waits {
        int64_t ns = 0, members = 0;
    };
    std::vector<Waits> waits(facts.collectives.size());  // of each, over its members
    for (const store::CollectiveMember& member : facts.members) {
        const store::Collective* of = member.waitNs ? facts.findCollective(member.collectiveId) : nullptr;
        if (of == nullptr) continue;
        Waits& sum = waits[static_cast<size_t>(of - facts.collectives.data())];
        sum.ns += *member.waitNs;
        ++sum.members;
    }
    const std::map<int64_t, std::string> names = facts::communicatorNames(facts, analysis.layout);
    const double steps = facts.wholeRunIsOneStep ? 1 : static_cast<double>(std::max<size_t>(1, analysis.steps.size()));
    std::map<std::tuple<int64_t, store::Op, int>, Sums> sums;
    for (size_t i = 0; i < facts.collectives.size(); ++i) {
        const store::Collective& c = facts.collectives[i];
        if (!facts.wholeRunIsOneStep && (!c.step || !std::ranges::binary_search(analysis.steps, *c.step))) continue;
        Sums& sum = sums[{c.communicatorId, c.op, text::sizeClassOf(c.bytes.value_or(0))}];
        ++sum.count;
        sum.bytes += c.bytes.value_or(0);
        sum.waitNs += waits[i].ns;
        sum.waits += waits[i].members;
        if (c.transferNs) {
            sum.anyTransfer = true;
            ++sum.timed;
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
            row.group = names.at(communicatorId);
        }
        row.op = store::toText(op);
        row.sizeClass = text::sizeClassText(sizeClass);
        row.count = sum.count;
        if (sizeClass >= 0) row.bytes = sum.bytes;
        if (sum.waits > 0) row.waitNs = sum.waitNs;
        if (sum.anyTransfer) row.transferNs = sum.transferNs;
        row.countPerStep = static_cast<double>(sum.count) / steps;
        if (row.bytes) row.bytesPerStep = static_cast<double>(sum.bytes) / steps;
        if (sum.waits > 0)
            row.waitNsPerRankStep = static_cast<double>(sum.waitNs) / static_cast<double>(sum.waits) * row.countPerStep;
        if (sum.timed > 0)
            row.transferNsPerRankStep =
                static_cast<double>(sum.transferNs) / static_cast<double>(sum.timed) * row.countPerStep;
        if (sum.transferNs > 0 && sum.timedBytes > 0) {
            row.algbw = static_cast<double>(sum.timedBytes) / static_cast<double>(sum.transferNs) * 1e9;
            row.busbw = *row.algbw * facts::busFactor(op, row.ranks);
        }
        row.algorithm = text::mostCommon(sum.algorithms);
        row.protocol = text::mostCommon(sum.protocols);
        if (const costs::CostFit* fit = analysis.cost.line(communicatorId, op)) {
            row.alphaNs = fit->alphaNs;
            row.crossoverBytes = fit->crossoverBytes();
            row.fitSource = fit->source;
        }
        row.lastRanks.assign(sum.lastRanks.begin(), sum.lastRanks.end());
        std::ranges::stable_sort(row.lastRanks, std::greater{}, [](const auto& entry) { return entry.second; });
        rows.push_back(std::move(row));
    }
    std::ranges::stable_sort(rows, [](const CollectiveRow& a, const CollectiveRow& b) {
        return a.transferNsPerRankStep.value_or(0) + a.waitNsPerRankStep.value_or(0) >
               b.transferNsPerRankStep.value_or(0) + b.waitNsPerRankStep.value_or(0);
    });
    return rows;
}

}  // namespace rankscope::report
