// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/nccl_tests_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "analyzer/costs/algorithm_support.h"
#include "analyzer/costs/nccl_names.h"
#include "analyzer/costs/nccl_setting.h"
#include "analyzer/costs/table_columns.h"
#include "analyzer/facts/operation.h"
#include "analyzer/text/lists.h"
#include "collector/store/error.h"
#include "collector/store/input_text.h"

namespace rankscope::costs {
namespace {

using store::Op;

constexpr const char* kRunAgain = "run the test again and give its whole output";
constexpr const char* kFindTheCause =
    "a cluster that computes wrongly has no times worth keeping: find the cause first";

std::vector<std::string> wordsOf(const std::string& line) {
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    return words;
}

/// srun --label puts "12: " in front of every line, mpirun --tag-output "[1,0]<stdout>:", and what starts mpirun may
/// put a label of its own in front of that.
std::string withoutLabel(const std::string& line) {
    constexpr std::string_view kTag = "]<stdout>:";
    const size_t tag = line.find(kTag), from = tag == std::string::npos ? tag : line.rfind('[', tag);
    if (from != std::string::npos && line.find(',', from) < tag) return line.substr(tag + kTag.size());
    size_t at = line.find_first_not_of(' ');
    const size_t digits = at;
    while (at != std::string::npos && at < line.size() && std::isdigit(static_cast<unsigned char>(line[at]))) ++at;
    if (at == std::string::npos || at == digits || at >= line.size() || line[at] != ':') return line;
    return line.substr(at + 1);
}

/// Holds the value of a variable as the log shows it.
struct Variable {
    std::string now;     // for the next table
    std::string always;  // for those behind it
};

class TableReader {
  public:
    TableReader(const std::filesystem::path& path, const NcclTestsHints& hints)
        : m_path(path.string()), m_hints(hints) {}

    std::vector<NcclTestsTable> read() {
        std::error_code ignored;
        if (std::filesystem::is_directory(m_path, ignored))
            throw store::Error(m_path, "is a folder", "give the files in it, each with an option of its own");
        if (!std::filesystem::exists(m_path, ignored))
            throw store::Error(m_path, "cannot be opened", "give a file with the output of an nccl-tests program");
        std::istringstream in(store::readInputText(m_path));
        for (std::string line; std::getline(in, line);) {
            ++m_line;
            if (line.size() > kLongestLine)
                fail("a line of " + std::to_string(line.size()) + " characters", "this is no output of nccl-tests");
            if (!line.empty() && line.back() == '\r') line.pop_back();
            m_lastLine = in.eof();
            take(withoutLabel(line));
        }
        if (m_open) closeCut();
        if (m_tables.empty())
            throw store::Error(
                m_path, "holds no table of nccl-tests",
                "give the output of all_reduce_perf or one of its siblings, with its lines that begin with #");
        return std::move(m_tables);
    }

  private:
    static constexpr size_t kLongestLine = 1 << 16;
    static constexpr double kMostBytes = 1e15;  // a million times a device's memory of today: no number of bytes

    [[noreturn]] void fail(const std::string& cause, const std::string& hint) const { failAt(m_line, cause, hint); }
    [[noreturn]] void failAt(int line, const std::string& cause, const std::string& hint) const {
        throw store::Error(m_path, fmt::format("line {}: {}", line, cause), hint);
    }

    void take(const std::string& line) {
        noteSettings(line);
        const std::vector<std::string> words = wordsOf(line);
        if (words.empty()) return;
        if (words[0].starts_with("#"))
            comment(line, words);
        else if (m_open)
            row(words);
    }

