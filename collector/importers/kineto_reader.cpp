// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/kineto_reader.h"

#include <algorithm>
#include <cstring>

#include "collector/importers/import_error.h"
#include "collector/importers/json_scan.h"
#include "collector/importers/kineto_decoder.h"

namespace rankscope::collector {

namespace {
// Header members are kilobytes; pg_config of a 16,384-rank job with hundreds of groups stays under this.
constexpr size_t kMaxHeaderBytes = 64 << 20;
constexpr size_t kMaxKeyBytes = 4096;
// A damaged slice is parsed again in smaller ones, so that a file with damage everywhere costs little more than one
// without.
constexpr size_t kSmallSliceBytes = 16 << 10;
// Objects inside an event that look like the start of another one; more than this is damage.
constexpr int kMaxNestedStarts = 64;
constexpr char kUtf8Mark[] = "\xef\xbb\xbf";
}  // namespace

void KinetoReader::read(const EventSink& sink) {
    m_sink = sink;
    if (m_window.require(3) && std::memcmp(m_window.data(), kUtf8Mark, 3) == 0) m_window.advance(3);
    if (!skipSpace()) throw ImportError(m_file.path(), 0, "the file is empty", "");
    const char first = m_window.data()[0];
    if (first == '[') {
        m_window.advance(1);
        m_sawEvents = true;
        readEvents();
    } else if (first == '{') {
        m_window.advance(1);
        readDocument();
    } else {
        throw ImportError(m_file.path(), m_window.offset(), "this is no JSON document",
                          "expected a PyTorch (Kineto) or Chrome trace");
    }
    if (!m_file.damage().empty()) {
        m_losses.add("torn_tail", "error", m_window.offset(),
                     m_file.damage() + "; the events in front of that are imported");
    }
    m_sink = nullptr;
}

bool KinetoReader::skipSpace() {
    for (;;) {
        size_t at = 0;
        while (at < m_window.size() && isJsonSpace(m_window.data()[at])) ++at;
        m_window.advance(at);
        if (m_window.size() > 0) return true;
        if (!m_window.require(1)) return false;
    }
}

void KinetoReader::reportCutOff(const char* where) {
    if (m_cutOff) return;
    m_cutOff = true;
    if (m_file.damage().empty()) {
        m_losses.add("torn_tail", "error", m_window.offset() + m_window.size(),
                     std::string("the file is cut off inside ") + where + "; the events in front of that are imported");
    }
}

// ---- the document around the events

void KinetoReader::readDocument() {
    while (skipSpace()) {
        const char c = m_window.data()[0];
        if (c == '}') return;
        if (c == ',') {
            m_window.advance(1);
            continue;
        }
        if (c == '"' && readMember()) continue;
        if (m_cutOff) return;
        m_losses.add("bad_block", "warning", m_window.offset(),
                     "the document around the events is damaged; what it tells there is unknown");
        if (m_sawEvents || !findEventsAfterDamage()) return;
        readEvents();
    }
    reportCutOff("the document");
}

bool KinetoReader::readMember() {
    std::string key;
    if (!readKey(key)) return false;
    if (!skipSpace()) {
        reportCutOff("the document");
        return false;
    }
    if (m_window.data()[0] != ':') return false;
    m_window.advance(1);
    if (!skipSpace()) {
        reportCutOff("the document");
        return false;
    }
    if (key == "traceEvents" && m_window.data()[0] == '[') {
        m_window.advance(1);
        m_sawEvents = true;
        readEvents();
    } else if (!readHeaderMember(key)) {
        // Cut off here, or a quote that is none swallowed the rest.
        if (m_sawEvents) reportCutOff("the document");
        return false;
    }
    return !m_cutOff;
}

bool KinetoReader::readKey(std::string& key) {
    size_t at = 1;
    for (;;) {
        if (at >= m_window.size() && !m_window.require(at + 1)) {
            reportCutOff("the document");
            return false;
        }
        const char c = m_window.data()[at];
        if (c == '"') break;
        at += c == '\\' ? 2 : 1;
        if (at > kMaxKeyBytes) return false;
    }
    key.assign(m_window.data() + 1, at - 1);
    m_window.advance(at + 1);
    return true;
}

/// Reads or skips the value at the front of the window, a member in front of or behind the events; false when it has no
/// end.
bool KinetoReader::readHeaderMember(const std::string& key) {
    size_t bytes = kSmallSliceBytes;
    for (;;) {
        const bool all = !m_window.require(bytes);
        ValueScanner scanner;
        const size_t available = std::min(m_window.size(), bytes);
        size_t end = scanner.feed({m_window.data(), available});
        if (end == kNotFound && all) return false;
        if (end != kNotFound) {
            if (isKinetoHeaderMember(key) && !readKinetoHeaderMember(key, {m_window.data(), end}, m_header)) {
                m_losses.add("bad_block", "warning", m_window.offset(),
                             key + " cannot be read; what it tells is unknown");
            }
            m_window.advance(end);
            return true;
        }
        if (bytes >= kMaxHeaderBytes) {
            if (isKinetoHeaderMember(key)) {
                m_losses.add("bad_block", "warning", m_window.offset(),
                             key + " is too large to be read; what it tells is unknown");
            }
            skipValue();
            return true;
        }
        bytes *= 4;
    }
}

void KinetoReader::skipValue() {
    ValueScanner scanner;
    while (m_window.require(1)) {
        const size_t end = scanner.feed({m_window.data(), m_window.size()});
        if (end != kNotFound) {
            m_window.advance(end);
            return;
        }
        m_window.advance(m_window.size());
    }
    reportCutOff("the document");
}

bool KinetoReader::findEventsAfterDamage() {
    constexpr std::string_view kKey = "\"traceEvents\"";
    while (m_window.require(kKey.size())) {
        m_window.require(KinetoReader::kSliceBytes);
        const std::string_view text(m_window.data(), m_window.size());
        const size_t at = text.find(kKey);
        if (at == std::string_view::npos) {
            m_window.advance(text.size() - kKey.size() + 1);
            continue;
        }
        m_window.advance(at + kKey.size());
        if (!skipSpace() || m_window.data()[0] != ':') continue;
        m_window.advance(1);
        if (!skipSpace() || m_window.data()[0] != '[') continue;
        m_window.advance(1);
        m_sawEvents = true;
        return true;
    }
    return false;
}

// ---- the events

void KinetoReader::readEvents() {
    size_t sliceBytes = kSliceBytes;
    uint64_t commaOffset = 0;
    bool afterComma = false;
    while (skipSpace()) {
        const char c = m_window.data()[0];
        if (c == ']') {
            if (afterComma)
                m_losses.add("bad_block", "info", commaOffset, "a comma stands behind the last event; nothing is lost");
            m_window.advance(1);
            return;
        }
        if (c == ',') {
            afterComma = true;
            commaOffset = m_window.offset();
            m_window.advance(1);
            continue;
        }
        afterComma = false;
        if (c != '{') {
            skipDamage("this is no event");
            continue;
        }
        m_window.require(sliceBytes);
        const size_t next = findLastEventStart({m_window.data(), std::min(sliceBytes, m_window.size())});
        if (next == kNotFound) {
            readOneEvent();
            sliceBytes = kSliceBytes;
            continue;
        }
        const size_t consumed = readSlice(next);
        if (consumed == next) {
            sliceBytes = std::min(sliceBytes * 2, kSliceBytes);
            m_window.advance(consumed);
            continue;
        }
        // The parser stopped in front of `consumed`: the end of the array, an unlucky cut, or damage. One event at a
        // time tells which.
        m_window.advance(consumed);
        sliceBytes = kSmallSliceBytes;
        if (skipSpace() && m_window.data()[0] == '{') readOneEvent();
    }
    reportCutOff("the events");
}

/// Parses the events in the first `bytes` bytes, which end in front of an event's '{'. Returns how many bytes need no
/// second look: all of them, or up to the first event that did not parse.
size_t KinetoReader::readSlice(size_t bytes) {
    char* const text = m_window.data();
    size_t comma = bytes - 1;
    while (text[comma] != ',') --comma;
    // The brackets that make a document of the slice go where they stand in the file: over the separator in front and
    // the one behind.
    char& open = text[-1];
    char& close = text[comma];
    const char savedOpen = open;
    open = '[';
    close = ']';
    const size_t length = comma + 2;

    size_t consumed = 0;  // behind the last event that was dealt with
    bool whole = false;
    simdjson::ondemand::document document;
    simdjson::ondemand::array events;
    const simdjson::padded_string_view slice(&open, length, length + TextWindow::kPadding);
    if (m_parser.iterate(slice).get(document) == simdjson::SUCCESS &&
        document.get_array().get(events) == simdjson::SUCCESS) {
        KinetoEvent event;
        bool failed = false;
        for (auto item : events) {
            simdjson::ondemand::value value;
            simdjson::ondemand::object object;
            if (item.get(value) != simdjson::SUCCESS) {
                failed = true;
                break;
            }
            const auto start = static_cast<size_t>(value.raw_json_token().data() - text);
            consumed = start;
            if (value.get_object().get(object) != simdjson::SUCCESS) {
                failed = true;
                break;
            }
            const DecodeResult result = decodeKinetoEvent(object, event);
            if (result == DecodeResult::broken) {
                failed = true;
                break;
            }
            ++m_eventCount;
            if (result == DecodeResult::skipped) continue;
            deliver(event, m_window.offset() + start);
            const char* behind = nullptr;
            if (document.current_location().get(behind) == simdjson::SUCCESS)
                consumed = static_cast<size_t>(behind - text);
        }
        const char* behind = nullptr;
        whole = !failed && (document.current_location().get(behind) != simdjson::SUCCESS || behind > &close);
        // A ']' in front of ours: the array ends inside the slice. Go on exactly there.
        if (!failed && !whole) {
            consumed = static_cast<size_t>(behind - text) - 1;
            while (consumed > 0 && isJsonSpace(text[consumed])) --consumed;
        }
    }
    open = savedOpen;
    close = ',';
    return whole ? bytes : consumed;
}

/// Length of the event at the front of the window, kNotFound when it has no end. Looks no further than a few things
/// that look like the start of another event, so that damage costs its surroundings only.
size_t KinetoReader::findEventEnd() {
    ValueScanner scanner;
    size_t scanned = 0;
    for (int starts = 0; starts < kMaxNestedStarts;) {
        const std::string_view text(m_window.data(), m_window.size());
        const size_t start = findEventStart(text, scanned + 1);
        const size_t until = start == kNotFound ? text.size() : start;
        const size_t end = scanner.feed(text.substr(scanned, until - scanned));
        if (end != kNotFound) return scanned + end;
        scanned = until;
        if (start != kNotFound) {
            ++starts;
        } else if (m_window.size() >= kMaxEventBytes || !m_window.require(m_window.size() + kSmallSliceBytes)) {
            if (m_window.size() == scanned) return kNotFound;
        }
    }
    return kNotFound;
}

/// Reads the event at the front of the window by itself, repairs its UTF-8 if need be, or skips it as damaged.
void KinetoReader::readOneEvent() {
    const size_t end = findEventEnd();
    if (end == kNotFound) {
        // Cut off, or a quote that is none swallowed the rest: the next thing that looks like an event decides.
        skipDamage("an event has no end");
        return;
    }
    size_t firstInvalid = 0;
    size_t invalid = 0;
    const simdjson::padded_string clean(sanitiseUtf8({m_window.data(), end}, firstInvalid, invalid));
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    KinetoEvent event;
    DecodeResult result = DecodeResult::broken;
    if (m_parser.iterate(clean).get(document) == simdjson::SUCCESS &&
        document.get_object().get(object) == simdjson::SUCCESS) {
        result = decodeKinetoEvent(object, event);
    }
    if (result == DecodeResult::broken) {
        skipDamage("an event is damaged");
        return;
    }
    ++m_eventCount;
    if (invalid > 0) {
        m_losses.add("bad_text", "info", m_window.offset() + firstInvalid,
                     "bytes that are no UTF-8 were replaced by U+FFFD", static_cast<int64_t>(invalid));
    }
    if (result == DecodeResult::event) deliver(event, m_window.offset());
    m_window.advance(end);
}

void KinetoReader::deliver(const KinetoEvent& event, uint64_t offset) {
    if (event.badNumber) {
        m_losses.add("bad_block", "warning", offset, "events with a time that is no number are left out");
        return;
    }
    m_sink(event);
}

/// Goes to the next position that looks like the start of an event or the end of them all, at least one byte on, or to
/// the end of the text.
void KinetoReader::skipDamage(const char* cause) {
    const uint64_t offset = m_window.offset();
    for (;;) {
        m_window.require(kSliceBytes);
        const std::string_view text(m_window.data(), m_window.size());
        size_t at = findEventStart(text, 1);
        if (at == kNotFound) at = findEventsEnd(text, m_window.atEnd());
        if (at != kNotFound) {
            m_window.advance(at);
            ++m_eventCount;
            m_losses.add("bad_block", "warning", offset, std::string(cause) + "; it is left out");
            return;
        }
        if (m_window.atEnd()) break;
        // What looks like a start or an end may lie across the end of this piece.
        m_window.advance(text.size() - std::min<size_t>(text.size() - 1, 512));
    }
    // Nothing follows: the text is cut off here, or this is the last event and its damage hides the end of the array.
    reportCutOff("the events");
    m_window.advance(m_window.size());
}

}  // namespace rankscope::collector
