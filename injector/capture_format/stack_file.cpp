// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/stack_file.h"

#include <algorithm>
#include <charconv>

namespace rankscope::capture {
namespace {

constexpr std::string_view kFirstLine = "rankscope stacks 1";
constexpr std::string_view kLastLine = "end";
constexpr std::string_view kIndent = "  ";

std::string oneLine(std::string_view text) {
    std::string line(text);
    for (char& c : line)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    return line;
}

/// The text up to the next newline, which is taken off `rest`.
std::string_view nextLine(std::string_view& rest) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return line;
}

/// The word up to the next blank, which is taken off `rest`.
std::string_view nextWord(std::string_view& rest) {
    const size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return word;
}

template <typename Number>
Number number(std::string_view text, Number otherwise) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

void readHead(std::string_view key, std::string_view value, StackFile& file) {
    if (key == "rank") file.rank = number(value, int32_t{-1});
    if (key == "host") file.host = value;
    if (key == "pid") file.pid = number(value, int64_t{0});
    if (key == "capture") file.capture = value;
    if (key == "read_unix_ns") file.readUnixNs = number(value, int64_t{0});
    if (key == "capture_bytes") file.captureBytes = number(value, int64_t{-1});
    if (key == "stalled_ns") file.stalledNs = number(value, int64_t{0});
    constexpr uint64_t kNoNumber = UINT64_MAX;
    if (key == "progress" && number(value, kNoNumber) != kNoNumber) file.progress = number(value, kNoNumber);
    if (key == "note") file.notes.emplace_back(value);
}

}  // namespace

std::string formatStackFile(const StackFile& file) {
    std::string text(kFirstLine);
    const auto add = [&text](std::string_view key, std::string_view value) {
        text += '\n';
        text += key;
        text += ' ';
        text += oneLine(value);
    };
    add("rank", std::to_string(file.rank));
    add("host", file.host);
    add("pid", std::to_string(file.pid));
    add("capture", file.capture);
    add("read_unix_ns", std::to_string(file.readUnixNs));
    if (file.captureBytes >= 0) add("capture_bytes", std::to_string(file.captureBytes));
    add("stalled_ns", std::to_string(file.stalledNs));
    if (file.progress) add("progress", std::to_string(*file.progress));
    for (const std::string& note : file.notes) add("note", note);
    for (const ThreadStack& thread : file.threads) {
        text += '\n';
        const bool native = thread.language == ThreadStack::Language::native;
        add(native ? "thread" : "python",
            std::to_string(thread.tid) + (native ? std::string(" ") + thread.state : "") + ' ' + thread.name);
        for (const std::string& frame : thread.frames) text += '\n' + std::string(kIndent) + oneLine(frame);
    }
    text += "\n\n";
    text += kLastLine;
    text += '\n';
    return text;
}

std::optional<StackFile> parseStackFile(std::string_view text) {
    if (nextLine(text) != kFirstLine) return std::nullopt;
    StackFile file;
    file.isWhole = false;
    while (!text.empty()) {
        std::string_view line = nextLine(text);
        if (line == kLastLine) {
            file.isWhole = true;
            break;
        }
        if (line.starts_with(kIndent)) {
            if (file.threads.empty() || file.threads.back().frames.size() >= kMostFrames) continue;
            file.threads.back().frames.emplace_back(line.substr(kIndent.size()));
            continue;
        }
        const std::string_view key = nextWord(line);
        if (key != "thread" && key != "python") {
            if (file.threads.empty()) readHead(key, line, file);
            continue;
        }
        if (file.threads.size() >= kMostThreads) break;
        ThreadStack& thread = file.threads.emplace_back();
        thread.language = key == "thread" ? ThreadStack::Language::native : ThreadStack::Language::python;
        thread.tid = number(nextWord(line), int64_t{0});
        if (key == "thread")
            if (const std::string_view state = nextWord(line); !state.empty()) thread.state = state.front();
        thread.name = line;
    }
    return file;
}

}  // namespace rankscope::capture
