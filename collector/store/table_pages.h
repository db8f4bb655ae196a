// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collector/store/page_file.h"

namespace rankscope::store {

/// Builds the B-tree of one rowid table from rows in order of id: full leaves as they come, the pages above them at the
/// end. This is what SQLite would make of the same rows, without a cursor, a virtual machine and a page cache on the
/// way. Memory: one page, and 12 bytes per leaf.
class TablePages {
  public:
    TablePages(std::string table, uint32_t rootPage) : m_table(std::move(table)), m_root(rootPage) {}

    /// Adds a row; `record` is small against a page. Throws Error when its id is not greater than the last one.
    void add(PageFile& file, int64_t id, std::span<const uint8_t> record);
    /// Writes what is left and the root, which is an empty table's until then. Call once.
    void finish(PageFile& file);

  private:
    struct Child {
        uint32_t page = 0;
        int64_t lastId = 0;
    };
    void startLeaf(const PageFile& file);
    void endLeaf();
    std::vector<Child> addLevel(PageFile& file, std::span<const Child> children) const;
    std::vector<uint8_t> interiorPage(const PageFile& file, std::span<const Child> children) const;

    std::string m_table;
    uint32_t m_root;
    std::vector<uint8_t> m_leaf;  ///< empty, or the leaf in work
    size_t m_cells = 0;
    size_t m_contentStart = 0;
    int64_t m_lastId = INT64_MIN;
    std::vector<Child> m_leaves;
};

}  // namespace rankscope::store
