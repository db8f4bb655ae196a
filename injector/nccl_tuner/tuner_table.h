// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/nccl_tuner/tuner_rows.h"

namespace rankscope::injector {

/// Rows as read, in their order. Lines that are wrong, or overlap an earlier one, are left out and told to `complain`
/// (line number from 1, static text); so are rows beyond kMaxTunerRows.
struct TunerTable {
    TunerRow rows[kMaxTunerRows];
    size_t count = 0;
    int skippedLines = 0;

    void read(const char* text, size_t length, char separator,
              void (*complain)(void* whom, int line, const char* problem), void* whom) noexcept;
};

/// The job's table, read once per process: RANKSCOPE_TUNER_ROWS, which `rankscope run --tuner` fills (rows apart by
/// ';'), else the file that NCCL_TUNER_CONFIG_FILE names. Empty when there is neither or the file cannot be read.
/// Complaints go to `logger`, which may be null.
const TunerTable& jobsTunerTable(tuner_abi::Logger logger) noexcept;

/// Whether the rows come from `rankscope run`, which has put this library in the place of whatever NCCL would have
/// loaded.
bool rowsComeFromRun() noexcept;

}  // namespace rankscope::injector