    /// Notes names of programs and variables, in commands that the log shows and in what NCCL and nccl-tests say.
    void noteSettings(const std::string& line) {
        for (const char* program : {"all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "broadcast_perf",
                                    "reduce_perf", "alltoall_perf", "gather_perf", "scatter_perf", "sendrecv_perf"}) {
            const size_t at = line.find(program);
            if (at != std::string::npos && (at == 0 || line[at - 1] == '/' || line[at - 1] == ' '))
                m_program = opOfName(program);
        }
        noteVariable(line, "NCCL_ALGO", m_algorithm);
        noteVariable(line, "NCCL_PROTO", m_protocol);
        noteVersion(line);
    }

    void noteVariable(const std::string& line, const std::string& name, Variable& variable) const {
        const std::vector<std::string> words = wordsOf(line);
        const std::string value = valueOf(line, name);
        if (value.empty()) {
            const auto at = std::ranges::find(words, "unset");
            const bool exported = line.find("export " + name + "=") != std::string::npos;
            if (exported || std::find(at, words.end(), name) != words.end()) variable = Variable();
            return;
        }
        variable.now = value;
        const bool alone = words == std::vector<std::string>{name + "=" + value};
        if (alone || line.find("export ") != std::string::npos) variable.always = value;
    }

    /// Reads "NCCL version 2.28.9+cuda13.0" of NCCL and "nccl-library=22809" of nccl-tests.
    void noteVersion(const std::string& line) {
        for (const std::string said : {"NCCL version ", "nccl-library="})
            if (const size_t at = line.find(said); at != std::string::npos) {
                const size_t from = at + said.size();
                const std::string version = line.substr(from, line.find_first_of(" \t", from) - from);
                if (parseNcclVersion(version)) m_version = version;
            }
    }

    /// Returns where a value ends: at its closing quote, or where the word or the command does. A semicolon in front of
    /// "allreduce:" stands between the rules of two functions.
    static size_t endOfValue(const std::string& line, size_t from) {
        const char quote = from < line.size() ? line[from] : ' ';
        if (quote == '"' || quote == '\'') return line.find(quote, from + 1);
        size_t end = line.find_first_of(" \t;", from);
        while (end != std::string::npos && line[end] == ';') {
            const size_t after =
                line.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", end + 1);
            if (after == std::string::npos || after == end + 1 || line[after] != ':') break;
            end = line.find_first_of(" \t;", after);
        }
        return end;
    }

    /// Reads "NAME=value" or NCCL's "NAME set by environment to value".
    static std::string valueOf(const std::string& line, const std::string& name) {
        for (const std::string& form : {name + "=", name + " set by environment to "}) {
            const size_t at = line.find(form);
            if (at == std::string::npos) continue;
            const size_t from = at + form.size();
            std::string value = line.substr(from, endOfValue(line, from) - from);
            std::erase_if(value, [](char c) { return c == '"' || c == '\'' || c == '.'; });
            while (value.ends_with(',')) value.pop_back();
            return value;
        }
        return {};
    }

    void comment(const std::string& line, const std::vector<std::string>& words) {
        failIfCut();
        if (line.find("nThread") != std::string::npos && line.find("minBytes") != std::string::npos) {
            if (m_open) fail("a new test begins inside a table: the one before was cut off", kRunAgain);
            m_hosts.clear();
            m_processes.clear();
            m_ranks = 0;
            m_gpusPerThread = numberAfter(words, "nGpus");
        }
        if (words.size() > 3 && words[1] == "Rank" && line.find(" on ") != std::string::npos) device(line);
        const auto names = [&](const char* word) { return std::ranges::count(words, word); };
        if (names("size") > 0 && (names("busbw") > 0 || (names("count") > 0 && names("type") > 0))) heads(words);
        if (!m_open) return;
        if (line.find("Out of bounds values") != std::string::npos && line.find("FAILED") != std::string::npos)
            fail("the test reports wrong results", kFindTheCause);
        if (line.find("Avg bus bandwidth") != std::string::npos) close();
    }

