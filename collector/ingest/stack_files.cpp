// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/stack_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "injector/capture_format/stack_file.h"

namespace rankscope::collector {
namespace {

namespace fs = std::filesystem;

/// A rank of a thousand threads with a hundred frames each has 8 MiB.
constexpr uint64_t kMostBytes = 32 << 20;

std::vector<fs::path> filesIn(const std::vector<fs::path>& runDirectories) {
    std::vector<fs::path> files;
    std::error_code ignored;
    for (const fs::path& directory : runDirectories)
        for (const auto& entry : fs::directory_iterator(directory / "stacks", ignored))
            if (entry.path().extension() == ".txt" && entry.is_regular_file(ignored)) files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

std::string textOf(const fs::path& path) {
    std::error_code ignored;
    if (fs::file_size(path, ignored) > kMostBytes) return {};
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string linesOf(const std::vector<std::string>& frames) {
    std::string lines;
    for (const std::string& frame : frames) lines += (lines.empty() ? "" : "\n") + frame;
    return lines;
}

}  // namespace

std::vector<ToldStack> readStackFiles(const std::vector<fs::path>& runDirectories, std::vector<store::Loss>& losses) {
    std::vector<ToldStack> stacks;
    for (const fs::path& path : filesIn(runDirectories)) {
        const std::string name = path.filename().string();
        const auto lose = [&](store::Severity severity, std::string message) {
            losses.push_back({0, "stacks", severity, {}, "collector", 1, "stacks/" + name, {}, std::move(message)});
        };
        const auto file = capture::parseStackFile(textOf(path));
        if (!file) {
            lose(store::Severity::warning, fmt::format("stacks/{} is no file of stacks: it is left out", name));
            continue;
        }
        if (!file->isWhole)
            lose(store::Severity::warning, fmt::format("stacks/{} is cut off: stacks are missing", name));
        for (const std::string& note : file->notes)
            lose(store::Severity::info, fmt::format("where process {} stood still: {}", file->pid, note));
        for (const capture::ThreadStack& thread : file->threads) {
            const bool native = thread.language == capture::ThreadStack::Language::native;
            ToldStack told{fs::path(file->capture).filename().string(), file->readUnixNs, {}};
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
