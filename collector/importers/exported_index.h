// SPDX-License-Identifier: Apache-2.0
// Rows of what an export tells of its run, where a rank finds its own without a search of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "collector/importers/exported_about.h"

namespace rankscope::collector {

/// Points into the rows that it was made of. Of rows with the same id the first counts.
struct ExportedIndex {
    struct OfRank {
        const store::Rank* row = nullptr;
        std::vector<const store::Stream*> streams;
        std::vector<const store::Thread*> threads;
        std::vector<const store::MachineLink*> links;
        /// By the place of their communicator among all.
        std::map<size_t, const store::CommunicatorMember*> members;
        std::vector<const store::FailedAllocation*> failedAllocations;
        std::vector<const store::Loss*> losses;
        std::vector<const store::SourceStatus*> sources;
    };
    struct OfHost {
        const store::Host* row = nullptr;
        std::vector<const store::Device*> devices;
        std::vector<const store::MachineLink*> links;
    };

    ExportedIndex() = default;
    explicit ExportedIndex(const ExportedAbout& about);

    std::map<int64_t, OfRank> ranks;
    std::map<int64_t, OfHost> hosts;
    std::map<int64_t, const store::Process*> processes;
    std::map<int64_t, const store::Device*> devices;
    std::map<int64_t, const store::Thread*> sharedThreads;  ///< of no rank
};

}  // namespace rankscope::collector