    void device(const std::string& line) {
        ++m_ranks;
        const size_t at = line.find(" on ") + 4;
        const std::string host = line.substr(at, line.find(' ', line.find_first_not_of(' ', at)) - at);
        m_hosts.insert(host);
        m_processes.insert({host, numberAfter(wordsOf(line), "Pid")});
    }

    /// Returns the whole number behind a word, 0 where there is none.
    static int numberAfter(const std::vector<std::string>& words, const char* name) {
        const auto at = std::ranges::find(words, name);
        if (at == words.end() || at + 1 == words.end()) return 0;
        const double number = numberOf(*(at + 1)).value_or(0);
        return number > 0 && number < 1e9 ? static_cast<int>(number) : 0;
    }

    void heads(const std::vector<std::string>& words) {
        if (m_open) fail("a second row of column heads inside a table: the one before was cut off", kRunAgain);
        m_open = true;
        m_table = NcclTestsTable{};
        m_table.file = m_path;
        m_table.line = m_line;
        m_table.ranks = m_ranks;
        m_table.nodes = static_cast<int>(m_hosts.size());
        m_table.ncclVersion = m_version;
        m_table.gpusPerThread = m_gpusPerThread > 0
                                    ? m_gpusPerThread
                                    : m_ranks / std::max(1, static_cast<int>(m_processes.size()));  // as many threads
        m_columns = TableColumns(words);
        if (!m_columns.complaint().empty()) fail(m_columns.complaint(), "give the output unchanged");
        m_reduces = m_rooted = false;
        m_largestBusbw = 0;
        m_factors.clear();
        if (m_ranks == 0)
            fail("no device list ('# Rank 0 … on HOST device …') above the table: the number of ranks is not told",
                 "give the whole output, from its first line");
        if (m_ranks == 1)
            fail("a test of one rank: its time is that of a copy, not of communication",
                 "start one process per device under one launcher (mpirun -n 8 ./all_reduce_perf -g 1) and build "
                 "nccl-tests with MPI=1, else each is a job of its own");
    }

    void row(const std::vector<std::string>& words) {
        if (!std::isdigit(static_cast<unsigned char>(words[0][0])) || words.size() < 2 || !numberOf(words[0]))
            return;  // a message of NCCL or of the launcher
        failIfCut();
        const TableColumnsReading reading = m_columns.read(words);
        if (!reading.complaint.empty() && (reading.cut || m_lastLine)) {
            m_cut = {m_line, reading.complaint, reading.hint};  // as long as nothing of the table follows
            return;
        }
        if (!reading.complaint.empty()) fail(reading.complaint, reading.hint);
        const TableColumnsRow& row = reading.row;
        if (row.wrong > 0) fail(fmt::format("{:.0f} wrong elements", row.wrong), kFindTheCause);
        m_reduces = m_reduces || row.reduces;
        m_rooted = m_rooted || row.rooted;
        if (row.bytes <= 0) return;  // nccl-tests rounds sizes below one element per rank to nothing
        if (row.bytes > kMostBytes)
            fail(fmt::format("a size of {:g} bytes, which no device holds", row.bytes), "give the output unchanged");
        if (!m_table.rows.empty() && row.bytes < static_cast<double>(m_table.rows.back().bytes))
            fail("sizes go backwards: two outputs are mixed", "keep the output of each test in a file of its own");
        for (const int place : {0, 1}) {
            if (place == 1 && !row.inPlace) continue;
            m_largestBusbw = std::max(m_largestBusbw, row.busbw[place]);
            if (row.algbw[place] >= 1) m_factors.push_back(row.busbw[place] / row.algbw[place]);
        }
        m_table.rows.push_back({static_cast<int64_t>(row.bytes), row.time[0], row.inPlace ? row.time[1] : 0, m_line});
    }

    /// A row that lacks columns is what a file is cut in, unless its table goes on.
    void failIfCut() const {
        if (m_cut.line > 0) failAt(m_cut.line, m_cut.complaint, m_cut.hint);
    }

