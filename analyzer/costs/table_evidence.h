// SPDX-License-Identifier: Apache-2.0
// Says what tables of nccl-tests are good for as evidence: which of their sizes tell of the links, which tables
// contradict each other, and what else the reader of an advice should know of them.
#pragma once

#include <string>
#include <vector>

#include "analyzer/costs/nccl_tests_table.h"
#include "analyzer/costs/size_curve.h"

namespace rankscope::costs {

/// Tells one thing about a table.
struct TableNote {
    enum class Kind : uint8_t {
        kink,          // a size to avoid
        notUsed,       // nothing rests on the table, or on some of its sizes
        contradicted,  // another table of the same says something else
        hostBound,     // its small sizes show the host's launches, not the links
        otherVersion,  // of NCCL than the job's
    };
    Kind kind = Kind::notUsed;
    std::string file;  // of the table; empty: this run's own messages
    int line = 0;
    std::string text;
};

/// Returns "kink", "not_used", "contradicted", "host_bound" or "other_version".
const char* toText(TableNote::Kind kind);

/// Returns the sizes of a table with their times. A row is the mean of many iterations, whose error no table tells:
/// 95 % of out-of-place and in-place times of one size differ by less than CostLine::kError.
std::vector<SizedTime> sizedTimes(const NcclTestsTable& table);

/// Returns the largest size (bytes) whose time may be that of the host, 0 where there is none: a thread that starts the
/// kernels of several GPUs starts them one after the other. Of eight A100 under one process all sizes to 256 KiB take
/// 39 to 44 us, of which a process for each takes 18 to 30.
double hostBoundBytes(const NcclTestsTable& table);

/// Returns the sizes that tell of the links: those beyond the host's.
std::vector<SizedTime> linkTimes(const NcclTestsTable& table);

/// Names each two tables of the same operation, ranks, nodes and setting whose times differ by more than their errors
/// at more sizes than chance explains, or at some size as much as a kink: both, and neither counts more.
std::vector<TableNote> contradictions(const std::vector<NcclTestsTable>& tables);

}  // namespace rankscope::costs
