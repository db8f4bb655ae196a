// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/stack_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "collector/ingest/beside_files.h"
#include "injector/capture_format/reader.h"
#include "injector/capture_format/stack_file.h"
#include "injector/capture_format/watch_counters.h"

namespace rankscope::collector {
namespace {

namespace fs = std::filesystem;

/// A rank of a thousand threads with a hundred frames each has 8 MiB.
constexpr uint64_t kMostBytes = 32 << 20;

/// Names of the captures in that folder of which calls are in .detail files, without their endings.
std::set<std::string> capturesWithDetail(const fs::path& folder) {
    std::set<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
        if (const fs::path& file = entry->path(); file.extension() == ".detail")
            names.insert(file.stem().stem().string());  // NAME.<k>.detail
    return names;
}

/// Whether the capture file tells that the process recorded no progress after that count of it.
bool stayed(const fs::path& path, uint64_t progress) {
    capture::FileHeader header{};
    capture::WatchCounters counters{};
    return capture::readWatched(path.c_str(), header, counters) && counters.progress <= progress;
}

/// The newest time below that offset of a capture file in virtual time; nothing of any other.
std::optional<int64_t> lastCallBefore(const fs::path& path, int64_t offset) {
    try {
        if (capture::CaptureReader(path.string()).header().virtualGpu == 0) return std::nullopt;
    } catch (const capture::CaptureError&) {  // said by whoever reads it whole
        return std::nullopt;
    }
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;
    capture::LossList ignored;
    std::optional<int64_t> lastNs;
    for (capture::BlockScanner blocks(file, path.string(), capture::kFileHeaderBytes, ignored);
         blocks.next() && static_cast<int64_t>(blocks.blockOffset()) < offset;)
        lastNs = std::max(lastNs.value_or(0), blocks.header().highWaterNs);
    return lastNs;
}

std::string linesOf(const std::vector<std::string>& frames) {
    std::string lines;
    for (const std::string& frame : frames) lines += (lines.empty() ? "" : "\n") + frame;
    return lines;
}

}  // namespace

std::vector<ToldStack> readStackFiles(const std::vector<fs::path>& runDirectories, std::vector<store::Loss>& losses) {
    std::vector<ToldStack> stacks;
    std::map<fs::path, std::set<std::string>> withDetail;  // by folder
    for (const fs::path& path : textFilesIn(runDirectories, "stacks")) {
        const std::string name = path.filename().string();
        const auto lose = [&](store::Severity severity, std::string message) {
            losses.push_back({0, "stacks", severity, {}, "collector", 1, "stacks/" + name, {}, std::move(message)});
        };
        std::error_code ignored;
        if (const auto bytes = fs::file_size(path, ignored); !ignored && bytes > kMostBytes) {
            lose(store::Severity::warning,
                 fmt::format("stacks/{} is too large ({} MiB, and at most {} are read): it is left out", name,
                             bytes >> 20, kMostBytes >> 20));
            continue;
        }
        const auto file = capture::parseStackFile(wholeText(path));
        if (!file) {
            lose(store::Severity::warning, fmt::format("stacks/{} is no file of stacks: it is left out", name));
            continue;
        }
        if (!file->isWhole)
            lose(store::Severity::warning, fmt::format("stacks/{} is cut off: stacks are missing", name));
        for (const std::string& note : file->notes)
            lose(store::Severity::info, fmt::format("where process {} stood still: {}", file->pid, note));
        const std::string captureName = fs::path(file->capture).filename().string();
        std::optional<int64_t> recordedNs;
        const fs::path capture = path.parent_path().parent_path() / "capture" / captureName;
        // In light mode with a ring bytes of the capture file tell of no calls (FORMAT.md).
        const auto [known, isNew] = withDetail.try_emplace(capture.parent_path());
        if (isNew) known->second = capturesWithDetail(capture.parent_path());
        const bool byProgress = file->progress && known->second.contains(capture.stem().string());
        if (file->captureBytes >= 0 && !(byProgress && stayed(capture, *file->progress)))
            recordedNs = lastCallBefore(capture, file->captureBytes);
        for (const capture::ThreadStack& thread : file->threads) {
            const bool native = thread.language == capture::ThreadStack::Language::native;
            ToldStack told{captureName, file->readUnixNs, {}, recordedNs};
            told.row.stalledNs = file->stalledNs;
            told.row.tid = thread.tid;
            told.row.name = thread.name;
            if (native) told.row.state = std::string(1, thread.state);
            told.row.language = native ? "native" : "python";
            told.row.frames = linesOf(thread.frames);
            stacks.push_back(std::move(told));
        }
    }
    std::ranges::stable_sort(stacks, {}, &ToldStack::readUnixNs);
    return stacks;
}

}  // namespace rankscope::collector
