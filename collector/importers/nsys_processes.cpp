// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/nsys_processes.h"

#include <utility>
#include <vector>

namespace rankscope::collector {

DeviceRank& NsysProcesses::rankOf(std::optional<int64_t> globalPid, int64_t device) {
    std::unique_ptr<DeviceRank>& rank = m_processes[processOf(globalPid.value_or(m_unnamed))].ranks[device];
    if (!rank) rank = std::make_unique<DeviceRank>([this](int64_t id) { return m_database.string(id); }, device);
    return *rank;
}

NsysProcesses::Process* NsysProcesses::known(std::optional<int64_t> globalTid) {
    const auto process = m_processes.find(processOf(globalTid.value_or(m_unnamed)));
    return process == m_processes.end() ? nullptr : &process->second;
}

DeviceRank* NsysProcesses::rankAt(std::optional<int64_t> globalPid, std::optional<int64_t> device) {
    Process* process = known(globalPid);
    if (process == nullptr) return nullptr;
    const auto own = device ? process->ranks.find(*device) : process->ranks.end();
    return own != process->ranks.end() ? own->second.get() : process->ranks.begin()->second.get();
}

/// The device that a process computes on, where the others hold stray work alone, as of a context that a library
/// opened on GPU 0: the only one with kernels of NCCL; where none has any, the one with 95 % of the time of all
/// kernels, since ranks of one process share its work about evenly. None where several devices are ranks.
DeviceRank* NsysProcesses::mainDevice(const Process& process) {
    std::vector<DeviceRank*> communicating;
    DeviceRank* busiest = nullptr;
    double allNs = 0;
    for (const auto& [device, rank] : process.ranks) {
        if (rank->communicates()) communicating.push_back(rank.get());
        if (busiest == nullptr || rank->kernelNs() > busiest->kernelNs()) busiest = rank.get();
        allNs += rank->kernelNs();
    }
    if (communicating.size() == 1) return communicating.front();
    return communicating.empty() && allNs > 0 && busiest->kernelNs() >= 0.95 * allNs ? busiest : nullptr;
}

void NsysProcesses::findUnnamed() {
    if (m_processes.count(m_unnamed) == 0) return;
    std::set<int64_t> processes;
    ImportLosses twice;  // told when the tables are read
    for (const char* table : {"CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"})
        if (processes.empty())
            m_database.forEach(table, {"globalTid"}, twice, [&](const NsysDatabase::Row& row) {
                if (row.integer(0)) processes.insert(processOf(*row.integer(0)));
            });
    if (processes.size() != 1 || m_processes.count(*processes.begin()) > 0) return;
    auto process = m_processes.extract(m_unnamed);
    m_unnamed = process.key() = *processes.begin();
    m_processes.insert(std::move(process));
}

void NsysProcesses::dropStrayDevices() {
    for (auto& [globalPid, process] : m_processes) {
        if (process.ranks.size() < 2) continue;
        const DeviceRank* main = mainDevice(process);
        if (main == nullptr) continue;
        std::string devices;
        int64_t rows = 0;
        for (auto rank = process.ranks.begin(); rank != process.ranks.end();) {
            if (rank->second.get() == main) {
                ++rank;
                continue;
            }
            devices += (devices.empty() ? "" : ", ") + std::to_string(rank->first);
            rows += static_cast<int64_t>(rank->second->rows());
            for (const LocalStream& stream : rank->second->recording().streams)
                process.strayContexts.insert(stream.context);
            rank = process.ranks.erase(rank);
        }
        for (const LocalStream& stream : process.ranks.begin()->second->recording().streams)
            process.strayContexts.erase(stream.context);  // an export without contexts has one for all
        m_losses.add("source_absent", "info", std::nullopt,
                     "rows of process " + std::to_string(pidOf(globalPid)) + " on other devices (" + devices +
                         ") than its own, " + std::to_string(main->device()) +
                         ", are left out: they have no part in its communication",
                     rows);
    }
}

void NsysProcesses::correlate() {
    for (auto& [globalPid, process] : m_processes) {
        if (process.ranks.size() < 2) continue;
        const auto add = [&, own = &process](const auto& rows, DeviceRank& rank) {
            for (const auto& row : rows)
                if (row.correlationId) own->rankOf.emplace(*row.correlationId, &rank);
        };
        for (auto& [device, rank] : process.ranks) {
            add(rank->recording().kernels, *rank);
            add(rank->recording().memcpys, *rank);
            add(rank->recording().memsets, *rank);
        }
    }
}

}  // namespace rankscope::collector
