// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/importers/host_operations.h"
#include "collector/importers/import_loss.h"
#include "collector/importers/kineto_collectives.h"
#include "collector/importers/kineto_event.h"
#include "collector/importers/kineto_header.h"
#include "collector/importers/reader.h"
#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// Turns the events of one Kineto file into a RankRecording: rows of device and host events as they come; what joins
/// them (collectives with their kernels, launches and operators) at the end.
class KinetoRank {
  public:
    void add(const KinetoEvent& event);

    /// Joins and hands out the recording, with times still relative to the file's base. Call once, after the last
    /// event. `fallbackRank`: the rank to assume where the header tells none.
    RankRecording finish(const KinetoHeader& header, std::optional<int32_t> fallbackRank, const ReadOptions& options,
                         ImportLosses& losses);

  private:
    void addKernel(const KinetoEvent& event);
    void addCopy(const KinetoEvent& event);
    void addSet(const KinetoEvent& event);
    void addCall(const KinetoEvent& event);
    void addSynchronization(const KinetoEvent& event);
    void addAnnotation(const KinetoEvent& event);
    void addMetadata(const KinetoEvent& event);
    void addOperation(const KinetoEvent& event);
    void addMemory(const KinetoEvent& event);

    int32_t streamOf(const KinetoEvent& event);
    int32_t threadOf(std::optional<int64_t> tid, std::optional<int64_t> pid);

    void tellPlatform(ImportLosses& losses) const;
    void completeCopies(ImportLosses& losses);

    RankRecording m_recording;
    KinetoCollectives m_collectives;
    std::vector<int8_t> m_nameKinds;  // by name id: -1 not looked at, 0 compute, 1 NCCL, 2 other communication
    HostOperations m_operations;      // CPU operators and Python functions
    std::unordered_map<uint64_t, int32_t> m_streams;
    std::unordered_map<int64_t, int32_t> m_threads;
    std::unordered_map<int64_t, std::string> m_processNames;
    std::optional<int64_t> m_pid;
    int64_t m_unknownGpuEvents = 0;
    KinetoPlatform m_platform = KinetoPlatform::unknown;
};

}  // namespace rankscope::collector
