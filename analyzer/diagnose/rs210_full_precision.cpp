// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "analyzer/diagnose/critical_step.h"
#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
inline namespace rs210 {
namespace {

constexpr Threshold kComputeShare{"compute share", 0.3, "of compute in 16-bit kernels",
                                  "mixed precision keeps norms and the optimizer in fp32, the products are 16 bit"};

bool is16Bit(store::DataType type) {
    return type == store::DataType::bf16 || type == store::DataType::f16;
}

/// Types in names of cuBLAS, CUTLASS, cuDNN, Triton and C++ kernels.
bool names16Bit(std::string name) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    constexpr std::array kMarks = {"bf16",  "bfloat16", "half",  "fp16",   "f16",
                                   "hgemm", "h16816",   "h1688", "s16816", "h884"};
    return std::any_of(kMarks.begin(), kMarks.end(),
                       [&](const char* mark) { return name.find(mark) != std::string::npos; });
}

/// Why we think that the job computes in 16 bit; empty when nothing says so.
std::string mixedPrecision(const job::Analysis& analysis) {
    for (const facts::RankSummary& rank : analysis.ranks) {
        for (const facts::CommTask& task : rank.communication) {
            const facts::CommRole role = roleOf(analysis, task);
            const bool carriesCompute = role == facts::CommRole::activations || role == facts::CommRole::pipeline ||
                                        role == facts::CommRole::experts ||
                                        (role == facts::CommRole::shardedParameters && task.op == store::Op::allGather);
            if (carriesCompute && is16Bit(task.dataType))
                return fmt::format("{} of {} travel as {}",
                                   role == facts::CommRole::shardedParameters ? "parameters" : "activations",
                                   text::bytesText(static_cast<double>(task.bytes)), store::toText(task.dataType));
        }
        double all = 0, in16 = 0;
        std::string example;
        for (const facts::KernelStatistics& kernel : rank.kernels) {
            const auto id = static_cast<size_t>(kernel.key.nameId);
            all += static_cast<double>(kernel.totalNs);
            if (id >= analysis.facts.strings.size() || !names16Bit(analysis.facts.strings[id])) continue;
            in16 += static_cast<double>(kernel.totalNs);
            if (example.empty()) example = analysis.facts.strings[id];
        }
        if (all > 0 && in16 >= kComputeShare * all)
            return fmt::format("{} of the compute time is in 16-bit kernels (such as {})",
                               text::percentText(in16 / all), example.substr(0, 60));
    }
    return {};
}

bool isGradient(const job::Analysis& analysis, const facts::CommTask& task) {
    const facts::CommRole role = roleOf(analysis, task);
    if (role != facts::CommRole::gradients && role != facts::CommRole::replicas &&
        role != facts::CommRole::shardedParameters)
        return false;
    return task.op == store::Op::allReduce || task.op == store::Op::reduceScatter || task.op == store::Op::reduce;
}

/// Time of the message with half its bytes: start-up stays.
double halvedNs(const job::Analysis& analysis, const facts::CommTask& task) {
    const auto now = static_cast<double>(task.transferNs());
    const costs::CostFit* fit = analysis.cost.line(task.communicatorId, task.op);
    if (fit == nullptr || fit->timeNs(static_cast<double>(task.bytes)) <= 0) return now / 2;
    const double startup = std::min(1.0, fit->alphaNs / fit->timeNs(static_cast<double>(task.bytes)));
    return now * (startup + (1 - startup) / 2);
}

void detectFullPrecision(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    const std::string evidence = mixedPrecision(analysis);
    if (evidence.empty()) return;
    for (const CommunicatorClass& where : communicatorClasses(analysis)) {
        if (where.role != facts::CommRole::gradients && where.role != facts::CommRole::shardedParameters &&
            where.role != facts::CommRole::replicas)
            continue;
        const std::vector<CriticalStep> steps = criticalSteps(analysis, where.ids);
        std::vector<double> costs, volumes, exposed;
        for (const CriticalStep& step : steps) {
            std::vector<double> times = transfersOf(step);
            double bytes = 0, visible = 0;
            for (size_t i : step.own) {
                const facts::CommTask& task = step.tasks[i];
                if (!isGradient(analysis, task) || task.dataType != store::DataType::f32) continue;
                times[i] = halvedNs(analysis, task);
                bytes += static_cast<double>(std::max<int64_t>(0, task.bytes));
                visible += static_cast<double>(task.exposedTransferNs);
            }
            costs.push_back(savedAtMost(step, times));
            volumes.push_back(bytes);
            exposed.push_back(visible);
        }
        if (facts::median(costs) <= 0 || facts::median(volumes) <= 0) continue;
        job::Finding finding;
        finding.id = "RS210";
        finding.ranks = finding.affectedRanks = where.ranks;
        finding.communicator = where.first->id;
        // What another setting of the same traffic already saves cannot be saved again. Faster reductions also uncover
        // less of the all-gathers behind them.
        std::vector<double> all;
        for (const CriticalStep& step : steps) all.push_back(step.exposedTransferNs());
        for (double& cost : costs)
            cost = std::max(0.0,
                            std::min(cost, facts::median(all) - claims.explainedTransferNs(where.first->id, "RS210")));
        if (facts::median(costs) <= 0) continue;
        setCost(analysis, costs, finding);
        setTypicalStep(analysis, costs, steps.front().rank->rank, finding);
        finding.cause = fmt::format(
            "gradients are reduced in fp32 ({} a step) although the model computes in 16 bit: twice the bytes",
            text::bytesText(facts::median(volumes)));
        finding.evidence.facts = {evidence, fmt::format("{} of the reductions are exposed a step",
                                                        text::durationText(facts::median(exposed)))};
        finding.evidence.numbers = {{"gradient_bytes_per_step", facts::median(volumes)},
                                    {"exposed_transfer_ns_per_step", facts::median(exposed)}};
        const CriticalStep& shown = shownStep(analysis, steps, finding);
        for (size_t i : shown.own)
            if (const facts::CommTask& task = shown.tasks[i]; finding.evidence.rows.size() < 3 &&
                                                              task.collectiveId != 0 && isGradient(analysis, task) &&
                                                              task.dataType == store::DataType::f32)
                finding.evidence.rows.push_back(
                    {"collective", task.collectiveId, shown.rank->rank, "gradients in fp32"});
        if (where.role == facts::CommRole::shardedParameters)
            finding.fix = {
                "FSDP: MixedPrecision(reduce_dtype=torch.bfloat16); FSDP2: "
                "MixedPrecisionPolicy(reduce_dtype=torch.bfloat16)"};
        else
            finding.fix = {
                "DDP: model.register_comm_hook(None, "
                "torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook)",
                "DeepSpeed: \"communication_data_type\": \"bf16\"; Megatron: drop "
                "--accumulate-allreduce-grads-in-fp32"};
        finding.fix.push_back(
            "sums of many ranks lose bits in 16 bit: watch the loss, or keep fp32 where replicas are many");
        if (finding.verdict == job::Verdict::found)
            for (int64_t id : where.ids) claims.takeTransfer("RS210", id, finding.costNs);
        findings.push_back(std::move(finding));
    }
}

std::string missingForFullPrecision(const job::Analysis& analysis) {
    bool typed = false;
    for (const facts::RankSummary& rank : analysis.ranks)
        for (const facts::CommTask& task : rank.communication)
            typed = typed || task.dataType != store::DataType::unknown;
    return !typed && communicates(analysis) ? "no data types of messages" : std::string();
}

Changes sixteenBit(const job::Analysis&, const job::Finding&) {
    return {{"gradients", {{"dtype", "bf16"}}}};
}

}  // namespace

const Diagnosis kFullPrecision{
    .id = "RS210",
    .title = "full-precision gradients",
    .definition =
        "Gradients are reduced in fp32 although the model computes in 16 bit, as the type of gathered parameters or "
        "activations, or the names of the kernels, show. The cost is what the step gains with half the bytes: what "
        "hides behind compute costs nothing.",
    .thresholds = {kComputeShare},
    .falsePositives =
        "fp32 sums may be wanted for accuracy over many replicas: the finding says what they cost, not that they are "
        "wrong. TF32 models compute in fp32 and are not named.",
    .fix = "bf16 compression hook (DDP), reduce_dtype (FSDP), communication_data_type (DeepSpeed).",
    .hasSettings = true,
    .hint =
        "Framed are gradient sums in full precision: half the bytes would carry them, and red would shrink "
        "accordingly.",
    .detect = detectFullPrecision,
    .missing = missingForFullPrecision,
    .repair = sixteenBit,
};

}  // namespace rs210
}  // namespace rankscope::diagnose
