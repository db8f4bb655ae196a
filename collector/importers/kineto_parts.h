// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/importers/kineto_event.h"

namespace rankscope::collector {

/// The label that a script which merges traces of several ranks puts in front of a process' number or name: "R0" of
/// "[R0] 4711", "TP00-DP01", "rank 3"; empty where there is none.
std::string_view mergeLabel(std::string_view text);

/// Tells whether a file was merged from those of several ranks, and which event is of which: by labels, or, where files
/// were only put together, by processes of which each launched the kernels of one device.
class KinetoParts {
  public:
    /// Takes every event of the file; costs next to nothing.
    void see(const KinetoEvent& event);
    /// False after see(): the file is one rank's. Else split() is called with the file read again, event by event.
    bool maySplit() const { return m_labels.size() > 1 || (m_processes.size() > 1 && m_devices.size() > 1); }

    /// Takes every event once more.
    void vote(const KinetoEvent& event);
    /// Makes the parts; false where nothing tells them apart, and the file is taken for one rank's.
    bool split();

    /// Which part an event is of, 0, 1…; empty: nobody can tell.
    std::optional<size_t> partOf(const KinetoEvent& event) const;
    size_t count() const { return m_ranks.size(); }
    /// Empty: not told. Parts are in the order of their ranks, else of their labels or devices.
    std::optional<int64_t> rankOf(size_t part) const { return m_ranks[part]; }

  private:
    void splitByLabels();
    void splitByProcesses();

    std::set<std::string, std::less<>> m_labels;
    std::unordered_map<int64_t, std::string> m_labelOfProcess;  // where its name tells it
    std::set<int64_t> m_processes;                              // that call CUDA or HIP
    std::set<int64_t> m_devices;                                // with kernels

    struct Launch {
        int64_t process = 0;
        int64_t startNs = 0;
    };
    struct Kernel {
        int64_t device = 0;
        int64_t correlation = 0;
        int64_t startNs = 0;
    };
    std::unordered_map<int64_t, std::vector<Launch>> m_launches;  // by correlation
    std::vector<Kernel> m_kernels;

    std::map<std::string, size_t, std::less<>> m_partOfLabel;
    std::map<int64_t, size_t> m_partOfProcess;
    std::map<int64_t, size_t> m_partOfDevice;
    std::vector<std::optional<int64_t>> m_ranks;  // by part
};

}  // namespace rankscope::collector
