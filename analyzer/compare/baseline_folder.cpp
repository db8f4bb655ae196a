// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include "analyzer/compare/baseline_entries.h"
#include "analyzer/compare/summary_file.h"
#include "analyzer/text/output_file.h"

namespace rankscope::compare {

namespace fs = std::filesystem;

namespace {

/// A summary as it was saved; empty: it was not, or the file is damaged and about to be replaced.
std::optional<RunSummary> savedAs(const fs::path& file) {
    std::error_code ignored;
    try {
        if (fs::is_regular_file(file, ignored)) return readSummary(file);
    } catch (const SummaryError&) {
    }
    return std::nullopt;
}

/// The place of the next entry. Runs under the label of the newest one belong to it.
int64_t nextOrder(const fs::path& folder, const std::string& label) {
    int64_t newest = 0;
    bool isOfNewest = false;
    for (const fs::path& file : baselineFiles(folder)) {
        const std::optional<RunSummary> saved = savedAs(file);
        if (!saved || saved->savedOrder < newest) continue;
        isOfNewest = (saved->savedOrder == newest && isOfNewest) || (!label.empty() && saved->label == label);
        newest = saved->savedOrder;
    }
    return isOfNewest && newest > 0 ? newest : newest + 1;
}

/// `reduce` takes out of each what is not wanted.
std::vector<RunSummary> read(const std::vector<fs::path>& files, auto&& reduce) {
    std::vector<RunSummary> runs;
    for (const fs::path& file : files) {
        try {
            RunSummary run = readSummary(file);
            reduce(run);
            runs.push_back(std::move(run));
        } catch (const SummaryError&) {
            std::error_code ignored;
            if (fs::exists(fs::symlink_status(file, ignored))) throw;
        }
    }
    sortByTime(runs);
    return runs;
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
    return read(files, [](RunSummary&) {});
}

std::vector<RunSummary> readBaselineHeads(const fs::path& folder) {
    return read(baselineFiles(folder), [](RunSummary& run) {
        run.roles = {};
        run.traffic = {};
        run.kernels = {};
        run.losses = {};
        run.pathTransferNs = {};
    });
}

std::vector<RunSummary> readWhole(const std::vector<RunSummary>& heads) {
    std::vector<fs::path> files;
    for (const RunSummary& head : heads) files.emplace_back(head.file);
    return readSavedRuns(files);
}

std::vector<fs::path> saveToBaseline(const std::vector<RunSummary>& runs, const fs::path& folder) {
    fs::create_directories(folder);
    std::map<std::string, int64_t> orders;  // by label
    std::vector<fs::path> files;
    for (const RunSummary& run : runs) {
        const fs::path file = folder / (summaryId(run) + ".json");
        RunSummary saved = run;
        const std::optional<RunSummary> before = savedAs(file);
        if (before && saved.label.empty()) saved.label = before->label;
        if (before && saved.label == before->label) {
            saved.savedOrder = before->savedOrder;
            saved.beginsLevel = before->beginsLevel;
        } else {
            saved.beginsLevel = false;
            auto order = orders.find(saved.label);
            if (order == orders.end()) order = orders.emplace(saved.label, nextOrder(folder, saved.label)).first;
            saved.savedOrder = order->second;
        }
        text::writeOutputFile(renderSummary(saved), file);
        files.push_back(file);
    }
    return files;
}

std::vector<fs::path> acceptInBaseline(const fs::path& folder, const std::string& label) {
    std::vector<RunSummary> runs = readBaseline(folder);
    const std::string wanted = label.empty() && !runs.empty() ? runs.back().label : label;
    std::vector<fs::path> accepted;
    for (RunSummary& run : runs) {
        // Without any label an entry is the runs that were saved together.
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
    std::vector<std::pair<const RunSummary*, size_t>> kinds;  // the youngest run of a kind, and how many are kept
    std::vector<fs::path> removed;
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        const auto isAlike = [&](const auto& kind) { return differencesOfKind(*run, *kind.first, {}).empty(); };
        auto kind = std::ranges::find_if(kinds, isAlike);
        if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {&*run, 0});
        if (kind->second++ < keep) continue;
        fs::remove(run->file);
        removed.push_back(run->file);
    }
    return removed;
}

}  // namespace rankscope::compare
