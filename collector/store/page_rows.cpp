// SPDX-License-Identifier: Apache-2.0
#include "collector/store/page_rows.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collector/store/big_endian.h"
#include "collector/store/page_format.h"

namespace rankscope::store {
namespace {

constexpr uint8_t kRollbackJournal = 1;
constexpr size_t kDeepest = 20;        // of SQLite's own cursors
constexpr size_t kPadding = 8;         // behind a page, so that any integer is loaded as one of eight bytes
constexpr size_t kLeastOverflow = 35;  // payloads of up to the usable bytes less this stay on their page
constexpr uint8_t kFirstLarge = 0x80;  // a varint's byte of this or more has another behind it

// Of a value by its serial type of one byte (section 2.1); those of reserved types are never taken.
constexpr std::array<uint8_t, kFirstLarge> kBytesOfType = [] {
    std::array<uint8_t, kFirstLarge> bytes{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
    for (size_t type = 12; type < bytes.size(); ++type) bytes[type] = static_cast<uint8_t>((type - 12) / 2);
    return bytes;
}();

}  // namespace

PageRows::PageRows(Database& database, const std::string& table, const std::vector<std::string>& columns, int64_t first,
                   int64_t last)
    : m_database(database), m_lastId(std::max(first, INT64_MIN + 1) - 1), m_last(last) {
    std::string names;
    for (const std::string& column : columns) names += (names.empty() ? "" : ", ") + column;
    m_sql = "SELECT " + names + ", id FROM " + table + " WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
    m_ended = last < first;
    if (!m_ended && !open(table, columns)) m_file = nullptr;
}

// False where only SQLite can read the table.
bool PageRows::open(const std::string& table, const std::vector<std::string>& columns) {
    Statement names(m_database, "SELECT name FROM pragma_table_info(?1) ORDER BY cid");
    names.bind(1, std::string_view(table));
    size_t found = 0;
    while (names.step()) {
        const auto column = std::ranges::find(columns, names.text(0));
        found += column != columns.end();
        m_slots.push_back(static_cast<int8_t>(column == columns.end() ? -1 : column - columns.begin()));
    }
    while (!m_slots.empty() && m_slots.back() < 0) m_slots.pop_back();
    m_root.emplace(m_database, "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?1");
    m_root->bind(1, std::string_view(table));
    if (found != columns.size() || !m_root->step()) return false;
    const int64_t root = m_root->integer(0);

    uint8_t header[kHeaderBytes];
    if (sqlite3_file_control(m_database.handle(), "main", SQLITE_FCNTL_FILE_POINTER, &m_file) != SQLITE_OK || !m_file ||
        !m_file->pMethods || m_file->pMethods->xRead(m_file, header, sizeof header, 0) != SQLITE_OK)
        return false;
    if (header[kReadVersionAt] != kRollbackJournal) return false;
    m_pageBytes = loadBig16(header + kPageSizeAt);
    if (m_pageBytes == 1) m_pageBytes = 65536;
    if (m_pageBytes < 512 || header[kReservedAt] > 32) return false;
    m_usableBytes = m_pageBytes - header[kReservedAt];
    m_above.resize(1);
    if (root < 2 || root > UINT32_MAX || !readPage(static_cast<uint32_t>(root), m_last, m_above[0])) return false;
    if (m_above[0].bytes[0] != kLeafPage) return true;
    m_leaf = std::move(m_above[0]);
    m_above.clear();
    return true;
}

bool PageRows::readPage(uint32_t number, int64_t lastId, Page& page) {
    if (number < 2) return false;
    page.bytes.resize(m_pageBytes + kPadding);
    const auto offset = static_cast<int64_t>(number - 1) * static_cast<int64_t>(m_pageBytes);
    if (m_file->pMethods->xRead(m_file, page.bytes.data(), static_cast<int>(m_pageBytes), offset) != SQLITE_OK)
        return false;
    const uint8_t type = page.bytes[0];
    if (type != kLeafPage && type != kInteriorPage) return false;
    page.cells = loadBig16(&page.bytes[kCellCountAt]);
    page.next = 0;
    page.lastId = lastId;
    return (type == kLeafPage ? kLeafHeader : kInteriorHeader) + kOffsetBytes * page.cells <= m_usableBytes;
}

// Goes on to the next leaf with rows that are wanted. False at the end (m_ended), or where the pages are not as they
// should be.
bool PageRows::nextLeaf() {
    while (!m_above.empty()) {
        Page& page = m_above.back();
        if (page.next > page.cells || m_lastId >= m_last) {
            m_above.pop_back();
            continue;
        }
        uint32_t child = loadBig32(&page.bytes[kRightmostAt]);
        int64_t lastId = page.lastId;
        if (page.next < page.cells) {
            const size_t offset = loadBig16(&page.bytes[kInteriorHeader + kOffsetBytes * page.next]);
            if (offset < kInteriorHeader || offset + 4 > m_usableBytes) return false;
            child = loadBig32(&page.bytes[offset]);
            const uint8_t* at = &page.bytes[offset + 4];
            uint64_t key = 0;
            if (!loadVarint(at, page.bytes.data() + m_usableBytes, key)) return false;
            lastId = static_cast<int64_t>(key);
        }
        ++page.next;
        if (lastId <= m_lastId) continue;  // rows before those that are wanted
        Page below;
        if (m_above.size() >= kDeepest) return false;
        std::swap(below.bytes, m_leaf.bytes);  // its memory
        if (!readPage(child, lastId, below)) return false;
        if (below.bytes[0] == kInteriorPage) {
            m_above.push_back(std::move(below));
            continue;
        }
        m_leaf = std::move(below);
        return m_leaf.cells > 0;
    }
    m_ended = true;
    return false;
}

// The leaf's next row.
PageRows::Cell PageRows::takeCell() {
    const uint8_t* const end = m_leaf.bytes.data() + m_usableBytes;
    const size_t offset = loadBig16(&m_leaf.bytes[kLeafHeader + kOffsetBytes * m_leaf.next]);
    if (offset < kLeafHeader || offset >= m_usableBytes) return Cell::strange;
    const uint8_t* at = m_leaf.bytes.data() + offset;
    uint64_t bytes = 0, key = 0;
    if (!loadVarint(at, end, bytes) || !loadVarint(at, end, key)) return Cell::strange;
    if (bytes + kLeastOverflow > m_usableBytes || bytes > static_cast<uint64_t>(end - at) || bytes <= m_slots.size())
        return Cell::strange;
    const auto id = static_cast<int64_t>(key);
    if (id > m_last) return Cell::behind;
    if (id <= m_lastId) return m_began ? Cell::strange : Cell::before;
    const size_t headerBytes = at[0];
    // The first column is the id, which is held as NULL.
    if (headerBytes >= kFirstLarge || headerBytes > bytes || headerBytes <= m_slots.size() || at[1] != 0)
        return Cell::strange;
    const uint8_t *types = at + 1, *value = at + headerBytes, *const valueEnd = at + bytes;
    for (size_t column = 0; column < m_slots.size(); ++column) {
        const uint8_t type = types[column];
        if (type >= kFirstLarge) return Cell::strange;
        const size_t size = kBytesOfType[type];
        if (size > static_cast<size_t>(valueEnd - value)) return Cell::strange;
        if (const int8_t slot = m_slots[column]; slot >= 0) {
            if (type == 7 || type > 9) return Cell::strange;
            const auto place = static_cast<size_t>(slot);
            m_types[place] = type == 0 ? Type::null : Type::integer;
            m_values[place] = size == 0 ? type == 9 : static_cast<int64_t>(loadBig64(value)) >> (64 - 8 * size);
        }
        value += size;
    }
    m_began = true;
    m_lastId = id;
    ++m_leaf.next;
    return Cell::taken;
}

bool PageRows::step() {
    if (m_rest) return stepRest();
    while (!m_ended && m_file) {
        if (m_leaf.next < m_leaf.cells) {
            const Cell cell = takeCell();
            if (cell == Cell::taken) return true;
            if (cell == Cell::strange) break;
            m_ended = cell == Cell::behind;
            m_leaf.next += cell == Cell::before;
            // The keys above lead to the leaf with the first row, or to the one before it. More such leaves are damage,
            // and pages in a circle would hold one back for ever.
            if (cell == Cell::before && m_leaf.next == m_leaf.cells && std::exchange(m_passedLeaf, true)) break;
        } else if (!nextLeaf()) {
            break;
        }
    }
    if (m_ended || m_lastId >= m_last) return false;
    m_rest.emplace(m_database, m_sql);
    m_rest->bind(1, m_lastId + 1).bind(2, m_last);
    return stepRest();
}

bool PageRows::stepRest() {
    if (!m_rest->step()) return false;
    for (int column = 0; column < static_cast<int>(kMostColumns) && column < sqlite3_column_count(m_rest->handle()) - 1;
         ++column) {
        const auto place = static_cast<size_t>(column);
        m_types[place] = m_rest->isInteger(column) ? Type::integer : m_rest->isNull(column) ? Type::null : Type::other;
        m_values[place] = m_rest->integer(column);
    }
    return true;
}

}  // namespace rankscope::store
