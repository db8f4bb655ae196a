// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/dump_tree.h"

#include <bit>
#include <cmath>

#include "collector/importers/exact_number.h"

namespace rankscope::collector {

namespace {

/// Integers from here on are not all numbers of a double.
constexpr double kExactReal = 9'007'199'254'740'992.0;

}  // namespace

DumpNode DumpTree::add(Kind kind, int64_t value) {
    if (m_nodes.size() >= kMostNodes) {
        m_full = true;
        return 0;
    }
    m_nodes.push_back({kind, value});
    return static_cast<DumpNode>(m_nodes.size() - 1);
}

DumpNode DumpTree::addReal(double value) {
    return add(Kind::real, std::bit_cast<int64_t>(value));
}

DumpNode DumpTree::addText(std::string_view text) {
    const DumpNode node = add(Kind::text, static_cast<int64_t>(m_texts.size()));
    if (!m_full) m_texts.push_back(text);
    return node;
}

DumpNode DumpTree::addContainer(Kind kind) {
    const DumpNode node = add(kind, static_cast<int64_t>(m_containers.size()));
    if (!m_full) m_containers.emplace_back();
    return node;
}

bool DumpTree::append(DumpNode container, DumpNode value) {
    return append(container, std::span(&value, 1));
}

bool DumpTree::append(DumpNode container, std::span<const DumpNode> values) {
    if (!isList(container) && !isDictionary(container)) return false;
    if (m_children + values.size() > 2 * kMostNodes) m_full = true;
    if (m_full) return false;
    m_children += values.size();
    std::vector<DumpNode>& held = m_containers[static_cast<size_t>(m_nodes[container].value)];
    held.insert(held.end(), values.begin(), values.end());
    return true;
}

std::optional<int64_t> DumpTree::integer(DumpNode node) const {
    if (node == kNone) return std::nullopt;
    switch (kind(node)) {
        case Kind::boolean:
        case Kind::integer:
            return m_nodes[node].value;
        case Kind::real: {
            const double value = std::bit_cast<double>(m_nodes[node].value);
            if (!(std::abs(value) < kExactReal) || std::trunc(value) != value) return std::nullopt;
            return static_cast<int64_t>(value);
        }
        case Kind::text:
            return integerFromText(text(node));
        default:
            return std::nullopt;
    }
}

std::optional<long double> DumpTree::number(DumpNode node) const {
    if (node == kNone) return std::nullopt;
    if (kind(node) == Kind::integer) return static_cast<long double>(m_nodes[node].value);
    if (kind(node) == Kind::real) return std::bit_cast<double>(m_nodes[node].value);
    return std::nullopt;
}

std::optional<bool> DumpTree::boolean(DumpNode node) const {
    if (node == kNone || kind(node) != Kind::boolean) return std::nullopt;
    return m_nodes[node].value != 0;
}

std::string_view DumpTree::text(DumpNode node) const {
    if (node == kNone || kind(node) != Kind::text) return {};
    return m_texts[static_cast<size_t>(m_nodes[node].value)];
}

std::span<const DumpNode> DumpTree::children(DumpNode node) const {
    if (!isList(node) && !isDictionary(node)) return {};
    return m_containers[static_cast<size_t>(m_nodes[node].value)];
}

DumpNode DumpTree::at(DumpNode dictionary, std::string_view key) const {
    if (!isDictionary(dictionary)) return kNone;
    const std::span<const DumpNode> held = children(dictionary);
    DumpNode found = kNone;
    for (size_t i = 0; i + 1 < held.size(); i += 2)
        if (kind(held[i]) == Kind::text && text(held[i]) == key) found = held[i + 1];
    return found;
}

}  // namespace rankscope::collector
