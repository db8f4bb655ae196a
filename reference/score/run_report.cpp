// SPDX-License-Identifier: Apache-2.0
#include "reference/score/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

namespace rankscope::score {
namespace {

using nlohmann::json;

// From one step's start to the next one's, so that they add up to what the job took: the rank that takes longest is
// another in each step. The last step has its own length only.
void readSteps(const json& document, RunReport& report) {
    std::vector<double> durations;
    const json& steps = document.at("steps");
    for (size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].value("warm_up", false)) continue;
        const double start = steps[i].at("start_ns").get<double>();
        durations.push_back(i + 1 < steps.size() ? steps[i + 1].at("start_ns").get<double>() - start
                                                 : steps[i].at("dur_ns").get<double>());
    }
    if (durations.empty()) return;
    std::sort(durations.begin(), durations.end());
    const size_t middle = durations.size() / 2;
    report.medianStepNs = durations.size() % 2 ? durations[middle] : (durations[middle - 1] + durations[middle]) / 2;
    report.meanStepNs =
        std::accumulate(durations.begin(), durations.end(), 0.0) / static_cast<double>(durations.size());
}

Finding readFinding(const json& entry) {
    Finding finding;
    finding.claim.id = entry.at("id").get<std::string>();
    for (const json& other : entry.value("or", json::array())) finding.claim.id += "/" + other.get<std::string>();
    finding.claim.ranks = entry.at("ranks").get<std::vector<int>>();
    std::sort(finding.claim.ranks.begin(), finding.claim.ranks.end());
    if (const auto saving = entry.find("saving_ns_per_step"); saving != entry.end() && saving->is_number())
        finding.savingNs = saving->get<double>();
    finding.severity = entry.value("severity", 0.0);
    return finding;
}

void checkBreakdown(const json& document) {
    for (const json& row : document.at("breakdown")) {
        const auto ns = [&](const char* key) { return row.at(key).get<int64_t>(); };
        if (ns("compute_ns") + ns("exposed_comm_ns") + ns("memory_ns") + ns("idle_ns") != ns("step_ns"))
            throw ScenarioFileError(
                fmt::format("the breakdown of rank {} does not add up to its steps", row.at("rank").dump()));
    }
}

}  // namespace

RunReport readReport(const std::filesystem::path& file) {
    try {
        std::ifstream stream(file);
        const json document = json::parse(stream);
        RunReport report;
        readSteps(document, report);
        checkBreakdown(document);
        for (const json& entry : document.at("findings"))
            if (entry.at("verdict") == "found") report.findings.push_back(readFinding(entry));
        if (const auto replay = document.find("replay"); replay != document.end() && replay->is_object() &&
                                                         replay->contains("error") && (*replay)["error"].is_number())
            report.replayError = (*replay)["error"].get<double>();
        return report;
    } catch (const json::exception& error) {
        throw ScenarioFileError(fmt::format("no report of schema rankscope.report/1: {}", error.what()));
    }
}

}  // namespace rankscope::score
