// SPDX-License-Identifier: Apache-2.0
// Prints what the window would show of an analysed run, as JSON: findings, lines of the bandwidth chart, the pipeline's
// bubble.
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "collector/store/reader.h"
#include "gui/charts/series/bandwidth_chart.h"
#include "gui/charts/series/pipeline_chart.h"
#include "gui/session/run_info.h"

namespace {

using Json = nlohmann::ordered_json;

Json findings(const rankscope::gui::RunInfo& run) {
    Json all = Json::array();
    for (const rankscope::gui::FindingInfo& finding : run.findings) {
        Json evidence = Json::array();
        for (const rankscope::gui::EvidenceLink& link : finding.evidence)
            evidence.push_back({{"table", link.table}, {"id", link.rowId}});
        all.push_back({{"id", finding.diagnosis},
                       {"verdict", finding.verdict},
                       {"severity", finding.severity},
                       {"saving_ns", finding.savingNs ? Json(*finding.savingNs) : Json(nullptr)},
                       {"cause", finding.cause},
                       {"evidence", evidence}});
    }
    return all;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return 2;
    try {
        rankscope::store::TraceReader reader(arguments[1]);
        Json json{
            {"findings", findings(rankscope::gui::readRunInfo(reader))}, {"lines", Json::array()}, {"bubble", nullptr}};
        for (const rankscope::gui::ScatterLine& line : rankscope::gui::bandwidthChart(reader).lines)
            json["lines"].push_back(line.name);
        const rankscope::gui::PipelineChart pipeline = rankscope::gui::PipelineCharts(reader).chart(reader, 0, -1);
        if (pipeline.nothing.empty()) json["bubble"] = pipeline.bubble;
        std::puts(json.dump().c_str());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 3;
    }
    return 0;
}
