// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "analyzer/text/plain_text.h"

namespace rankscope::exports {

/// Appends a text as a JSON string; bytes that are no text become U+FFFD.
inline void appendJsonString(fmt::memory_buffer& out, std::string_view bytes) {
    const std::string text = text::plainText(bytes);
    out.push_back('"');
    for (const char c : text) {
        if (c == '"' || c == '\\') out.push_back('\\');
        if (c == '\n' || c == '\t') {
            out.push_back('\\');
            out.push_back(c == '\n' ? 'n' : 't');
        } else {
            out.push_back(c);
        }
    }
    out.push_back('"');
}

}  // namespace rankscope::exports
