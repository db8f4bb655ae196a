// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "analyzer/cli/console/errors.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::cli {
namespace {

constexpr std::string_view kNextLine = "  | ";
constexpr size_t kLongestMessage = 8000;  // bytes: a name may be anything

// Names in it may hold escape sequences, or line ends behind which a service reads commands (::error::), blanks before
// them or not. A next line of our own begins with a bar, which no command does: what a name puts behind one is not read
// either.
std::string messageText(std::string_view line) {
    std::string text = text::shortened(text::plainText(line), kLongestMessage);
    for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
        if (text.compare(at + 1, kNextLine.size(), kNextLine) != 0) text[at] = ' ';
    return text;
}

}  // namespace

bool Console::isTerminal(int descriptor) const {
    return !m_passedOn && isatty(descriptor) == 1;
}

bool Console::useColor(int descriptor) const {
    if (m_color != ColorMode::automatic) return m_color == ColorMode::always;
    const char* noColor = std::getenv("NO_COLOR");
    if (noColor && *noColor) return false;
    const char* term = std::getenv("TERM");
    return isTerminal(descriptor) && term && std::string_view(term) != "dumb";
}

void Console::message(text::Shade shade, std::string_view label, std::string_view line) const {
    if (m_silent) return;
    const text::Painter paint(!label.empty() && useColor(STDERR_FILENO));
    const std::string text = "rankscope: " + paint(shade, label) + messageText(line) + "\n";
    // One write, so that the lines of several ranks' wrappers do not mix.
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

void Console::result(std::string_view text) const {
    if (m_silent) return;
    const std::string shown = isTerminal(STDOUT_FILENO) ? text::terminalText(text, colorOnStdout()) : std::string();
    if (isTerminal(STDOUT_FILENO)) text = shown;
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (written && std::fflush(stdout) == 0) return;
    throw VerbError(kExitInput, fmt::format("cannot write to stdout: {}", std::strerror(errno)));
}

void Console::note(std::string_view line) const {
    if (m_verbosity >= 0) message(text::Shade::plain, {}, line);
}

void Console::stage(std::string_view line) const {
    if (!isVerbose()) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - m_told).count();
    message(text::Shade::plain, {}, fmt::format("{} ({})", line, text::durationText(seconds * 1e9)));
    m_told = Clock::now();
}

void Console::warning(std::string_view line) const {
    message(text::Shade::yellow, "warning: ", line);
}

void Console::error(std::string_view line, std::string_view hint) const {
    message(text::Shade::boldRed, "error: ", line);
    if (!hint.empty()) message(text::Shade::cyan, "hint: ", hint);
}

void Console::next(std::string_view command) const {
    if (m_verbosity >= 0) message(text::Shade::cyan, "next: ", command);
}

}  // namespace rankscope::cli
