// SPDX-License-Identifier: Apache-2.0
// Reads rows of nccl-tests by their column heads. The heads decide: old layouts have no errors, no reduction or no
// root, and options add columns (`per_iter_timing`: i_min, i_max, i_p99 and i_cv% behind each block;
// `report_timestamps`).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rankscope::costs {

/// Holds what a row says: a size, and two blocks of time (us), algbw, busbw (GB/s) and wrong elements.
struct TableColumnsRow {
    double bytes = 0;
    double time[2] = {0, 0}, algbw[2] = {0, 0}, busbw[2] = {0, 0};
    bool inPlace = true;  // the second block is measured
    double wrong = 0;     // elements; NaN and N/A count as none: not checked
    bool reduces = false;
    bool rooted = false;  // what has no root is printed with -1 there
};

/// Holds a row, or what is wrong with it.
struct TableColumnsReading {
    TableColumnsRow row;
    std::string complaint = {};  // empty: nothing
    std::string hint = {};
    bool cut = false;  // it has fewer columns than its table, or a launcher's last words where numbers should be
};

class TableColumns {
  public:
    TableColumns() = default;
    /// Takes the words of the line of heads, its # first.
    explicit TableColumns(const std::vector<std::string>& words);

    /// Says which of time, algbw and busbw the heads do not name once for each block; empty where they do.
    const std::string& complaint() const { return m_complaint; }

    /// Reads a row. Old programs print nothing where there is no reduction or no root: how many such columns a table
    /// has its first whole row shows, by size / time = algbw.
    TableColumnsReading read(const std::vector<std::string>& words);

  private:
    struct Block {
        size_t time = 0, algbw = 0, busbw = 0;
        std::optional<size_t> wrong;
    };

    TableColumnsReading readWithout(const std::vector<std::string>& words, size_t blanks) const;

    std::vector<std::string> m_names;
    Block m_blocks[2];
    size_t m_words = 0;  // that a row without blanks has at least
    std::optional<size_t> m_blanks;
    std::string m_complaint;
};

/// Returns the number that a word is as a whole, if it is a finite one.
std::optional<double> numberOf(const std::string& word);

}  // namespace rankscope::costs
