// SPDX-License-Identifier: Apache-2.0
// Finding where JSON values end without parsing them: for the parts of a document that are skipped, and for damaged
// ones that no parser accepts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rankscope::collector {

inline constexpr size_t kNotFound = static_cast<size_t>(-1);

inline bool isJsonSpace(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/// The text behind a UTF-8 mark and white space.
std::string_view withoutLeadingSpace(std::string_view text);

/// Finds the end of one value that arrives in pieces. Feed the text from the value's first byte on.
class ValueScanner {
  public:
    /// Offset behind the value's last byte inside `piece`, or kNotFound when it goes on. A number or word ends before
    /// the byte that follows it.
    size_t feed(std::string_view piece);

  private:
    enum class State { start, word, nested };
    State m_state = State::start;
    int m_depth = 0;
    bool m_inString = false;
    bool m_escaped = false;
};

/// Offset of the '{' of the first position at or after `from` that looks like the start of an event of a trace behind
/// another one: `}` `,` `{` `"ph":`. Used to cut an array of events into slices and to find back after damage; what it
/// finds is checked by parsing.
size_t findEventStart(std::string_view text, size_t from);
/// The same, the last one in `text`.
size_t findLastEventStart(std::string_view text);

/// Offset of the ']' that ends the array of events, by what follows it: a member of the document or, when the text ends
/// there, its end. kNotFound when there is none.
size_t findEventsEnd(std::string_view text, bool textEnds);

/// The first bytes of a UTF-8 text, in whole characters.
std::string_view firstBytes(std::string_view text, size_t most);

/// Copy of `text` with each invalid UTF-8 byte replaced by U+FFFD; `firstInvalid` gets the offset of the first one,
/// kNotFound when there is none.
std::string sanitiseUtf8(std::string_view text, size_t& firstInvalid, size_t& count);

}  // namespace rankscope::collector
