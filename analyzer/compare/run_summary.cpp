// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <span>

#include "analyzer/costs/algorithm_support.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/shared_plays.h"
#include "analyzer/replay/critical_path.h"
#include "analyzer/report/analyze.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "collector/store/vocabulary.h"

namespace rankscope::compare {
namespace {

/// Degrees that are told with some certainty: another guess is no other layout.
std::string layoutText(const facts::Layout& layout) {
    constexpr double kCertain = 0.7;
    std::string text;
    for (const auto& [name, degree] :
         {std::pair{"dp", layout.dp}, {"tp", layout.tp}, {"pp", layout.pp}, {"ep", layout.ep}}) {
        const auto confidence = layout.confidences.find(name);
        if (degree && *degree > 1 && (confidence == layout.confidences.end() || confidence->second >= kCertain))
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, *degree);
    }
    return text;
}

/// Kinds of loss after which times are not what they were; what is merely said (severity info) compares well.
std::string lossKinds(const report::Report& report) {
    std::set<std::string> kinds;
    for (const report::LossRow& loss : report.losses)
        if (loss.severity != "info" && loss.kind != "link_peaks") kinds.insert(loss.kind);
    return text::joined(kinds);
}

std::string scheduleText(const facts::Layout& layout) {
    if (layout.pipelines.empty()) return {};
    const facts::Pipeline& first = layout.pipelines.front();
    std::string text = fmt::format("{}, {} micro-batches", layout.schedule, first.microBatches);
    if (first.virtualStages > 1) text += fmt::format(", {} virtual stages", first.virtualStages);
    return text;
}

std::map<std::string, std::string> environmentOf(const job::Analysis& analysis, const report::Report& report) {
    const facts::TraceFacts& facts = analysis.facts;
    std::map<std::string, int> devices, hosts;
    std::set<std::string> missing, perHost;
    for (const facts::RankFacts& rank : facts.ranks) {
        if (!rank.device.empty()) ++devices[rank.device];
        ++hosts[rank.host];
    }
    std::set<std::string> gpus;
    for (const auto& [name, count] : devices)
        gpus.insert(devices.size() == 1 ? name : fmt::format("{} x {}", count, name));
    for (const auto& [host, count] : hosts) perHost.insert(std::to_string(count));
    for (const auto& [rank, sources] : facts.sourcesNotLive) missing.insert(sources.begin(), sources.end());
    std::map<std::string, std::string> environment;
    environment["world_size"] = std::to_string(report.run.worldSize.value_or(
        static_cast<int>(facts.ranks.size())));  // of the job, however few of its ranks were imported
    environment["gpu"] = text::joined(gpus);
    if (const auto nccl = costs::ncclVersionOf(facts)) environment["nccl"] = nccl->text();
    environment["cuda"] = facts.text("cuda_version");
    environment["source"] = report.run.source;
    environment["virtual"] = report.run.isVirtual ? "yes" : "no";
    environment["step_source"] = report.run.stepSource;
    environment["missing_sources"] = text::joined(missing);
    environment["loss"] = lossKinds(report);
    environment["layout"] = layoutText(analysis.layout);
    environment["zero"] = analysis.layout.zero ? std::to_string(*analysis.layout.zero) : "";
    environment["schedule"] = scheduleText(analysis.layout);
    environment["ranks_per_host"] = text::joined(perHost);
    return environment;
}

/// The analysed steps in order: means over ranks, so that they add up to the run's time.
std::vector<double> stepTimesOf(const job::Analysis& analysis) {
    std::vector<double> times;
    if (analysis.facts.wholeRunIsOneStep) return times;
    for (const int step : analysis.steps) {
        double sum = 0;
        int ranks = 0;
        for (const facts::RankSummary& rank : analysis.ranks) {
            const facts::StepWindow* window = analysis.window(rank.rank, step);
            if (!window) continue;
            sum += static_cast<double>(window->durNs);
            ++ranks;
        }
        if (ranks > 0 && sum > 0) times.push_back(sum / ranks);
    }
    return times;
}

RoleSummary roleOf(const job::Analysis& analysis, const facts::RankSummary& rank, const report::BreakdownRow& row,
                   double steps) {
    RoleSummary role;
    role.rank = rank.rank;
    role.stage = analysis.layout.stageOf(rank.rank);
    role.host = row.host;
    const facts::Attribution& total = row.total;
    const auto perStep = [&](int64_t ns) { return static_cast<double>(ns) / steps; };
    role.stepNs = perStep(total.stepNs);
    role.computeNs = perStep(total.computeNs);
    role.exposedWaitNs = perStep(total.exposedWaitNs);
    role.exposedTransferNs = perStep(total.exposedTransferNs);
    role.overlappedCommNs = perStep(total.overlappedCommNs);
    role.memoryNs = perStep(total.memoryNs);
    role.idleNs = perStep(total.idleNs);
    for (const auto& [cause, ns] : row.idleByCauseNs)
        if (ns > 0) role.idleByCauseNs[cause] = perStep(ns);
    for (const facts::HostStall& stall : rank.hostStalls)
        if (stall.step >= 0)
            role.stallByCauseNs[std::string(toText(stall.cause))] += static_cast<double>(stall.stallNs) / steps;
    for (const auto& [step, ns] : rank.contention.lostNs) role.slowedNs += ns / steps;
    for (const facts::KernelStatistics& kernel : rank.kernels) role.kernels += kernel.count / steps;
    for (const facts::CommTask& task : rank.communication)
        if (task.step >= 0 && task.pointToPoint())
            role.receiveWaitNs += static_cast<double>(task.exposedWaitNs) / steps;
    return role;
}

void setRoles(const job::Analysis& analysis, const report::Report& report, RunSummary& summary) {
    const std::map<int, std::string> names = rankRoles(analysis);
    std::map<int, const report::BreakdownRow*> rows;
    for (const report::BreakdownRow& row : report.breakdown) rows[row.rank] = &row;
    for (const facts::RankSummary& rank : analysis.ranks) {
        const auto row = rows.find(rank.rank);
        const facts::RankFacts* facts = analysis.facts.findRank(rank.rank);
        const auto steps =
            std::ranges::count_if(facts->steps, [](const facts::StepWindow& step) { return !step.warmUp; });
        if (row == rows.end() || steps == 0) continue;
        RoleSummary role = roleOf(analysis, rank, *row->second, static_cast<double>(steps));
        role.role = names.at(rank.rank);
        summary.roles.push_back(std::move(role));
    }
}

void setPath(const job::Analysis& analysis, RunSummary& summary) {
    summary.hasPath = analysis.replay.available() && !analysis.replay.path.empty();
    if (!summary.hasPath) return;
    for (const replay::PathShare& share : analysis.replay.path)
        for (RoleSummary& role : summary.roles)
            if (role.rank == share.rank) role.pathNs[std::string(toText(share.category))] += share.nsPerStep;
    for (const replay::PathTransfer& transfer :
         replay::criticalTransfers(analysis.replay.graph, analysis.replay.unchanged, analysis.replay.steps))
        summary
            .pathTransferNs[trafficName(std::string(toText(analysis.layout.role(transfer.communicatorId, transfer.op))),
                                        std::string(store::toText(transfer.op)))] += transfer.nsPerStep;
}

/// Returns the readable names of kernels by the id of their name.
std::map<int32_t, std::string> kernelNames(const job::Analysis& analysis) {
    std::map<int32_t, std::string> names;
    for (const facts::RankSummary& rank : analysis.ranks)
        for (const facts::KernelStatistics& kernel : rank.kernels)
            if (const auto [name, isNew] = names.try_emplace(kernel.key.nameId); isNew)
                name->second = text::readableKernelName(analysis.facts.strings[static_cast<size_t>(name->first)]);
    return names;
}

/// Sums the job's kernels up, and tells what each rank does of those that the job spends most time in.
void setKernels(const job::Analysis& analysis, RunSummary& summary) {
    const std::map<int32_t, std::string> names = kernelNames(analysis);
    const double steps = std::max(1, summary.steps), share = static_cast<double>(analysis.ranks.size()) * steps;
    std::map<std::string, KernelSummary> byName;
    for (const facts::RankSummary& rank : analysis.ranks) {
        for (const facts::KernelStatistics& kernel : rank.kernels) {
            KernelSummary& sum = byName[names.at(kernel.key.nameId)];
            sum.count += kernel.count / share;
            sum.ns += static_cast<double>(kernel.totalNs) / share;
        }
    }
    for (auto& [name, kernel] : byName) {
        kernel.name = name;
        summary.kernels.push_back(kernel);
    }
    std::ranges::stable_sort(summary.kernels, std::greater{}, &KernelSummary::ns);
    if (summary.kernels.size() > RunSummary::kMostKernels) {
        KernelSummary others{"all others", 0, 0};
        for (const KernelSummary& kernel : std::span(summary.kernels).subspan(RunSummary::kMostKernels - 1)) {
            others.count += kernel.count;
            others.ns += kernel.ns;
        }
        summary.kernels.resize(RunSummary::kMostKernels - 1);
        summary.kernels.push_back(others);
    }
    std::set<std::string> longest;
    for (const KernelSummary& kernel : text::first(summary.kernels, RunSummary::kMostKernelsOfARank))
        longest.insert(kernel.name);
    for (RoleSummary& role : summary.roles) {
        for (const facts::KernelStatistics& kernel : analysis.findRank(role.rank)->kernels) {
            const std::string& name = names.at(kernel.key.nameId);
            if (!longest.contains(name)) continue;
            KernelWork& work = role.work[name];
            work.ns += static_cast<double>(kernel.totalNs) / steps;
            if (kernel.key.gridBlocks > 0)
                work.blocks += static_cast<double>(kernel.count) * static_cast<double>(kernel.key.gridBlocks) / steps;
        }
    }
}

void addFindings(const std::vector<job::Finding>& findings, RunSummary& summary) {
    std::map<int, std::string> roleOfRank;
    for (const RoleSummary& role : summary.roles) roleOfRank[role.rank] = role.role;
    for (const job::Finding& finding : findings) {
        if (summary.findings.size() >= RunSummary::kMostFindings) break;
        FindingSummary row;
        row.id = finding.id;
        row.title = finding.title;
        row.alternatives = finding.alternatives;
        row.verdict = finding.verdict == job::Verdict::found          ? "found"
                      : finding.verdict == job::Verdict::inconclusive ? "inconclusive"
                                                                      : "note";
        row.ranks = finding.ranks;
        for (const int rank : finding.ranks)
            row.roles.push_back(roleOfRank.count(rank) ? roleOfRank[rank] : fmt::format("rank {}", rank));
        if (finding.ranks.size() == summary.roles.size()) row.roles.clear();
        row.cause = finding.cause;
        row.fix = finding.fix;
        if (finding.costNs > 0) row.costNs = finding.costNs;
        if (finding.leastShare > 0) row.leastShare = finding.leastShare;
        if (finding.savingNs) row.savingNs = finding.savingNs->expected;
        row.severity = finding.severity;
        summary.findings.push_back(std::move(row));
    }
}

}  // namespace

