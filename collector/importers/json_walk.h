// SPDX-License-Identifier: Apache-2.0
// A JSON document of any size, walked from its front: what is not wanted is skipped without being held.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "collector/importers/text_window.h"

namespace rankscope::collector {

/// Thrown where the document ends, or is no JSON, inside what is read: no more of it can be told.
struct JsonCut {};

class JsonWalk {
  public:
    explicit JsonWalk(InputFile& file) : m_window(file) {}

    uint64_t offset() const { return m_window.offset(); }

    /// First byte of the value that comes next.
    char peek();
    /// Calls `visit(key)` for each member of the object that comes next; `visit` must take the value. Keys are raw:
    /// what is escaped in them stays so.
    template <typename Visit>
    void forEachMember(Visit visit) {
        take('{');
        for (bool isFirst = true; !takesEnd('}', isFirst); isFirst = false) {
            std::string key(value(kMostKeyBytes));
            if (key.size() < 2 || key.front() != '"') throw JsonCut{};
            take(':');
            visit(std::string_view(key).substr(1, key.size() - 2));
        }
    }
    /// Calls `visit()` for each element of the array that comes next; `visit` must take it.
    template <typename Visit>
    void forEachElement(Visit visit) {
        take('[');
        for (bool isFirst = true; !takesEnd(']', isFirst); isFirst = false) visit();
    }
    /// Takes the value that comes next, whole; valid until the next call. Throws JsonCut where it has more than `most`
    /// bytes.
    std::string_view value(size_t most);
    void skip();

  private:
    static constexpr size_t kMostKeyBytes = 4096;

    void take(char what);
    bool takesEnd(char end, bool isFirst);

    TextWindow m_window;
    size_t m_taken = 0;  // of the window, by value()
};

}  // namespace rankscope::collector
