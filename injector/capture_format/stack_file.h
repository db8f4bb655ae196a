// SPDX-License-Identifier: Apache-2.0
// What the threads of a process stood in when it got on no more: NAME/stacks/*.txt, text for people and for the
// collector. STACKS.md tells the same in prose. Offline: written by the wrapper, never in the job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::capture {

/// One thread's stack in one language.
struct ThreadStack {
    enum class Language : uint8_t { native, python };
    Language language = Language::native;
    int64_t tid = 0;
    char state = '?';  ///< as in /proc/PID/stat: R runs, S sleeps, D waits for a device, T is stopped; '?': not told
    std::string name;
    std::vector<std::string> frames;  ///< innermost first, "function+0xoffset (library)" or "function (file:line)"
};

struct StackFile {
    int32_t rank = -1;  ///< as its capture file began with; -1 unknown. The collector goes by `capture`
    std::string host;
    int64_t pid = 0;
    std::string capture;               ///< name of the capture file of the process
    int64_t readUnixNs = 0;            ///< CLOCK_REALTIME when its threads were read
    int64_t captureBytes = -1;         ///< of that file then: what was recorded before lies below; -1 not told
    int64_t stalledNs = 0;             ///< how long it had recorded no progress then
    std::optional<uint64_t> progress;  ///< WatchCounters::progress of that file then: whether it got on later
    std::vector<std::string> notes;    ///< what could not be read, and why
    std::vector<ThreadStack> threads;
    bool isWhole = true;  ///< false: the end of the file is missing
};

/// The text of the file. Control characters in names become '?'.
std::string formatStackFile(const StackFile& file);

/// Nothing for what does not begin as such a file. Lines that it does not know are skipped. What is beyond kMostThreads
/// threads and kMostFrames frames of each is left out.
std::optional<StackFile> parseStackFile(std::string_view text);

/// Of a process, and of a thread: what a busy rank of PyTorch has, ten times over.
inline constexpr size_t kMostThreads = 4096;
inline constexpr size_t kMostFrames = 256;

}  // namespace rankscope::capture
