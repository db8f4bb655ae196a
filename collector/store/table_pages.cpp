// SPDX-License-Identifier: Apache-2.0
#include "collector/store/table_pages.h"

#include <algorithm>
#include <cstring>

#include "collector/store/big_endian.h"
#include "collector/store/error.h"
#include "collector/store/page_format.h"

namespace rankscope::store {
namespace {

constexpr size_t kLongestInteriorCell = 4 + kLongestVarint;

void endPage(std::vector<uint8_t>& page, uint8_t type, size_t cells, size_t contentStart) {
    page[0] = type;
    storeBig16(&page[kCellCountAt], static_cast<uint32_t>(cells));
    storeBig16(&page[kContentStartAt], static_cast<uint32_t>(contentStart));  // 65536 is written as 0
}

}  // namespace

void TablePages::startLeaf(const PageFile& file) {
    m_leaf.assign(file.pageBytes(), 0);
    m_cells = 0;
    m_contentStart = file.usableBytes();
}

void TablePages::endLeaf() {
    endPage(m_leaf, kLeafPage, m_cells, m_contentStart);
}

void TablePages::add(PageFile& file, int64_t id, std::span<const uint8_t> record) {
    if (id <= m_lastId)
        throw Error("trace.db",
                    "row " + std::to_string(id) + " of table " + m_table + " follows row " + std::to_string(m_lastId),
                    "ids must grow");
    uint8_t head[2 * kLongestVarint];
    size_t headBytes = storeVarint(head, record.size());
    headBytes += storeVarint(head + headBytes, static_cast<uint64_t>(id));
    const size_t cellBytes = headBytes + record.size();
    if (m_leaf.empty()) startLeaf(file);
    if (kLeafHeader + (m_cells + 1) * kOffsetBytes + cellBytes > m_contentStart) {
        endLeaf();
        m_leaves.push_back({file.append(m_leaf), m_lastId});
        startLeaf(file);
    }
    m_contentStart -= cellBytes;
    std::memcpy(&m_leaf[m_contentStart], head, headBytes);
    std::memcpy(&m_leaf[m_contentStart + headBytes], record.data(), record.size());
    storeBig16(&m_leaf[kLeafHeader + m_cells * kOffsetBytes], static_cast<uint32_t>(m_contentStart));
    ++m_cells;
    m_lastId = id;
}

void TablePages::finish(PageFile& file) {
    if (m_leaf.empty()) return;
    endLeaf();
    if (m_leaves.empty()) {
        file.replace(m_root, m_leaf);
        return;
    }
    m_leaves.push_back({file.append(m_leaf), m_lastId});
    std::vector<Child> level = std::move(m_leaves);
    const size_t most = (file.usableBytes() - kInteriorHeader) / (kOffsetBytes + kLongestInteriorCell);
    while (level.size() > most) level = addLevel(file, level);
    file.replace(m_root, interiorPage(file, level));
}

/// Children in groups of about the same size, so that no page is left with a single child.
std::vector<TablePages::Child> TablePages::addLevel(PageFile& file, std::span<const Child> children) const {
    const size_t most = (file.usableBytes() - kInteriorHeader) / (kOffsetBytes + kLongestInteriorCell);
    const size_t groups = (children.size() + most - 1) / most;
    std::vector<Child> level;
    for (size_t group = 0; group < groups; ++group) {
        const size_t first = children.size() * group / groups;
        const size_t end = children.size() * (group + 1) / groups;
        const std::span<const Child> members = children.subspan(first, end - first);
        level.push_back({file.append(interiorPage(file, members)), members.back().lastId});
    }
    return level;
}

std::vector<uint8_t> TablePages::interiorPage(const PageFile& file, std::span<const Child> children) const {
    std::vector<uint8_t> page(file.pageBytes(), 0);
    size_t contentStart = file.usableBytes();
    const size_t cells = children.size() - 1;  // the last child stands in the header
    for (size_t i = 0; i < cells; ++i) {
        uint8_t cell[kLongestInteriorCell];
        storeBig32(cell, children[i].page);
        const size_t bytes = 4 + storeVarint(cell + 4, static_cast<uint64_t>(children[i].lastId));
        contentStart -= bytes;
        std::memcpy(&page[contentStart], cell, bytes);
        storeBig16(&page[kInteriorHeader + i * kOffsetBytes], static_cast<uint32_t>(contentStart));
    }
    endPage(page, kInteriorPage, cells, contentStart);
    storeBig32(&page[kRightmostAt], children.back().page);
    return page;
}

}  // namespace rankscope::store
