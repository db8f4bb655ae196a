// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/baseline_folder.h"

#include <algorithm>
#include <fstream>

#include "analyzer/compare/summary_file.h"

namespace rankscope::analyzer {

namespace fs = std::filesystem;

std::vector<fs::path> baselineFiles(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored))
        if (entry.path().extension() == ".json" && entry.is_regular_file(ignored)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

std::vector<RunSummary> readBaseline(const fs::path& folder) {
    std::vector<RunSummary> runs;
    for (const fs::path& file : baselineFiles(folder)) runs.push_back(readSummary(file));
    std::stable_sort(runs.begin(), runs.end(), [](const RunSummary& a, const RunSummary& b) { return a.startUnixNs < b.startUnixNs; });
    return runs;
}

fs::path saveToBaseline(const RunSummary& summary, const fs::path& folder) {
    fs::create_directories(folder);
    const fs::path file = folder / (summaryId(summary) + ".json"), beside = file.string() + ".new";
    std::ofstream stream(beside, std::ios::binary);
    stream << renderSummary(summary);
    stream.close();
    if (!stream) {
        std::error_code ignored;
        fs::remove(beside, ignored);
        throw fs::filesystem_error("cannot write", file, std::make_error_code(std::errc::io_error));
    }
    fs::rename(beside, file);
    return file;
}

std::vector<fs::path> pruneBaseline(const fs::path& folder, size_t keep) {
    const std::vector<RunSummary> runs = readBaseline(folder);
    std::vector<fs::path> removed;
    for (size_t i = 0; i + keep < runs.size(); ++i) {
        fs::remove(runs[i].file);
        removed.push_back(runs[i].file);
    }
    return removed;
}

}  // namespace rankscope::analyzer
