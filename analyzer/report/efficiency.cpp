// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/efficiency.h"

#include <algorithm>

#include "analyzer/diagnose/price.h"

namespace rankscope::report {
namespace {

Efficiency efficiencyOf(const std::vector<const BreakdownRow*>& rows) {
    Efficiency result;
    double compute = 0, longest = 0, step = 0;
    for (const BreakdownRow* row : rows) {
        compute += static_cast<double>(row->total.computeNs);
        longest = std::max(longest, static_cast<double>(row->total.computeNs));
        step = std::max(step, static_cast<double>(row->total.stepNs));
    }
    if (rows.empty() || step <= 0 || longest <= 0) return result;
    const double mean = compute / static_cast<double>(rows.size());
    result.parallel = mean / step;
    if (rows.size() < 2) return result;  // one rank has nobody to be balanced with
    result.loadBalance = mean / longest;
    result.serialisation = *result.parallel / *result.loadBalance;
    return result;
}

}  // namespace

EfficiencySection efficiencySection(const job::Analysis& analysis, const std::vector<BreakdownRow>& rows) {
    EfficiencySection section;
    std::vector<const BreakdownRow*> all;
    std::map<int, const BreakdownRow*> byRank;
    for (const BreakdownRow& row : rows) {
        all.push_back(&row);
        byRank[row.rank] = &row;
    }
    static_cast<Efficiency&>(section) = efficiencyOf(all);
    section.transfer = diagnose::transferEfficiency(analysis);
    if (section.serialisation && section.transfer && *section.transfer > 0) *section.serialisation /= *section.transfer;
    for (const auto& [id, role] : analysis.layout.roles) {
        if (role == facts::CommRole::unknown || role == facts::CommRole::control) continue;
        GroupEfficiency group;
        group.communicator = id;
        group.role = std::string(toText(role));
        std::vector<const BreakdownRow*> members;
        for (int rank : analysis.facts.communicators.at(id).ranks) {
            const auto row = byRank.find(rank);
            if (row == byRank.end()) continue;
            members.push_back(row->second);
            group.ranks.push_back(rank);
        }
        if (members.size() < 2) continue;
        static_cast<Efficiency&>(group) = efficiencyOf(members);
        section.groups.push_back(std::move(group));
    }
    return section;
}

}  // namespace rankscope::report
