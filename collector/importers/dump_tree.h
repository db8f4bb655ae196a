// SPDX-License-Identifier: Apache-2.0
// What a dump holds, whatever it was written as: null, numbers, texts, lists and dictionaries. Values are nodes of one
// arena and may be shared, as a pickle shares them, so that nothing is unfolded and nothing is freed recursively.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace rankscope::collector {

/// Index of a value in its tree.
using DumpNode = uint32_t;

/// Lists hold what Python's lists, tuples and sets hold. The keys of dictionaries stand in front of their values. Texts
/// are views of the document that was read, or of texts that the tree owns.
class DumpTree {
  public:
    enum class Kind : uint8_t { null, boolean, integer, real, text, list, dictionary };

    /// Beyond this a document is refused: a dump of 100,000 calls with their stacks has under a tenth of it, and the
    /// nodes take 16 bytes each.
    static constexpr size_t kMostNodes = 32'000'000;
    /// A list in itself is no list that a dump has; what is read goes no deeper than its format does.
    static constexpr DumpNode kNone = UINT32_MAX;

    DumpNode addNull() { return add(Kind::null, 0); }
    DumpNode addBoolean(bool value) { return add(Kind::boolean, value); }
    DumpNode addInteger(int64_t value) { return add(Kind::integer, value); }
    DumpNode addReal(double value);
    DumpNode addText(std::string_view text);
    DumpNode addList() { return addContainer(Kind::list); }
    DumpNode addDictionary() { return addContainer(Kind::dictionary); }
    /// False when `container` is none, or the tree is full.
    bool append(DumpNode container, DumpNode value);
    bool append(DumpNode container, std::span<const DumpNode> values);

    /// True when a value did not fit in.
    bool isFull() const { return m_full; }

    Kind kind(DumpNode node) const { return m_nodes[node].kind; }
    bool isList(DumpNode node) const { return node != kNone && kind(node) == Kind::list; }
    bool isDictionary(DumpNode node) const { return node != kNone && kind(node) == Kind::dictionary; }
    /// An integer or boolean, a real without a fraction, or a text that is an integer.
    std::optional<int64_t> integer(DumpNode node) const;
    /// An integer or a real; other than double it holds every int64.
    std::optional<long double> number(DumpNode node) const;
    std::optional<bool> boolean(DumpNode node) const;
    std::string_view text(DumpNode node) const;  ///< empty for what is none
    /// Of a list its values, of a dictionary keys and values in turn; empty for what is neither.
    std::span<const DumpNode> children(DumpNode node) const;
    /// Value of a dictionary's key, the last one where it stands twice; kNone where there is none.
    DumpNode at(DumpNode dictionary, std::string_view key) const;

  private:
    struct Node {
        Kind kind = Kind::null;
        int64_t value = 0;  // bits of a real; index of a text or container
    };
    DumpNode add(Kind kind, int64_t value);
    DumpNode addContainer(Kind kind);

    std::vector<Node> m_nodes;
    std::vector<std::string_view> m_texts;
    std::vector<std::vector<DumpNode>> m_containers;
    size_t m_children = 0;
    bool m_full = false;
};

}  // namespace rankscope::collector
