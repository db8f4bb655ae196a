// SPDX-License-Identifier: Apache-2.0
// What an export of Rankscope tells of its run beside the events (analyzer/export/about_run.h writes it): the rows of
// the small tables, by the columns' names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collector/store/event_model.h"

namespace rankscope::collector {

struct ExportedAbout {
    std::map<std::string, std::string> meta;
    std::vector<store::Host> hosts;
    std::vector<store::Process> processes;
    std::vector<store::Rank> ranks;
    std::vector<store::Device> devices;
    std::vector<store::MachineLink> machineLinks;
    std::vector<store::Thread> threads;
    std::vector<store::Stream> streams;
    std::vector<store::Communicator> communicators;
    std::vector<store::CommunicatorMember> members;
    std::vector<store::FailedAllocation> failedAllocations;
    std::vector<store::Loss> losses;
    std::vector<store::SourceStatus> sources;
    std::map<int64_t, std::string> symbols;  ///< names of kernels
    int64_t cutSymbols = 0;                  ///< of those: how many were too long to be kept whole
};

/// Throws ImportError for what is no such text: of another program, or of a version that told less.
ExportedAbout readExportedAbout(const std::filesystem::path& file, std::string_view text);

}  // namespace rankscope::collector
