// SPDX-License-Identifier: Apache-2.0
// Processes that rocprofv3 recorded, whichever of its formats tells of them. A rank is what one process did on one GPU.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/importers/device_rank.h"
#include "collector/importers/reader.h"

namespace rankscope::collector {

/// What every record of rocprofv3 tells, in nanoseconds of the host's clock.
struct RocprofTimes {
    std::optional<int64_t> startNs, endNs;
    std::optional<int64_t> correlation;  ///< of the call that caused it; rocprofv3 counts calls from 1
};

struct RocprofAgent {
    bool isGpu = false;
    int64_t ordinal = 0;  ///< among the GPUs of the node
    std::string name;
    std::optional<int64_t> computeUnits;
};

/// Three sizes of a dispatch, in work-items.
struct RocprofDispatch {
    std::array<std::optional<int64_t>, 3> grid, workgroup;
};

class RocprofRun {
  public:
    explicit RocprofRun(const std::filesystem::path& file) : m_file(file) {}

    /// One process of the file; agents are named by ids of it.
    class Process {
      public:
        int64_t pid = 0;
        std::string host;                                   ///< empty: not told
        std::optional<int64_t> rank, worldSize, localRank;  ///< of its environment
        std::map<int64_t, RocprofAgent> agents;             ///< by id
        std::map<int64_t, std::string> threadNames;         ///< by tid

      private:
        friend class RocprofRun;
        struct HostCall {
            int64_t tid = 0;
            int64_t name = 0;
            store::ApiCall row;
        };
        struct Marker {
            int64_t tid = 0;
            bool isMerged = false;
            std::string text;
            store::NvtxRange row;
        };
        struct Collective {
            int64_t tid = 0;
            NcclRange range;
        };
        std::map<int64_t, std::unique_ptr<DeviceRank>> m_ranks;  // by agent
        std::vector<HostCall> m_calls;
        std::vector<Marker> m_markers;
        std::vector<Collective> m_collectives;
    };

    Process& process(int64_t id) { return m_processes[id]; }

    void addKernel(Process& process, int64_t agent, int64_t stream, const RocprofTimes& times, std::string_view name,
                   const RocprofDispatch& dispatch);
    void addCopy(Process& process, int64_t from, int64_t to, int64_t stream, const RocprofTimes& times, int64_t bytes);
    /// A call of any of ROCm's libraries; `domain` is rocprofv3's name of the kind of record: HIP_RUNTIME_API…
    void addCall(Process& process, std::string_view domain, int64_t tid, const RocprofTimes& times,
                 std::string_view name, std::optional<int64_t> bytes);
    /// A range or mark of ROCTx by its message; `operation` is the call that made it.
    void addMarker(Process& process, std::string_view domain, int64_t tid, const RocprofTimes& times,
                   std::string_view operation, std::string_view message);
    ImportLosses& losses() { return m_losses; }

    /// Hands over the ranks, of all processes by device. Throws ImportError where there are none.
    void handOver(const ReadOptions& options, const std::function<void(FileRank)>& take);

  private:
    /// Null where there are too many; that is told.
    DeviceRank* rankOf(Process& process, int64_t agent);
    std::optional<DeviceRow> rowOf(const RocprofTimes& times, int64_t stream);
    void joinHost(Process& process);
    void finish(Process& process, int64_t agent, const ReadOptions& options, FileRank& read);

    std::filesystem::path m_file;
    LocalStrings m_names;  // of kernels and calls
    std::map<int64_t, Process> m_processes;
    ImportLosses m_losses;
};

}  // namespace rankscope::collector
