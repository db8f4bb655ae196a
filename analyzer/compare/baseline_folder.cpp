// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analyzer/compare/summary_file.h"
#include "analyzer/text/output_file.h"

namespace rankscope::compare {

namespace fs = std::filesystem;

namespace {

/// Empty: it was not saved, or the file is damaged and about to be replaced.
std::string savedLabel(const fs::path& file) {
    std::error_code ignored;
    try {
        return fs::is_regular_file(file, ignored) ? readSummary(file).label : "";
    } catch (const SummaryError&) {
        return {};
    }
}

}  // namespace

std::vector<fs::path> baselineFiles(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code ignored;
    if (fs::status(folder, ignored).type() == fs::file_type::not_found) return files;
    const auto isHidden = [](const fs::path& file) { return file.filename().string().starts_with('.'); };
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().extension() == ".json" && entry.is_regular_file(ignored) && !isHidden(entry.path()))
            files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

std::vector<RunSummary> readBaseline(const fs::path& folder) {
    return readSavedRuns(baselineFiles(folder));
}

std::vector<RunSummary> readSavedRuns(const std::vector<fs::path>& files) {
    std::vector<RunSummary> runs;
    for (const fs::path& file : files) {
        try {
            runs.push_back(readSummary(file));
        } catch (const SummaryError&) {
            std::error_code ignored;
            if (fs::exists(fs::symlink_status(file, ignored))) throw;
        }
    }
    std::ranges::stable_sort(runs, {}, &RunSummary::startUnixNs);
    return runs;
}

fs::path saveToBaseline(const RunSummary& summary, const fs::path& folder) {
    fs::create_directories(folder);
    const fs::path file = folder / (summaryId(summary) + ".json");
    RunSummary labelled = summary;
    if (labelled.label.empty()) labelled.label = savedLabel(file);
    text::writeOutputFile(renderSummary(labelled), file);
    return file;
}

std::vector<fs::path> acceptInBaseline(const fs::path& folder, const std::string& label) {
    std::vector<RunSummary> runs = readBaseline(folder);
    const std::string wanted = label.empty() && !runs.empty() ? runs.back().label : label;
    std::vector<fs::path> accepted;
    for (RunSummary& run : runs) {
        // Without any label an entry is one run.
        if (run.label != wanted || (wanted.empty() && &run != &runs.back())) continue;
        run.beginsLevel = true;
        text::writeOutputFile(renderSummary(run), run.file);
        accepted.push_back(run.file);
    }
    return accepted;
}

std::vector<fs::path> removeFromBaseline(const fs::path& folder, const std::string& label) {
    std::vector<fs::path> removed;
    for (const RunSummary& run : readBaseline(folder)) {
        if (run.label != label) continue;
        fs::remove(run.file);
        removed.push_back(run.file);
    }
    return removed;
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

}  // namespace rankscope::compare
