// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/csv_text.h"

#include "analyzer/text/plain_text.h"

namespace rankscope::text {

std::string csvText(std::string_view bytes) {
    std::string text = plainText(bytes);
    if (!text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos)
        text.insert(0, 1, '\'');
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
    return quoted + '"';
}

}  // namespace rankscope::text
