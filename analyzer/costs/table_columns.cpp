// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/table_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace rankscope::costs {
namespace {

constexpr size_t kLeading = 3;  // size, count and type stand in every row
constexpr const char* kGiveWhole = "run the test again and give its whole output";
constexpr const char* kUnchanged = "give the output unchanged";

/// True where algbw is size / time, as far as the printed digits go.
bool fits(double bytes, double time, double algbw) {
    const double rate = bytes / time / 1e3;
    return std::abs(rate - algbw) <= 0.006 + 0.01 * rate;
}

TableColumnsReading complain(const std::string& complaint, const std::string& hint) {
    return {{}, complaint, hint};
}

}  // namespace

std::optional<double> numberOf(const std::string& word) {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
    return value;
}

TableColumns::TableColumns(const std::vector<std::string>& words) : m_names(words) {
    if (!m_names.empty() && m_names.front().starts_with("#")) m_names.front().erase(0, 1);
    if (!m_names.empty() && m_names.front().empty()) m_names.erase(m_names.begin());
    for (const char* column : {"time", "algbw", "busbw"}) {
        const auto times = std::ranges::count(m_names, column);
        if (times == 2) continue;
        m_complaint =
            fmt::format("the column heads name {} {} instead of twice, out of place and in place: columns are missing",
                        column, times == 1 ? "once" : fmt::format("{} times", times));
        return;
    }
    auto from = m_names.begin();
    for (Block& block : m_blocks) {
        const auto at = std::find(from, m_names.end(), "time");
        const auto end = std::find(at + 1, m_names.end(), "time");
        const auto place = [&](const char* name) {
            return static_cast<size_t>(std::find(at, end, name) - m_names.begin());
        };
        block = {place("time"), place("algbw"), place("busbw"), std::nullopt};
        for (const char* name : {"#wrong", "error"})
            if (std::find(at, end, name) != end) block.wrong = place(name);
        if (std::find(at, end, "algbw") == end || std::find(at, end, "busbw") == end)
            m_complaint = "the column heads name time, algbw and busbw in another order than out of place, in place";
        m_words = 1 + std::max({block.time, block.algbw, block.busbw, block.wrong.value_or(0)});
        from = end;
    }
}

TableColumnsReading TableColumns::read(const std::vector<std::string>& words) {
    const size_t most = m_blocks[0].time > kLeading ? m_blocks[0].time - kLeading : 0;
    const size_t first = m_blanks.value_or(0), last = m_blanks.value_or(most);
    for (size_t blanks = first; blanks <= last; ++blanks) {
        if (words.size() + blanks < m_words) continue;
        TableColumnsReading reading = readWithout(words, blanks);
        if (!reading.complaint.empty() && first != last) continue;
        if (reading.complaint.empty() && reading.row.bytes > 0) m_blanks = blanks;
        return reading;
    }
    if (words.size() + first >= m_words) return readWithout(words, first);
    TableColumnsReading cut = complain(
        fmt::format("a row of {} columns where its table has {}: it is cut off", words.size(), m_words - first),
        kGiveWhole);
    cut.cut = true;
    return cut;
}

TableColumnsReading TableColumns::readWithout(const std::vector<std::string>& words, size_t blanks) const {
    TableColumnsReading reading;
    TableColumnsRow& row = reading.row;
    row.bytes = numberOf(words[0]).value_or(-1);
    if (row.bytes < 0) return complain("the first column is no size in bytes", kGiveWhole);
    for (size_t place = 0; place < 2; ++place) {
        const Block& block = m_blocks[place];
        const auto word = [&](size_t at) -> const std::string& { return words[at - blanks]; };
        const auto time = numberOf(word(block.time)), algbw = numberOf(word(block.algbw)),
                   busbw = numberOf(word(block.busbw));
        if (!time && place == 1 && word(block.time) == "N/A") {
            row.inPlace = false;
            continue;
        }
        if (!time || !algbw || !busbw) {
            reading = complain(fmt::format("'{} {} {}' where time, algbw and busbw should be", word(block.time),
                                           word(block.algbw), word(block.busbw)),
                               "columns are missing or in another order; give the output unchanged");
            reading.cut = true;
            return reading;
        }
        if (row.bytes > 0 && *time <= 0) return complain(fmt::format("a time of {:g} us", *time), kGiveWhole);
        if (row.bytes > 0 && !fits(row.bytes, *time, *algbw))
            return complain(fmt::format("algbw {} where size / time is {:.2f}: the columns do not belong together",
                                        *algbw, row.bytes / *time / 1e3),
                            kUnchanged);
        row.time[place] = *time;
        row.algbw[place] = *algbw;
        row.busbw[place] = *busbw;
        // Old layouts have the largest difference there, a rounding error; new ones count elements.
        const auto errors = block.wrong ? numberOf(word(*block.wrong)) : std::nullopt;
        if (errors && *errors >= 1) row.wrong += *errors;
    }
    // A word behind the type that is none of the digits is the reduction; the root stands in front of the times.
    const size_t leading = m_blocks[0].time - blanks;
    row.reduces = leading > kLeading && words[kLeading] != "none" && !numberOf(words[kLeading]);
    const bool rootColumn = std::ranges::count(m_names, "root") > 0 && leading > kLeading;
    row.rooted = rootColumn && numberOf(words[leading - 1]).value_or(-1) >= 0;
    return reading;
}

}  // namespace rankscope::costs