    /// Its last row may be a part of one. That its results were right the other rows say.
    void closeCut() {
        if (m_table.rows.empty()) {
            failIfCut();
            fail("the file ends inside a table, before its first whole row", kRunAgain);
        }
        m_table.cutLine = m_cut.line > 0 ? m_cut.line : m_line;
        m_cut = {};
        close();
    }

    void close() {
        m_open = false;
        if (m_table.rows.empty()) fail("a table without rows of more than 0 bytes", kRunAgain);
        if (m_largestBusbw <= 0)
            fail("the bus bandwidth is 0 in every row: the ranks did not communicate",
                 "each process ran alone; start them under one launcher and build nccl-tests with MPI=1");
        m_table.op = operation();
        checkFactor();
        readSetting();
        m_tables.push_back(std::move(m_table));
        m_algorithm.now = m_algorithm.always;
        m_protocol.now = m_protocol.always;
    }

    /// Reads the variables as the table's operation has them: one choice of each, NCCL's own, or a part of its choices.
    void readSetting() {
        const FunctionRule rule = NcclSetting::parse(m_algorithm.now, m_protocol.now).ruleOf(m_table.op);
        const bool algorithmTold = m_hints.algorithm != store::Algorithm::unknown;
        const bool protocolTold = m_hints.protocol != store::Protocol::unknown;
        m_table.algorithm = m_hints.algorithm;
        m_table.protocol = m_hints.protocol;
        if (!algorithmTold && rule.algorithms.size() == 1) m_table.algorithm = *rule.algorithms.begin();
        if (!protocolTold && rule.protocols.size() == 1) m_table.protocol = *rule.protocols.begin();
        if (!algorithmTold && rule.algorithms.size() > 1) m_table.severalChoices = "NCCL_ALGO=" + m_algorithm.now;
        if (!protocolTold && rule.protocols.size() > 1)
            m_table.severalChoices +=
                (m_table.severalChoices.empty() ? "NCCL_PROTO=" : " NCCL_PROTO=") + m_protocol.now;
        const AlgorithmChoice told{m_hints.algorithm, m_hints.protocol};
        if (!existsIn(m_table.op, m_table.nodes, told))
            failAt(m_table.line,
                   fmt::format("the table is said to be of {}, which NCCL does not have for {} on {}", spelled(told),
                               store::toText(m_table.op), text::countedText(std::max(1, m_table.nodes), "node")),
                   existingText(m_table.op, m_table.nodes));
        const AlgorithmChoice choice{m_table.algorithm, m_table.protocol};
        if (!existsIn(m_table.op, m_table.nodes, choice)) m_table.noSuchChoice = spelled(choice);
    }

    static std::string spelled(AlgorithmChoice choice) {
        const std::string algorithm = ncclName(choice.algorithm), protocol = ncclName(choice.protocol);
        return algorithm + (algorithm.empty() || protocol.empty() ? "" : "/") + protocol;
    }

    Op operation() const {
        if (m_hints.op != Op::unknown) return m_hints.op;
        if (m_program != Op::unknown) return m_program;
        if (const Op named = ofFileName(); named != Op::unknown) return named;
        if (m_factors.empty()) fail("the operation is not told", "name it behind the file: FILE:allreduce");
        const double factor = m_factors.back();
        const auto is = [&](Op op) { return std::abs(factor - facts::busFactor(op, m_table.ranks)) < 0.02; };
        if (m_table.ranks > 2 && is(Op::allReduce)) return Op::allReduce;
        if (m_table.ranks > 2 && is(Op::reduceScatter) && m_reduces) return Op::reduceScatter;
        if (m_table.ranks > 2 && is(Op::broadcast) && m_rooted) return m_reduces ? Op::reduce : Op::broadcast;
        fail("the operation is not told, and several have these columns",
             "name it behind the file: FILE:allgather, FILE:reducescatter, FILE:alltoall …");
    }

