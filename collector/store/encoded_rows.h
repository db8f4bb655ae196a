// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace rankscope::store {

/// Rows of one rank in one event table as SQLite's records, ready to be put into pages: ids follow each other. Made by
/// encodeRows(), taken by TraceWriter::write(), in another process perhaps.
struct EncodedRows {
    std::string table;
    int32_t rank = 0;
    int64_t firstId = 0;
    int64_t count = 0;
    int64_t maxDurNs = 0;
    std::string records;  ///< each a length of two bytes, little-endian, and so many bytes
};

/// `rows` are not empty, of one rank, and their ids follow each other.
template <typename Row>
EncodedRows encodeRows(std::span<const Row> rows);

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(EncodedRows& value, const Visit& visit) {
    auto& [table, rank, firstId, count, maxDurNs, records] = value;
    visit(table, rank, firstId, count, maxDurNs, records);
}

}  // namespace rankscope::store