bool mayBeOne(const FindingSummary& one, const FindingSummary& other) {
    const auto isOneOf = [](const std::string& id, const FindingSummary& of) {
        return of.id == id || text::contains(of.alternatives, id);
    };
    return isOneOf(one.id, other) || isOneOf(other.id, one) ||
           std::ranges::any_of(one.alternatives, [&](const std::string& id) { return isOneOf(id, other); });
}

void setSteps(std::vector<double> times, RunSummary& summary) {
    summary.steps = static_cast<int>(times.size());
    const size_t width = (times.size() + RunSummary::kMostSamples - 1) / RunSummary::kMostSamples;
    summary.stepsPerSample = static_cast<int>(std::max<size_t>(1, width));
    for (size_t i = 0; i + width <= times.size() && width > 0; i += width) {
        const auto samples = std::span(times).subspan(i, width);
        summary.stepsNs.push_back(std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(width));
    }
    if (width > 1) summary.slowStepNs = slowStepOf(std::move(times));
}

std::optional<double> slowStepOf(std::vector<double> stepsNs) {
    constexpr size_t kFewestForTail = 20;
    if (stepsNs.size() < kFewestForTail) return std::nullopt;
    const auto slow = stepsNs.begin() + static_cast<std::ptrdiff_t>(0.95 * static_cast<double>(stepsNs.size() - 1));
    std::nth_element(stepsNs.begin(), slow, stepsNs.end());
    return *slow;
}