    Op ofFileName() const {
        std::string name;
        for (char c : std::filesystem::path(m_path).filename().string())
            if (c != '_' && c != '-') name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        for (const char* candidate :
             {"allreduce", "reducescatter", "allgather", "alltoall", "sendrecv", "broadcast", "reduce"})
            if (name.find(candidate) != std::string::npos) return opOfName(candidate);
        return Op::unknown;
    }

    void checkFactor() const {
        if (m_factors.empty()) return;
        const double expected = facts::busFactor(m_table.op, m_table.ranks);
        if (std::abs(m_factors.back() / expected - 1) < 0.03) return;
        fail(fmt::format("busbw / algbw is {:.3f}, for {} over {} ranks it is {:.3f}", m_factors.back(),
                         store::toText(m_table.op), m_table.ranks, expected),
             m_factors.back() < 0.01 ? "a job of one rank posing as more" : otherOperationText());
    }

    std::string otherOperationText() const {
        std::vector<std::string> fitting;
        for (const char* name : {"allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "reduce"})
            if (std::abs(m_factors.back() / facts::busFactor(opOfName(name), m_table.ranks) - 1) < 0.03)
                fitting.push_back(std::string("FILE:") + name);
        if (fitting.empty()) return "the number of ranks is another than the device list says: give the whole output";
        return fmt::format("the operation is another: name it behind the file, {}", fmt::join(fitting, " or "));
    }

    std::string m_path;
    NcclTestsHints m_hints;
    int m_line = 0;
    bool m_open = false;  // between column heads and the closing line
    NcclTestsTable m_table;
    std::vector<NcclTestsTable> m_tables;
    std::set<std::string> m_hosts;
    std::set<std::pair<std::string, int>> m_processes;  // by host
    int m_ranks = 0, m_gpusPerThread = 0;
    Op m_program = Op::unknown;
    Variable m_algorithm, m_protocol;
    std::string m_version;
    TableColumns m_columns;
    bool m_reduces = false, m_rooted = false;
    bool m_lastLine = false;  // which has no end, so that it may be a part of one
    struct {
        int line = 0;  // 0: none
        std::string complaint = {}, hint = {};
    } m_cut;  // the row that came last, where it is no whole one
    double m_largestBusbw = 0;
    std::vector<double> m_factors;  // busbw / algbw where both have digits enough
};

}  // namespace

double NcclTestsTable::timeUs(const NcclTestsRow& row) const {
    const bool inPlace = op == Op::allReduce || op == Op::broadcast || op == Op::reduce;
    return inPlace && row.inPlaceUs > 0 ? row.inPlaceUs : row.outOfPlaceUs;
}

std::vector<NcclTestsTable> readNcclTestsTables(const std::filesystem::path& path, const NcclTestsHints& hints) {
    return TableReader(path, hints).read();
}

EvidenceSource parseEvidenceSource(const std::string& text) {
    EvidenceSource source{text, {}};
    std::error_code ignored;
    if (std::filesystem::exists(text, ignored)) return source;  // a name with a colon in it
    const size_t colon = text.find(':');
    if (colon == std::string::npos) return source;
    source.path = text.substr(0, colon);
    std::string word;
    for (const char c : text.substr(colon + 1) + ":") {
        if (c != ':' && c != '/') {
            word += c;
            continue;
        }
        if (const Op op = opOfName(word); op != Op::unknown)
            source.hints.op = op;
        else if (const auto algorithm = algorithmOfName(word); algorithm != store::Algorithm::unknown)
            source.hints.algorithm = algorithm;
        else if (const auto protocol = protocolOfName(word); protocol != store::Protocol::unknown)
            source.hints.protocol = protocol;
        else
            throw store::Error(text, fmt::format("'{}' is no operation, algorithm or protocol", word),
                               "write FILE:allreduce:ring/ll, any part left out");
        word.clear();
    }
    return source;
}

}  // namespace rankscope::costs
