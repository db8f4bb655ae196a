// SPDX-License-Identifier: Apache-2.0
// Reads what nccl-tests (all_reduce_perf and its siblings) print, as evidence for cost fits: old and new column
// layouts, output of srun --label and mpirun --tag-output, logs with NCCL's INFO lines between the rows, and several
// tables in one file (a sweep over NCCL_ALGO and NCCL_PROTO).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collector/store/vocabulary.h"

namespace rankscope::costs {

struct NcclTestsRow {
    int64_t bytes = 0;  // as nccl-tests counts them: all-gather, reduce-scatter and all-to-all the whole of all ranks
    double outOfPlaceUs = 0;
    double inPlaceUs = 0;  // 0: not measured
    int line = 0;          // of the file
};

struct NcclTestsTable {
    std::string file;
    int line = 0;  // of the column heads
    store::Op op = store::Op::unknown;
    int ranks = 0;
    int nodes = 0;                                           // hosts in the device list
    store::Algorithm algorithm = store::Algorithm::unknown;  // unknown: NCCL chose
    store::Protocol protocol = store::Protocol::unknown;
    std::string severalChoices;  // variables that leave NCCL a part of its choices, as they were set; else empty
    std::string noSuchChoice;    // what NCCL does not have of what the variables name; else empty
    int cutLine = 0;             // where the file ends inside the table; 0: it is whole
    int gpusPerThread = 1;       // that one thread of the host starts kernels on
    std::string ncclVersion;     // as the log spells it (parseNcclVersion); empty: not told
    std::vector<NcclTestsRow> rows;

    /// Returns the time in place for all-reduce, broadcast and reduce, out of place for the others, as
    /// torch.distributed calls them; microseconds.
    double timeUs(const NcclTestsRow& row) const;
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(NcclTestsTable& value, const Visit& visit) {
    auto& [file, line, op, ranks, nodes, algorithm, protocol, severalChoices, noSuchChoice, cutLine, gpusPerThread,
           ncclVersion, rows] = value;
    visit(file, line, op, ranks, nodes, algorithm, protocol, severalChoices, noSuchChoice, cutLine, gpusPerThread,
          ncclVersion, rows);
}

/// Holds what the user says about a file; unknown: as the file tells.
struct NcclTestsHints {
    store::Op op = store::Op::unknown;
    store::Algorithm algorithm = store::Algorithm::unknown;
    store::Protocol protocol = store::Protocol::unknown;
};

/// Reads every table of the file, at least one. A file is refused as a whole, with file, line and hint, when a table is
/// of one rank, lacks columns, is cut off inside the file, has wrong results or no bandwidth, when its columns
/// contradict each other (busbw = bytes / time x factor of operation and ranks, doc/PERFORMANCE.md of nccl-tests), when
/// the operation is not named, or when the hints name a choice that NCCL does not have for it. Where the file ends
/// inside a table, its whole rows are read.
/// sendrecv_perf's are tables of Op::send. A variable in front of a command, or that NCCL names, holds for the next
/// table; one that is exported, or stands alone as `env` prints it, for all that follow. Throws store::Error.
std::vector<NcclTestsTable> readNcclTestsTables(const std::filesystem::path& path, const NcclTestsHints& hints = {});

/// Reads "FILE[:op][:algorithm][/protocol]" of the command line, "sweep.txt:allreduce:ring/ll". Throws store::Error for
/// a word that is none of them.
struct EvidenceSource {
    std::filesystem::path path;
    NcclTestsHints hints;
};
EvidenceSource parseEvidenceSource(const std::string& text);

}  // namespace rankscope::costs
