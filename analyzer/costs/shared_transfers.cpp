// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/shared_transfers.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace rankscope::costs {
namespace {

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
    bool operator<(const Edge& other) const {
        return std::tie(atNs, begins, transfer) < std::tie(other.atNs, other.begins, other.transfer);
    }
};

/// Goes over one rank's edges in time with the few transfers that are under way.
void addBeside(std::vector<Transfer>& transfers, std::vector<Edge>& edges) {
    std::sort(edges.begin(), edges.end());
    std::vector<size_t> active;
    int64_t sinceNs = 0;
    for (const Edge& edge : edges) {
        const bool several = std::any_of(active.begin(), active.end(), [&](size_t i) {
            return transfers[i].communicatorId != transfers[active.front()].communicatorId;
        });
        if (several)
            for (size_t i : active) transfers[i].besideNs += edge.atNs - sinceNs;
        sinceNs = edge.atNs;
        const auto at = std::find(active.begin(), active.end(), edge.transfer);
        if (edge.begins)
            active.push_back(edge.transfer);
        else if (at != active.end())
            active.erase(at);
    }
}

}  // namespace

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
