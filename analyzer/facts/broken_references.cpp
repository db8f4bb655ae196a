// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/broken_references.h"

#include <fmt/format.h>

#include "collector/store/error.h"

namespace rankscope::facts {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& damage) {
    throw store::Error(file, "damaged: " + damage, "make it again with `rankscope collect` or `rankscope import`");
}

}  // namespace

void refuseBrokenReferences(const std::string& file, const TraceFacts& facts) {
    const auto requireRank = [&](int rank, const char* table) {
        if (facts.findRank(rank) == nullptr)
            refuse(file, fmt::format("table {} names rank {}, which table rank does not list", table, rank));
    };
    const auto requireCommunicator = [&](int64_t id, const char* table) {
        if (!facts.communicators.contains(id))
            refuse(file,
                   fmt::format("table {} names communicator {}, which table communicator does not list", table, id));
    };
    for (const auto& [id, communicator] : facts.communicators) {
        if (communicator.ranks.empty())
            refuse(file, fmt::format("communicator {} has no members in table communicator_member", id));
        if (communicator.size < static_cast<int>(communicator.ranks.size()))
            refuse(file, fmt::format("communicator {} of {} ranks has {} members", id, communicator.size,
                                     communicator.ranks.size()));
        for (int rank : communicator.ranks) requireRank(rank, "communicator_member");
    }
    for (const store::Collective& row : facts.collectives) requireCommunicator(row.communicatorId, "collective");
    for (const store::CollectiveMember& row : facts.members) {
        requireRank(row.rank, "collective_member");
        if (facts.findCollective(row.collectiveId) == nullptr)
            refuse(file,
                   fmt::format("table collective_member names collective {}, which table collective does not list",
                               row.collectiveId));
    }
    for (const store::P2p& row : facts.pointToPoint) {
        requireCommunicator(row.communicatorId, "p2p");
        requireRank(row.srcRank, "p2p");
        requireRank(row.dstRank, "p2p");
    }
}

}  // namespace rankscope::facts
