// SPDX-License-Identifier: Apache-2.0
// Ranks of the events of an export of Rankscope, in whichever of its formats they stand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/importers/exported_about.h"
#include "collector/importers/exported_index.h"
#include "collector/importers/reader.h"
#include "collector/importers/row_values.h"

namespace rankscope::collector {

/// One event as an export tells it. Texts need to live no longer than the call that takes it.
struct ToldEvent {
    int64_t process = 0;  ///< a rank, or the findings
    std::string_view category;
    std::string_view name;
    int64_t startNs = 0;  ///< on the job clock
    std::optional<int64_t> durNs;
    std::vector<std::pair<std::string_view, ToldValue>> arguments;
};

class ExportedRun {
  public:
    /// A row that an event became, for what is told later of it.
    struct Place {
        enum class Table : uint8_t { none, kernel, memcpy, memset, apiCall, synchronization, nvtx, ncclCall, proxyOp };
        Table table = Table::none;
        int64_t rank = 0;
        size_t index = 0;
    };

    /// Throws ImportError for a run that events cannot tell.
    ExportedRun(const std::filesystem::path& file, ExportedAbout about);
    ExportedRun(const ExportedRun&) = delete;  // its index points into it
    ExportedRun& operator=(const ExportedRun&) = delete;

    /// A rank that the file holds, with events or without.
    void addRank(int64_t rank);
    Place add(const ToldEvent& event);
    void addCounter(int64_t process, std::string_view name, int64_t ns, int64_t value);
    /// Sets how long an event took whose end stands elsewhere.
    void setDuration(const Place& place, int64_t durNs);
    ImportLosses& losses() { return m_losses; }

    /// Hands over the ranks. Throws ImportError where there are none.
    void handOver(const std::function<void(FileRank)>& take);

  private:
    struct Rank {
        RankRecording recording;
        std::map<int64_t, int32_t> streams, threads, communicators;  // local, by row
        std::map<int64_t, int64_t> kernels, calls;                   // local, by row
        std::map<int64_t, int32_t> symbols;                          // names of kernels, by symbol
        uint64_t events = 0;
    };

    /// Null for a rank that the export does not name.
    Rank* rankOf(int64_t rank);
    void fill(const ExportedIndex::OfRank& own, Rank& rank);
    void fillMachine(const ExportedIndex::OfRank& own, RankRecording& recording);
    void fillCommunicators(const ExportedIndex::OfRank& own, Rank& rank) const;
    static void addThread(const store::Thread& thread, Rank& rank);
    void useSharedThread(const ToldEvent& event, Rank& rank) const;
    template <typename Row>
    bool decode(const ToldEvent& event, Rank& rank, Row& row) const;
    template <typename Row>
    Place keep(const ToldEvent& event, Rank& rank, Row row, std::vector<Row>& rows, Place::Table table);
    Place keepKernel(const ToldEvent& event, Rank& rank);
    Place keepRange(const ToldEvent& event, Rank& rank);
    Place keepCall(const ToldEvent& event, Rank& rank);
    Place keepDeviceEvent(const ToldEvent& event, Rank& rank);
    Place leaveOut();
    static void join(Rank& rank);

    std::filesystem::path m_file;
    /// On the host's clock; a time that no job has stays far away, and is no overflow.
    int64_t onHost(int64_t ns) const;

    ExportedAbout m_about;
    ExportedIndex m_index;     // into m_about
    std::set<int64_t> m_told;  // hosts whose devices and links a rank has told
    int64_t m_baseNs = 0;      // Unix time of the job clock's 0; 0: unknown
    std::map<int64_t, Rank> m_ranks;
    ImportLosses m_losses;
};

/// Reads an export's events into its run: trace event JSON, and Perfetto's protobuf. Throws ImportError.
void readExportedChrome(const std::filesystem::path& file, const std::function<void(FileRank)>& take);
void readExportedPerfetto(const std::filesystem::path& file, const std::function<void(FileRank)>& take);

}  // namespace rankscope::collector
