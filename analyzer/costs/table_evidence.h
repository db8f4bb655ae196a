// SPDX-License-Identifier: Apache-2.0
// Says what tables of nccl-tests are good for as evidence: which of their sizes tell of the links, which tables
// contradict each other, and what else the reader of an advice should know of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/costs/algorithm_support.h"
#include "analyzer/costs/nccl_tests_table.h"
#include "analyzer/costs/size_curve.h"

namespace rankscope::costs {

/// Tells one thing about a table.
struct TableNote {
    enum class Kind : uint8_t {
        kink,          // a size to avoid
        notUsed,       // nothing rests on the table, or on some of its sizes
        contradicted,  // another table of the same says something else
        impossible,    // faster than its links, or any
        inconsistent,  // it contradicts itself
        cut,           // the file ends inside it
        links,         // of what is said of the links, not of a table
        hostBound,     // its small sizes show the host's launches, not the links
        otherVersion,  // of NCCL than the job's
    };
    Kind kind = Kind::notUsed;
    std::string file;  // of the table; empty: this run's own messages
    int line = 0;
    std::string text;
};

/// Returns "kink", "not_used", "contradicted", "impossible", "inconsistent", "cut", "links", "host_bound" or
/// "other_version".
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

/// True where a table says that it was measured with another minor version of NCCL than the job's.
bool isOtherVersion(const NcclTestsTable& table, const std::optional<NcclVersion>& version);

/// Says where the file ends inside a table, and what is used of it.
std::string cutText(const NcclTestsTable& table);

/// Holds what two tables say of the sizes that they share.
struct TableComparison {
    size_t shared = 0;
    size_t beyond = 0;       // of these: differ by more than their errors
    size_t far = 0;          // of these: by as much as a kink
    SizedTime mine, theirs;  // where they differ most
};
TableComparison compareTimes(const std::vector<SizedTime>& mine, const std::vector<SizedTime>& theirs);

/// Names each two tables of the same operation, ranks, nodes and setting whose times differ by more than their errors
/// at more sizes than chance explains, or at some size as much as a kink: both, and neither counts more.
std::vector<TableNote> contradictions(const std::vector<NcclTestsTable>& tables);

}  // namespace rankscope::costs
