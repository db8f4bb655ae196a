// SPDX-License-Identifier: Apache-2.0
// The rows of a tuner file: what to use for which collective, size and communicator. docs/tuner-csv.md defines them;
// the command line refuses a file with a wrong line (analyzer/recommend/tuner_csv.h), here, inside the job, the line is
// skipped. One table of lines tests both.
#pragma once

#include <cstddef>
#include <cstdint>

#include "injector/nccl_tuner/tuner_abi.h"

namespace rankscope::injector {

/// As many as are read; the command line allows no more.
inline constexpr size_t kMaxTunerRows = 256;
/// NCCL's MAXCHANNELS.
inline constexpr int kMaxTunerChannels = 64;

/// One row. -1 stands for 'any', in `channels` for 'as many as NCCL thinks right'.
struct TunerRow {
    int function = 0;
    int64_t minBytes = 0, maxBytes = 0;  ///< inclusive, of the whole buffer, as NCCL counts them
    int algorithm = 0, protocol = 0;
    int channels = -1;
    int64_t nodes = -1, ranks = -1;
    int64_t pipeOps = -1;     ///< operations of the group
    int64_t registered = -1;  ///< 0 or 1: user buffers are registered
};

/// Reads one line of the file; null when it is right, else what is wrong with it (static text).
const char* parseTunerRow(const char* line, size_t length, TunerRow& row) noexcept;

/// Whether some collective would match both rows.
bool overlap(const TunerRow& a, const TunerRow& b) noexcept;

/// Whether the line says nothing: empty, a comment, or the heading.
bool isSilentLine(const char* line, size_t length) noexcept;

const char* functionName(int function) noexcept;
const char* algorithmName(int algorithm) noexcept;
const char* protocolName(int protocol) noexcept;

}  // namespace rankscope::injector
