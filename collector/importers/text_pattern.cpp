// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/text_pattern.h"

#include <stdexcept>
#include <utility>

namespace rankscope::collector {

TextPattern::TextPattern(std::string_view pattern) : m_parts(1) {
    for (size_t at = 0; at < pattern.size(); ++at) {
        const char c = pattern[at];
        if (c != '{' && c != '*' && c != '}') {
            m_parts.back().literal += c;
            continue;
        }
        if (m_parts.back().isOpen && m_parts.back().literal.empty())
            throw std::invalid_argument("two gaps stand side by side in \"" + std::string(pattern) + "\"");
        Part part;
        part.isOpen = true;
        if (c != '*') {
            const size_t end = pattern.find('}', at);
            if (c == '}' || end == std::string_view::npos || end == at + 1)
                throw std::invalid_argument("a brace has no other one, or no name, in \"" + std::string(pattern) +
                                            "\"");
            part.gap = pattern.substr(at + 1, end - at - 1);
            at = end;
        }
        m_parts.push_back(std::move(part));
    }
}

/// Each literal is taken where it stands first, but for the last, which ends the text: where that does not fit, no
/// other choice would.
std::optional<std::map<std::string, std::string>> TextPattern::match(std::string_view text) const {
    std::map<std::string, std::string> taken;
    if (!text.starts_with(m_parts.front().literal)) return std::nullopt;
    text.remove_prefix(m_parts.front().literal.size());
    for (size_t i = 1; i < m_parts.size(); ++i) {
        const std::string& literal = m_parts[i].literal;
        const bool isLast = i + 1 == m_parts.size();
        if (isLast && !text.ends_with(literal)) return std::nullopt;
        const size_t at = isLast ? text.size() - literal.size() : text.find(literal);
        if (at == std::string_view::npos) return std::nullopt;
        if (!m_parts[i].gap.empty()) taken[m_parts[i].gap] = text.substr(0, at);
        text.remove_prefix(at + literal.size());
    }
    if (!text.empty()) return std::nullopt;
    return taken;
}

std::vector<std::string> TextPattern::gaps() const {
    std::vector<std::string> names;
    for (const Part& part : m_parts)
        if (!part.gap.empty()) names.push_back(part.gap);
    return names;
}

}  // namespace rankscope::collector
