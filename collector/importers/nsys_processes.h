// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "collector/importers/device_rank.h"
#include "collector/importers/import_loss.h"
#include "collector/importers/nsys_database.h"

namespace rankscope::collector {

// A globalTid is the host, the process and the thread; a globalPid the same without the thread.
inline constexpr int64_t kNsysThreadBits = 0xffffff;
inline int64_t processOf(int64_t globalTid) {
    return globalTid & ~kNsysThreadBits;
}
inline int64_t threadIn(int64_t globalTid) {
    return globalTid & kNsysThreadBits;
}
inline int64_t pidOf(int64_t globalPid) {
    return (globalPid >> 24) & 0xffffff;
}

/// The processes of a report that have device work, and the rank that each is on each of its devices.
class NsysProcesses {
  public:
    struct Process {
        std::map<int64_t, std::unique_ptr<DeviceRank>> ranks;  // by device
        std::map<uint32_t, DeviceRank*> rankOf;                // by correlation, where there are several
        std::set<int64_t> strayContexts;                       // of devices that make no rank
        std::string name;
    };
    static constexpr int64_t kUnnamed = 0;  ///< no globalPid, which has a host

    NsysProcesses(NsysDatabase& database, ImportLosses& losses) : m_database(database), m_losses(losses) {}

    /// Makes the rank of a process on a device; without a globalPid that of the unnamed process.
    DeviceRank& rankOf(std::optional<int64_t> globalPid, int64_t device);
    /// Null for a process without device work; without a globalPid the unnamed one.
    Process* known(std::optional<int64_t> globalTid);
    /// The rank that a row of a process is of: the one on its device, else its only or first one; none for a process
    /// without GPU work.
    DeviceRank* rankAt(std::optional<int64_t> globalPid, std::optional<int64_t> device);

    /// Device work without a globalPid is of the process that made the CUDA calls, or else the ranges, where it is one.
    void findUnnamed();
    /// Forgets devices that hold stray work alone, and says so.
    void dropStrayDevices();
    /// Says which rank launched what, in processes of several.
    void correlate();

    bool empty() const { return m_processes.empty(); }
    bool hasUnnamed() const { return m_processes.count(kUnnamed) > 0; }
    std::map<int64_t, Process>& all() { return m_processes; }  ///< by globalPid

  private:
    static DeviceRank* mainDevice(const Process& process);

    NsysDatabase& m_database;
    ImportLosses& m_losses;
    std::map<int64_t, Process> m_processes;
    int64_t m_unnamed = kUnnamed;  // process of device work without a globalPid
};

}  // namespace rankscope::collector
