// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

#include "analyzer/text/terminal_text.h"

namespace rankscope::cli {

enum class ColorMode { automatic, always, never };

// A verb speaks through it: results on stdout, messages on stderr. -q silences notes, -v adds details; errors and
// warnings always come out.
class Console {
  public:
    void setColor(ColorMode mode) { m_color = mode; }
    void setVerbosity(int level) { m_verbosity = level; }
    // Nothing at all is said: another process speaks for this one.
    void silence() { m_silent = true; }
    // Stdout goes through another program, which gives out a terminal of its own for it (Open MPI's mpirun): what
    // becomes of it is unknown.
    void passOn() { m_passedOn = true; }
    bool isTerminal(int descriptor) const;
    bool isSilent() const { return m_silent; }
    bool isQuiet() const { return m_silent || m_verbosity < 0; }
    bool isVerbose() const { return !m_silent && m_verbosity > 0; }

    void result(std::string_view text) const;   // stdout; a terminal as text alone, all else as it is
    void note(std::string_view line) const;     // stderr, unless -q
    void warning(std::string_view line) const;  // stderr
    void error(std::string_view line, std::string_view hint = {}) const;  // stderr; the hint says what to do about it
    void next(std::string_view command) const;                            // the next useful command, unless -q

    // With -v, on stderr: what the stage that ends here did, and the time since the one before ended.
    void stage(std::string_view line) const;

    bool colorOnStdout() const { return useColor(1); }

  private:
    using Clock = std::chrono::steady_clock;
    bool useColor(int descriptor) const;
    void message(text::Shade shade, std::string_view label, std::string_view line) const;

    ColorMode m_color = ColorMode::automatic;
    int m_verbosity = 0;
    bool m_silent = false;
    bool m_passedOn = false;
    mutable Clock::time_point m_told = Clock::now();  // when the last stage ended
};

}  // namespace rankscope::cli