std::string trafficName(const std::string& use, const std::string& op) {
    return op + " of " + use;
}

RunSummary summarizeRun(const job::Analysis& analysis, const report::Report& report) {
    RunSummary summary;
    summary.name = report.run.name;
    summary.startUnixNs = std::atoll(analysis.facts.text("start_unix_ns", "0").c_str());
    summary.environment = environmentOf(analysis, report);
    summary.hosts = report.run.hosts;
    setSteps(stepTimesOf(analysis), summary);
    setRoles(analysis, report, summary);
    summary.traffic = summarizeTraffic(analysis);
    setPath(analysis, summary);
    summary.deviceLoss =
        std::ranges::any_of(analysis.ranks, [](const facts::RankSummary& rank) { return !rank.lostSteps.empty(); });
    setKernels(analysis, summary);
    for (const auto& [name, value] : {std::pair{"parallel", report.efficiency.parallel},
                                      {"load_balance", report.efficiency.loadBalance},
                                      {"serialisation", report.efficiency.serialisation},
                                      {"transfer", report.efficiency.transfer}})
        if (value && std::isfinite(*value)) summary.efficiency[name] = *value;
    addFindings(report.findings, summary);
    addFindings(report.notes, summary);
    summary.losses = report.losses;
    return summary;
}

RunSummary summarizeTrace(const std::filesystem::path& database, unsigned workers, const std::function<void()>& check) {
    report::StepOverview overview;
    const auto checkEachRank = [&](const facts::TraceFacts&) { return [&](const facts::RankEvents&) { check(); }; };
    const job::Analysis analysis = report::readWithOverview(database, {workers, {}, checkEachRank}, overview);
    check();
    diagnose::Claims claims;
    std::vector<job::Finding> findings = diagnose::detect(analysis, claims);
    check();
    diagnose::Plays plays = diagnose::playsBy(analysis, nullptr, {}, workers);
    diagnose::priceFindings(analysis, findings, plays);
    RunSummary summary = summarizeRun(analysis, report::buildReport(analysis, claims, std::move(findings), plays));
    summary.overview = std::move(overview);
    summary.file = database.string();
    return summary;
}

}  // namespace rankscope::compare
