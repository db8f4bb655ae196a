// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/json_walk.h"

#include <algorithm>

#include "collector/importers/json_scan.h"

namespace rankscope::collector {

char JsonWalk::peek() {
    m_window.advance(m_taken);
    m_taken = 0;
    while (m_window.require(1)) {
        size_t at = 0;
        while (at < m_window.size() && isJsonSpace(m_window.data()[at])) ++at;
        m_window.advance(at);
        if (m_window.size() > 0) return m_window.data()[0];
    }
    throw JsonCut{};
}

void JsonWalk::take(char what) {
    if (peek() != what) throw JsonCut{};
    m_window.advance(1);
}

bool JsonWalk::takesEnd(char end, bool isFirst) {
    char next = peek();
    if (next == ',' && !isFirst) {
        m_window.advance(1);
        next = peek();
    } else if (next != end && !isFirst) {
        throw JsonCut{};
    }
    if (next != end) return false;
    m_window.advance(1);
    return true;
}

std::string_view JsonWalk::value(size_t most) {
    peek();
    for (size_t bytes = std::min<size_t>(4096, most);; bytes = std::min(bytes * 4, most)) {
        const bool isAll = !m_window.require(bytes);
        ValueScanner scanner;
        const size_t end = scanner.feed({m_window.data(), std::min(bytes, m_window.size())});
        if (end == 0 || (end == kNotFound && (isAll || bytes >= most))) throw JsonCut{};
        if (end == kNotFound) continue;
        m_taken = end;
        return {m_window.data(), end};
    }
}

void JsonWalk::skip() {
    peek();
    ValueScanner scanner;
    for (bool isFirst = true; m_window.require(1); isFirst = false) {
        const size_t end = scanner.feed({m_window.data(), m_window.size()});
        if (end == 0 && isFirst) throw JsonCut{};
        m_window.advance(end == kNotFound ? m_window.size() : end);
        if (end != kNotFound) return;
    }
    throw JsonCut{};
}

}  // namespace rankscope::collector
