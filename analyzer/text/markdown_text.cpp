// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/markdown_text.h"

#include "analyzer/text/plain_text.h"

namespace rankscope::text {
namespace {

bool beginsWww(std::string_view text) {
    const auto isW = [&](size_t i) { return text[i] == 'w' || text[i] == 'W'; };
    return text.size() > 3 && isW(0) && isW(1) && isW(2) && text[3] == '.';
}

}  // namespace

std::string markdownText(std::string_view bytes, size_t longest) {
    const std::string text = shortened(oneLine(bytes), longest);
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        switch (c) {
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '&':
                out += "&amp;";
                break;
            case '@':
                out += "&#64;";
                break;
            case '\\':
            case '`':
            case '*':
            case '_':
            case '[':
            case ']':
            case '|':
            case '~':
            case '$':
                out.append("\\").push_back(c);
                break;
            case ':':
                if (text.compare(i, 3, "://") == 0)
                    out += "&#58;";
                else
                    out += c;
                break;
            case 'w':
            case 'W':  // www.x.org is a link too
                if (beginsWww(std::string_view(text).substr(i)))
                    out.append(text, i, 3).append("&#46;"), i += 3;
                else
                    out += c;
                break;
            case '#':
            case '-':
            case '+':
            case '=':  // marks only at the start
                if (i == 0) out += '\\';
                out += c;
                break;
            default:
                out += c;
        }
    }
    return out;
}

std::string cutForSummary(std::string document) {
    constexpr size_t kMostBytes = 1'000'000;
    if (document.size() <= kMostBytes) return document;
    document.resize(document.rfind('\n', kMostBytes));
    return document + "\n\nThe rest is left out: --format json has all.\n";
}

}  // namespace rankscope::text
