// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/pickle_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <vector>

namespace rankscope::collector {

namespace {

/// Of the memo: each index costs the pickle two bytes at least, and this many are those of the largest tree.
constexpr size_t kMostMemo = DumpTree::kMostNodes;
/// Values that wait on the stack for the container they go to.
constexpr size_t kMostStack = DumpTree::kMostNodes;
/// Of the name that a refused opcode asks for, as far as a message shows it.
constexpr size_t kShownName = 60;

/// The opcodes that are known and refused.
struct RefusedOpcode {
    unsigned char code;
    const char* name;
};
constexpr RefusedOpcode kRefused[] = {
    {'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},     {'b', "BUILD"},        {'i', "INST"},
    {'o', "OBJ"},    {0x81, "NEWOBJ"},       {0x92, "NEWOBJ_EX"}, {'P', "PERSID"},       {'Q', "BINPERSID"},
    {0x82, "EXT1"},  {0x83, "EXT2"},         {0x84, "EXT4"},      {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
    {'I', "INT"},    {'L', "LONG"},          {'F', "FLOAT"},      {'S', "STRING"},       {'V', "UNICODE"},
    {'p', "PUT"},    {'g', "GET"},
};

std::string printable(std::string_view text) {
    std::string shown;
    for (const char c : text.substr(0, kShownName)) shown += c >= ' ' && c <= '~' ? c : c == '\n' ? '.' : '?';
    return shown;
}

class Interpreter {
  public:
    Interpreter(std::string_view bytes, DumpTree& tree) : m_bytes(bytes), m_tree(tree) {}

    PickleResult run() {
        // Values that have nothing in them are the same everywhere.
        m_null = m_tree.addNull();
        m_true = m_tree.addBoolean(true);
        m_false = m_tree.addBoolean(false);
        while (!m_ended) {
            m_opcodeAt = m_at;
            if (m_at == m_bytes.size()) {
                cut("it ends without STOP");
                break;
            }
            step(static_cast<unsigned char>(m_bytes[m_at++]));
            if (!m_ended && m_tree.isFull()) refuse("it holds more values than a dump does");
        }
        m_result.offset = m_opcodeAt;
        return std::move(m_result);
    }

  private:
    void refuse(std::string problem) {
        m_ended = true;
        m_result = {PickleResult::State::refused, DumpTree::kNone, 0, std::move(problem)};
    }

    /// The pickle is whole as far as it goes: what is open is closed.
    void cut(std::string problem) {
        m_ended = true;
        while (!m_marks.empty()) closeMark();
        if (m_stack.size() > 1) {
            const std::span<const DumpNode> rest = std::span(m_stack).subspan(1);
            appendPairs(m_stack.front(), rest);
        }
        m_result = {PickleResult::State::cut, m_stack.empty() ? DumpTree::kNone : m_stack.front(), 0,
                    std::move(problem)};
    }

    void appendPairs(DumpNode container, std::span<const DumpNode> values) {
        if (m_tree.isDictionary(container)) values = values.first(values.size() / 2 * 2);
        m_tree.append(container, values);
    }

    /// Gives what stands above the last mark to the container below it; a tuple that was not finished is left out.
    void closeMark() {
        const size_t mark = m_marks.back();
        m_marks.pop_back();
        if (mark > 0) appendPairs(m_stack[mark - 1], std::span(m_stack).subspan(mark));
        m_stack.resize(mark);
    }

    // Each of these ends the run where it fails, and the caller returns.

    std::optional<uint64_t> number(size_t width) {
        if (m_bytes.size() - m_at < width) {
            cut("it ends inside a number");
            return std::nullopt;
        }
        uint64_t value = 0;
        for (size_t i = 0; i < width; ++i)
            value |= static_cast<uint64_t>(static_cast<unsigned char>(m_bytes[m_at + i])) << (8 * i);
        m_at += width;
        return value;
    }

    std::optional<std::string_view> block(size_t lengthWidth) {
        const std::optional<uint64_t> length = number(lengthWidth);
        if (!length) return std::nullopt;
        if (*length > m_bytes.size() - m_at) {
            cut(fmt::format("it ends inside a text of {} bytes", *length));
            return std::nullopt;
        }
        const std::string_view text = m_bytes.substr(m_at, static_cast<size_t>(*length));
        m_at += static_cast<size_t>(*length);
        return text;
    }

    /// Values above the last mark: what an opcode may take.
    size_t reachable() const { return m_stack.size() - (m_marks.empty() ? 0 : m_marks.back()); }

    bool need(size_t values) {
        if (reachable() >= values) return true;
        refuse("an opcode takes more than there is");
        return false;
    }

    void push(DumpNode node) {
        if (m_stack.size() >= kMostStack) return refuse("it stacks more values than a dump does");
        m_stack.push_back(node);
    }

    void pushText(size_t lengthWidth) {
        if (const auto text = block(lengthWidth)) push(m_tree.addText(*text));
    }

    /// A little-endian two's complement of any length; beyond 64 bits its low ones, as integerFromText keeps them.
    void pushLong(size_t lengthWidth) {
        const auto digits = block(lengthWidth);
        if (!digits) return;
        uint64_t value = !digits->empty() && static_cast<signed char>(digits->back()) < 0 ? ~uint64_t{0} : 0;
        for (size_t i = 0; i < std::min<size_t>(8, digits->size()); ++i) {
            value &= ~(uint64_t{0xff} << (8 * i));
            value |= static_cast<uint64_t>(static_cast<unsigned char>((*digits)[i])) << (8 * i);
        }
        push(m_tree.addInteger(static_cast<int64_t>(value)));
    }

    void pushReal() {
        const auto little = number(8);
        if (!little) return;
        uint64_t big = 0;
        for (int i = 0; i < 8; ++i) big = (big << 8) | ((*little >> (8 * i)) & 0xff);
        push(m_tree.addReal(std::bit_cast<double>(big)));
    }

    /// Takes the last `values` into a new list.
    void pushTuple(size_t values) {
        if (!need(values)) return;
        const DumpNode list = m_tree.addList();
        m_tree.append(list, std::span(m_stack).last(values));
        m_stack.resize(m_stack.size() - values);
        push(list);
    }

    /// What stands above the last mark, whose place is given back.
    std::optional<size_t> takeMark() {
        if (m_marks.empty()) {
            refuse("an opcode takes what follows a mark, and there is none");
            return std::nullopt;
        }
        const size_t mark = m_marks.back();
        m_marks.pop_back();
        return mark;
    }

    void fromMark(DumpNode container) {
        const auto mark = takeMark();
        if (!mark) return;
        addAll(container, std::span(m_stack).subspan(*mark));
        if (m_ended) return;
        m_stack.resize(*mark);
        push(container);
    }

    /// Appends what stands above the last mark to the container below it.
    void toContainerBelow() {
        const auto mark = takeMark();
        if (!mark) return;
        if (*mark <= (m_marks.empty() ? 0 : m_marks.back())) return refuse("an opcode takes more than there is");
        addAll(m_stack[*mark - 1], std::span(m_stack).subspan(*mark));
        m_stack.resize(*mark);
    }

    void addAll(DumpNode container, std::span<const DumpNode> values) {
        if (m_tree.isDictionary(container) && values.size() % 2 != 0) return refuse("a key stands without its value");
        if (!m_tree.append(container, values) && !m_tree.isFull()) refuse("values are added to what is no container");
    }

    void appendLast(size_t values) {
        if (!need(values + 1)) return;
        addAll(m_stack[m_stack.size() - values - 1], std::span(m_stack).last(values));
        m_stack.resize(m_stack.size() - values);
    }

    void remember(uint64_t index) {
        if (!need(1)) return;
        // Python numbers from 0 without a gap: a far index is a lie that would cost memory.
        if (index > m_memo.size() + kMemoGap || index >= kMostMemo)
            return refuse(fmt::format("it remembers a value as number {}, behind {} others", index, m_memo.size()));
        if (index >= m_memo.size()) m_memo.resize(static_cast<size_t>(index) + 1, DumpTree::kNone);
        m_memo[static_cast<size_t>(index)] = m_stack.back();
    }

    void recall(uint64_t index) {
        if (index >= m_memo.size() || m_memo[static_cast<size_t>(index)] == DumpTree::kNone)
            return refuse(fmt::format("it recalls value {}, which was never remembered", index));
        push(m_memo[static_cast<size_t>(index)]);
    }

    void stop() {
        if (!m_marks.empty() || m_stack.size() != 1) return refuse("it stops with values left over");
        m_ended = true;
        m_result = {PickleResult::State::whole, m_stack.front(), 0, {}};
    }

    void refuseOpcode(unsigned char code) {
        for (const RefusedOpcode& known : kRefused) {
            if (known.code != code) continue;
            std::string name;
            if (code == 'c' || code == 'i') {
                const std::string_view rest = m_bytes.substr(m_at);
                const size_t module = rest.find('\n');
                const size_t end = module == std::string_view::npos ? module : rest.find('\n', module + 1);
                name = " " + printable(rest.substr(0, std::min(end, kShownName)));
            } else if (code == 0x93 && reachable() >= 2) {
                name = " " + printable(m_tree.text(m_stack[m_stack.size() - 2])) + "." +
                       printable(m_tree.text(m_stack.back()));
            }
            return refuse(fmt::format("it holds the opcode {}{}, which no dump of data needs; nothing was run",
                                      known.name, name));
        }
        refuse(fmt::format("byte 0x{:02x} is no opcode", code));
    }

    void step(unsigned char code) {
        switch (code) {
            case 0x80:  // PROTO
                if (const auto protocol = number(1); protocol && (*protocol < 2 || *protocol > 5))
                    refuse(fmt::format("its protocol is {}; 2 to 5 are known", *protocol));
                return;
            case 0x95:  // FRAME, whose length only says how much to read ahead
                number(8);
                return;
            case '.':
                return stop();
            case '(':
                if (m_marks.size() >= kMostStack) return refuse("it stacks more marks than a dump does");
                m_marks.push_back(m_stack.size());
                return;
            case '0':  // POP
                if (reachable() == 0 && !m_marks.empty()) {
                    m_marks.pop_back();
                } else if (need(1)) {
                    m_stack.pop_back();
                }
                return;
            case '1':  // POP_MARK
                if (const auto mark = takeMark()) m_stack.resize(*mark);
                return;
            case '2':  // DUP
                if (need(1)) push(m_stack.back());
                return;
            case 'N':
                return push(m_null);
            case 0x88:
                return push(m_true);
            case 0x89:
                return push(m_false);
            case 'J':  // BININT
                if (const auto value = number(4))
                    push(m_tree.addInteger(static_cast<int32_t>(static_cast<uint32_t>(*value))));
                return;
            case 'K':  // BININT1
                if (const auto value = number(1)) push(m_tree.addInteger(static_cast<int64_t>(*value)));
                return;
            case 'M':  // BININT2
                if (const auto value = number(2)) push(m_tree.addInteger(static_cast<int64_t>(*value)));
                return;
            case 0x8a:  // LONG1
                return pushLong(1);
            case 0x8b:  // LONG4
                return pushLong(4);
            case 'G':  // BINFLOAT
                return pushReal();
            case 'U':   // SHORT_BINSTRING
            case 'C':   // SHORT_BINBYTES
            case 0x8c:  // SHORT_BINUNICODE
                return pushText(1);
            case 'T':  // BINSTRING
            case 'B':  // BINBYTES
            case 'X':  // BINUNICODE
                return pushText(4);
            case 0x8d:  // BINUNICODE8
            case 0x8e:  // BINBYTES8
            case 0x96:  // BYTEARRAY8
                return pushText(8);
            case ']':   // EMPTY_LIST
            case ')':   // EMPTY_TUPLE
            case 0x8f:  // EMPTY_SET
                return push(m_tree.addList());
            case '}':  // EMPTY_DICT
                return push(m_tree.addDictionary());
            case 'l':   // LIST
            case 't':   // TUPLE
            case 0x91:  // FROZENSET
                return fromMark(m_tree.addList());
            case 'd':  // DICT
                return fromMark(m_tree.addDictionary());
            case 0x85:
            case 0x86:
            case 0x87:  // TUPLE1 to TUPLE3
                return pushTuple(code - 0x84u);
            case 'a':  // APPEND
                return appendLast(1);
            case 's':  // SETITEM
                return appendLast(2);
            case 'e':   // APPENDS
            case 'u':   // SETITEMS
            case 0x90:  // ADDITEMS
                return toContainerBelow();
            case 'q':  // BINPUT
                if (const auto index = number(1)) remember(*index);
                return;
            case 'r':  // LONG_BINPUT
                if (const auto index = number(4)) remember(*index);
                return;
            case 0x94:  // MEMOIZE
                return remember(m_memo.size());
            case 'h':  // BINGET
                if (const auto index = number(1)) recall(*index);
                return;
            case 'j':  // LONG_BINGET
                if (const auto index = number(4)) recall(*index);
                return;
            default:
                return refuseOpcode(code);
        }
    }

    /// PyTorch's own pickler numbers every value and may leave some out.
    static constexpr uint64_t kMemoGap = 1024;

    std::string_view m_bytes;
    DumpTree& m_tree;
    size_t m_at = 0;
    size_t m_opcodeAt = 0;
    bool m_ended = false;
    DumpNode m_null = 0, m_true = 0, m_false = 0;
    std::vector<DumpNode> m_stack;
    std::vector<size_t> m_marks;  // heights of the stack
    std::vector<DumpNode> m_memo;
    PickleResult m_result;
};

}  // namespace

PickleResult readPickle(std::string_view bytes, DumpTree& tree) {
    return Interpreter(bytes, tree).run();
}

}  // namespace rankscope::collector
