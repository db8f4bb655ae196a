// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collector/importers/mapped_events.h"
#include "collector/importers/reader.h"
#include "collector/importers/trace_mapping.h"

namespace rankscope::collector {

/// What a mapping makes of all files of a run. The files have to be known together: how many ranks stand on an axis,
/// who communicates with whom, and where steps lie whose times begin anew, is told by none of them alone.
class MappedJob {
  public:
    /// Throws ImportError for a file that cannot be used.
    MappedJob(TraceMapping mapping, const std::vector<std::filesystem::path>& files);

    /// Hands over the ranks of one of its files, ascending.
    void read(const std::filesystem::path& file, const std::function<void(FileRank)>& take) const;

  private:
    struct Span {
        int64_t startNs = INT64_MAX;
        int64_t endNs = INT64_MIN;
    };
    /// Ranks that communicate along axes: those, its name, and where it stands on the other axes (-1 on its own).
    struct GroupKey {
        std::vector<size_t> along;
        std::string name;
        RankPlace place;
        auto operator<=>(const GroupKey&) const = default;
    };
    class RankMaker;

    void placeSteps();
    void tellPipelines();
    void findGroups();
    GroupKey groupOf(const MappedEvent& event) const;
    int64_t rankOf(const RankPlace& place) const;

    TraceMapping m_mapping;
    std::map<std::filesystem::path, MappedEvents> m_files;
    std::vector<int64_t> m_sizes;                               // of the axes
    std::map<int64_t, Span> m_steps;                            // by number
    std::map<GroupKey, std::map<int64_t, RankPlace>> m_groups;  // members by rank
    std::string m_pipelines;                                    // meta told_pipelines; empty: not told
};

}  // namespace rankscope::collector
