// SPDX-License-Identifier: Apache-2.0
// Prints a comparison that has everything in one of the formats: sample_comparison plain|hostile|many|empty FORMAT.
#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "analyzer/compare/renderers.h"

namespace {

using namespace rankscope;

// Everything that is markup, an end of something, or no text at all in some format.
constexpr const char* kHostile =
    "</script><script>pwned=1</script><img src=x onerror=pwned=2> ]]> -->\"'&amp;`|*_[a](http://b)\\ @all "
    "%0A::error::x ${{x}} $(x) \n# EOF\n::error::y\r\n\t\x01\x1b[31m\x7f \xff\xc0\xaf \xed\xa0\x80"
    "\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xae\xef\xbf\xbf end";

compare::ComparedRun run(const std::string& name, double stepNs) {
    compare::ComparedRun run;
    run.name = name;
    run.label = "label of " + name;
    run.file = name + "/trace.db";
    run.steps = 8;
    run.stepNs = stepNs;
    for (int i = 0; i < run.steps; ++i) run.stepsNs.push_back(stepNs * (1 + 0.002 * (i % 3 - 1)));
    return run;
}

compare::TrafficSummary traffic(double count, double bytes, double transferNs, double waitNs,
                                const std::string& algorithm, const std::string& protocol) {
    compare::TrafficSummary side;
    side.count = count;
    side.bytes = bytes;
    side.transferNs = transferNs;
    side.waitNs = waitNs;
    side.busbw = bytes > 0 ? 1e11 : 0;
    side.algorithm = algorithm;
    side.protocol = protocol;
    return side;
}

compare::FindingChange finding(compare::FindingStatus status, const std::string& id, const std::string& words) {
    compare::FindingChange change;
    change.status = status;
    change.id = id;
    change.title = "straggler rank" + words;
    change.where = "rank 3 (dp 3)" + words;
    change.ranks = {3};
    change.cause = "rank 3 computes 1.50x as long as its peers" + words;
    change.fix = {"check the device of rank 3" + words, "move the rank"};
    if (status != compare::FindingStatus::isNew) change.base = {3, 3, true, 10e6, 9e6};
    if (status != compare::FindingStatus::gone) change.now = {3, 3, true, 147e6, 140e6};
    return change;
}

/// Compute, then communication, on two ranks.
report::StepOverview picture(int64_t lengthNs) {
    const std::string half(report::StepOverview::kColumns / 2, report::overview::kCompute),
        nothing(report::StepOverview::kColumns / 2, report::overview::kNothing),
        transfer(report::StepOverview::kColumns / 2, report::overview::kTransfer);
    return {4, 0, lengthNs, {{0, half + nothing, nothing + transfer}, {3, half + nothing, nothing + transfer}}};
}

compare::Comparison sample(const std::string& words) {
    compare::Comparison c;
    c.base.runs = {run("base-1" + words, 300.5e6), run("base-2" + words, 301e6), run("base-3" + words, 299e6)};
    c.now.runs = {run("new-1" + words, 451e6), run("new-2" + words, 449e6),
                  run("new-2" + words, 450e6)};  // a name given twice
    c.base.environment = c.now.environment = {{"world_size", "8"}, {"gpu", "H200" + words}, {"nccl", "2.28.9"}};
    c.base.layout = c.now.layout = "dp 8" + words;
    c.base.hosts = c.now.hosts = {"node0" + words};
    compare::StepTimeChange& step = c.step;
    step = {compare::StepVerdict::regression, "the step is 50.0 % slower (49.1 % to 50.9 %)" + words, 300e6, 450e6,
            1.5};
    step.interval = {1.491, 1.509};
    step.smallestVisible = 0.012;
    step.pValue = 1e-6;
    step.threshold = 0.01;
    step.estimator = "trimmed mean";
    step.betweenRuns = 0.003;
    step.noiseSource = "runs of both sides";
    c.causes = {{"straggler",
                 "rank 3 computes longer" + words,
                 "RS301",
                 "rank 3" + words,
                 {3},
                 147e6,
                 {"the same kernels take 1.5x" + words}}};
    c.attribution = {{compare::StepPart::compute, "compute of rank 3" + words, 147e6, "rank 3", {3}, {"gemm" + words}},
                     {compare::StepPart::rest, "what nothing explains", 3e6}};
    for (int rank = 0; rank < 8; ++rank) {
        const double slowNs = rank == 3 ? 147e6 : 0;
        c.breakdown.push_back({fmt::format("dp {}{}", rank, words), rank,
                               compare::BreakdownSide{300e6, 250e6, 20e6, 20e6, 10e6, 5e6, 15e6},
                               compare::BreakdownSide{450e6, 250e6 + slowNs, 20e6, 20e6, 160e6 - slowNs, 5e6, 15e6}});
    }
    c.base.overview = picture(300'000'000);
    c.now.overview = picture(450'000'000);
    c.base.overviewRun = "base-1" + words;
    c.now.overviewRun = "new-1" + words;
    c.metrics = {
        {"mean step", "ns", false, 300e6, 450e6, 150e6, {}, 0.001, "t", true, ""},
        {"exposed communication" + words, "ns", false, 30e6, 150e6, 120e6, {}, 0.001, "t", true, ""},
        {"overlap" + words, "share", true, 0.8, 0.4, -0.4, {}, 0.2, "t", false, ""},
        {"busbw of all_reduce", "bytes/s", true, 100e9, 90e9, -10e9, {}, {}, "", false, "other algorithm" + words},
        {"messages", "count", false, 40, 40, 0, {}, {}, "", false, ""},
        {"throughput", "steps/s", true, 3.3, 2.2, -1.1, {}, 0.001, "t", true, ""},
        {"unknown", "ns", false, {}, {}, {}, {}, {}, "", false, ""}};
    c.collectives = {{"gradients" + words, "all_reduce", 8, "16 MiB to 64 MiB",
                      traffic(12, 3e8, 9e6, 1e6, "ring", "simple"), traffic(12, 3e8, 9e6, 9e7, "tree", "ll128")},
                     {"control", "broadcast", 8, "unknown size", {}, traffic(1, 0, 0, 0, "", "")}};
    c.kernels = {{"gemm" + words, compare::KernelSummary{"", 100, 2e8}, compare::KernelSummary{"", 100, 3e8}, 1e8},
                 {"new kernel", {}, compare::KernelSummary{"", 1, 1e6}, 1e6}};
    c.findings = {
        finding(compare::FindingStatus::isNew, "RS301", words), finding(compare::FindingStatus::worse, "RS203", words),
        finding(compare::FindingStatus::better, "RS202", words), finding(compare::FindingStatus::gone, "RS401", words),
        finding(compare::FindingStatus::same, "RS101", words)};
    c.findings[0].failed = true;
    c.findings[1].allowed = true;
    c.incomparable = {{"driver" + words, "550.1", "", false, "noted only"}};
    c.oddRuns = {{"new",
                  "new-1" + words,
                  "c34" + words,
                  451e6,
                  {449e6, 450e6},
                  1.003,
                  {3},
                  {"node0" + words},
                  "RS301",
                  "straggler rank" + words,
                  "rank 3 computes longer" + words}};
    c.withoutOdd = c.step;
    c.history = compare::BaselineHistory{.runs = 7,
                                         .leftOut = {{"base-0" + words, "", "40.0 % slower" + words}},
                                         .otherKinds = 3,
                                         .otherKindIs = "world size is 4 and 8" + words,
                                         .levels = {{310e6, 3, 1, "", "c1" + words}, {300e6, 3, 1, "c2" + words, ""}}};
    c.gate = {compare::GateConclusion::failed,
              true,
              true,
              1,
              {"regression", "new-finding"},
              {step.reason, "new finding: RS301" + words},
              {"RS203" + words},
              {"a notice" + words}};
    c.losses = {{"new", "new-1" + words, "torn_tail", "warning", 2, "records are missing" + words}};
    c.notes = {"a run is given twice" + words};
    return c;
}

compare::Comparison many() {
    compare::Comparison c = sample("");
    const std::string longName(2000, 'x');
    c.base.environment["gpu"] = c.now.environment["gpu"] = longName;
    while (c.findings.size() < 10'000) {
        c.findings.push_back(
            finding(c.findings.size() % 2 == 0 ? compare::FindingStatus::isNew : compare::FindingStatus::same, "RS301",
                    fmt::format(" {}", c.findings.size())));
        c.findings.back().failed = c.findings.back().status == compare::FindingStatus::isNew;
    }
    for (int i = 0; i < 3000; ++i) {
        c.kernels.push_back({fmt::format("kernel {} {}", i, longName), compare::KernelSummary{"", 1, 1e6},
                             compare::KernelSummary{"", 1, 2e6}, 1e6});
        c.gate.reasons.push_back(fmt::format("reason {} {}", i, longName));
        c.attribution.push_back({compare::StepPart::compute, fmt::format("part {} {}", i, longName), 1.0});
        c.attribution.front().ns -= 1.0;  // they still add up
    }
    return c;
}

compare::Comparison empty() {
    compare::Comparison c;
    c.step.reason = "there is no base to compare with";
    return c;
}

}  // namespace

int main(int argc, char** argv) {
    using Render = std::function<std::string(const compare::Comparison&)>;
    const std::map<std::string, Render> formats = {
        {"text", [](const compare::Comparison& c) { return compare::renderComparisonText(c); }},
        {"json", compare::renderComparisonJson},
        {"md", compare::renderComparisonMarkdown},
        {"junit", compare::renderComparisonJunit},
        {"sarif", compare::renderComparisonSarif},
        {"github", compare::renderComparisonAnnotations},
        {"benchmark", compare::renderComparisonBenchmark},
        {"openmetrics", compare::renderComparisonOpenMetrics},
        {"html", compare::renderComparisonHtml}};
    const std::map<std::string, std::function<compare::Comparison()>> samples = {
        {"plain", [] { return sample(""); }},
        {"hostile", [] { return sample(kHostile); }},
        {"many", many},
        {"empty", empty}};
    if (argc != 3 || formats.count(argv[2]) == 0 || samples.count(argv[1]) == 0) return 2;
    const std::string text = formats.at(argv[2])(samples.at(argv[1])());
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
