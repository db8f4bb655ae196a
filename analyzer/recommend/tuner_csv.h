// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::recommend {

/// One row of a tuner file (docs/tuner-csv.md): what NCCL is to use for a collective, a size and a kind of
/// communicator. -1 stands for 'any', in `channels` for 'as many as NCCL thinks right', in `maxBytes` for 'without
/// end'. Sizes are of the whole buffer, as NCCL counts them: what all ranks together gather or scatter.
struct TunerRow {
    std::string collective;  ///< broadcast, reduce, allgather, reducescatter or allreduce
    int64_t minBytes = 0;
    int64_t maxBytes = -1;  ///< inclusive
    std::string algorithm;  ///< tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree or pat
    std::string protocol;   ///< ll, ll128 or simple
    int64_t channels = -1;
    int64_t nodes = -1;
    int64_t ranks = -1;
    int64_t pipeOps = -1;     ///< operations in the group
    int64_t registered = -1;  ///< 0 or 1: user buffers are registered with NCCL
    int line = 0;             ///< in the file, from 1
};

struct TunerProblem {
    int line = 0;  ///< 0: the file as a whole
    std::string what;
    std::string hint;  ///< what to do about it; may be empty
};

struct TunerFile {
    std::vector<TunerRow> rows;
    std::vector<TunerProblem> problems;  ///< in the order of their lines; a file with any is not to be used
};

/// Rows that the plugin reads at most, and the largest number of channels (NCCL's MAXCHANNELS).
inline constexpr size_t kMaxTunerRows = 256;
inline constexpr int64_t kMaxTunerChannels = 64;

/// Without the blanks around it, and the CR at the end of its line.
std::string_view trimmed(std::string_view text);

/// Reads the text of a tuner file: names, ranges, combinations that no NCCL has, rows that overlap. The plugin inside
/// the job has the same rules (injector/nccl_tuner/tuner_rows.h) and skips what is wrong.
TunerFile parseTunerCsv(std::string_view text);

/// One row as a line of the file, without a line end.
std::string formatTunerRow(const TunerRow& row);

/// A file with a heading.
std::string formatTunerCsv(const std::vector<TunerRow>& rows);

}  // namespace rankscope::recommend
