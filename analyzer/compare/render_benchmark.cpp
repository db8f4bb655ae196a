// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "analyzer/compare/renderers.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::compare {
namespace {

using Json = nlohmann::ordered_json;

Json entry(const std::string& family, const std::string& name, const char* kind, size_t repetitions, double ns) {
    // Ranks run on devices: there is no processor time to tell, and compare.py wants one.
    return {{"name", name},    {"run_name", family}, {"run_type", kind}, {"repetitions", repetitions}, {"threads", 1},
            {"iterations", 1}, {"real_time", ns},    {"cpu_time", ns},   {"time_unit", "ns"}};
}

void addSide(const char* side, const ComparedSide& runs, Json& benchmarks) {
    const std::string family = fmt::format("step/{}", side);
    const auto count = static_cast<double>(runs.runs.size());
    double sum = 0, squares = 0;
    for (size_t i = 0; i < runs.runs.size(); ++i) {
        const ComparedRun& run = runs.runs[i];
        Json one = entry(family, family, "iteration", runs.runs.size(), run.stepNs);
        one["repetition_index"] = i;
        one["iterations"] = std::max(1, run.steps);
        one["label"] = text::plainText(run.label.empty() ? run.name : run.label);
        benchmarks.push_back(one);
        sum += run.stepNs;
    }
    if (runs.runs.empty()) return;
    for (const ComparedRun& run : runs.runs) squares += (run.stepNs - sum / count) * (run.stepNs - sum / count);
    const auto aggregate = [&](const char* name, double ns) {
        Json one = entry(family, family + "_" + name, "aggregate", runs.runs.size(), ns);
        one["aggregate_name"] = name;
        one["aggregate_unit"] = "time";
        one["iterations"] = runs.runs.size();
        benchmarks.push_back(one);
    };
    aggregate("mean", sum / count);
    if (runs.runs.size() > 1) aggregate("stddev", std::sqrt(squares / (count - 1)));
}

}  // namespace

std::string renderComparisonBenchmark(const Comparison& c) {
    Json context = {{"executable", "rankscope compare"},
                    {"library_build_type", "release"},
                    {"num_cpus", 1},
                    {"caches", Json::array()}};
    for (const auto& [name, value] : c.now.environment)
        context["rankscope_" + text::plainText(name)] = text::plainText(value);
    Json benchmarks = Json::array();
    addSide("base", c.base, benchmarks);
    addSide("new", c.now, benchmarks);
    // What else takes time: means over the runs of a side.
    for (const MetricChange& metric : c.metrics) {
        if (metric.unit != "ns" || metric.name.ends_with("step"))
            continue;  // "mean step/new" would be found by whoever asks for step/new, which tells it already
        const auto add = [&](const char* side, const std::optional<double>& ns, size_t runs) {
            const std::string name = fmt::format("{}/{}", text::plainText(metric.name), side);
            if (ns) benchmarks.push_back(entry(name, name, "iteration", runs, *ns));
        };
        add("base", metric.base, 1);
        add("new", metric.now, 1);
    }
    return Json{{"context", context}, {"benchmarks", benchmarks}}.dump(2) + "\n";
}

}  // namespace rankscope::compare
