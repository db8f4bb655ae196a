// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzer/recommend/nccl_names.h"
#include "analyzer/recommend/renderers.h"
#include "analyzer/report/shell_word.h"
#include "analyzer/report/units.h"

namespace rankscope::analyzer {
namespace {

void addLines(std::string& out, const char* label, const std::vector<std::string>& lines) {
    for (size_t i = 0; i < lines.size(); ++i) out += fmt::format("  {:<8}{}\n", i == 0 ? label : "", lines[i]);
}

std::vector<std::string> settingLines(const Settings& settings) {
    std::vector<std::string> lines;
    for (const auto& [name, value] : settings.environment) lines.push_back(value ? fmt::format("export {}={}", name, shellQuoted(*value)) : "unset " + name);
    for (const TunerAdvice& row : settings.tuner)
        lines.push_back(fmt::format("tuner table: {} of {} to {} on {} nodes, {} ranks: {}/{}", ncclName(row.op), bytesText(static_cast<double>(row.minBytes)),
                                    bytesText(static_cast<double>(row.maxBytes)), row.shape.nodes, row.shape.ranks, ncclName(row.choice.algorithm), ncclName(row.choice.protocol)));
    const auto add = [&](const char* where, const std::map<std::string, std::string>& values) {
        std::vector<std::string> parts;
        for (const auto& [name, value] : values) parts.push_back(name + "=" + value);
        if (!parts.empty()) lines.push_back(fmt::format("{}: {}", where, fmt::join(parts, ", ")));
    };
    add("DDP", settings.ddp);
    add("FSDP", settings.fsdp);
    add("job", settings.launcher);
    add("DeepSpeed", settings.deepspeed);
    add("Accelerate", settings.accelerate);
    return lines;
}

std::string intervalText(const Recommendation& r, double stepNs) {
    const std::string low = r.savingLowNs > 0 ? durationText(r.savingLowNs) : r.savingLowNs < -1'000 ? "-" + durationText(-r.savingLowNs) : std::string("nothing");
    return fmt::format("about {} per step ({}; {} to {})", durationText(r.savingNs), stepNs > 0 ? percentText(r.savingNs / stepNs) : "?", low, durationText(r.savingHighNs));
}

std::string orAny(const std::string& name) { return name.empty() ? "*" : name; }

std::string curveText(const CostCurve& curve) {
    const CurveKey& key = curve.key;
    const bool named = key.choice.algorithm != store::Algorithm::unknown || key.choice.protocol != store::Protocol::unknown;
    std::string text = fmt::format("  {:<14} {:>2} x {:<4} {:<22}", store::toText(key.op), key.shape.nodes, key.shape.ranks,
                                   named ? fmt::format("{}/{}", orAny(ncclName(key.choice.algorithm)), orAny(ncclName(key.choice.protocol))) : "NCCL's choice");
    text += fmt::format(" {:>6} samples, {:>3} size{}", curve.fit.samples, curve.fit.sizes, curve.fit.sizes == 1 ? " " : "s");
    if (!curve.fit.holds()) return text + ": no fit, " + curve.fit.refused + (key.from == EvidenceFrom::ncclTests ? " [nccl-tests]\n" : "\n");
    std::vector<std::string> pieces;
    for (const FitPiece& piece : curve.fit.pieces)
        pieces.push_back(fmt::format("{}{} + {:.4g} ns/KiB", curve.fit.pieces.size() > 1 ? "from " + bytesText(piece.fromBytes) + " " : "", durationText(piece.alphaNs),
                                     piece.betaNsPerByte * 1024));
    return text + fmt::format(", {} to {}: {}; deviates {:.1f} %{}\n", bytesText(curve.fit.smallestBytes), bytesText(curve.fit.largestBytes), fmt::join(pieces, "; "),
                              100 * curve.fit.residual, key.from == EvidenceFrom::ncclTests ? " [nccl-tests]" : "");
}

}  // namespace

std::string renderAdviceText(const Advice& advice, bool colour) {
    const auto bold = [&](const std::string& text) { return colour ? "\x1b[1m" + text + "\x1b[0m" : text; };
    std::string out = bold(fmt::format("{}: advice for a step of {} (median of {})", advice.run.empty() ? "this run" : advice.run, durationText(advice.stepNs), advice.steps)) + "\n";
    if (!advice.judge.empty()) out += fmt::format("judged by {}\n", advice.judge);
    out += fmt::format("NCCL {}; a gain counts from {} a step\n", advice.nccl ? advice.nccl->text() : "version unknown", durationText(advice.noiseNs));
    for (const std::string& limit : advice.limits) out += "not judged: " + limit + "\n";
    if (advice.recommendations.empty()) out += bold("\nKeep everything as it is: no setting is predicted to gain more than chance.") + "\n";
    int number = 0;
    for (const Recommendation& r : advice.recommendations) {
        out += "\n" + bold(fmt::format("{}. {}{}", ++number, r.certainty == Certainty::tryAndMeasure ? "Try and measure: " : "", r.title)) + "\n";
        addLines(out, "gains", {intervalText(r, advice.stepNs)});
        addLines(out, "set", settingLines(r.settings));
        addLines(out, "where", r.notes);
        addLines(out, "shown", r.evidence);
        addLines(out, "basis", {r.basis});
        addLines(out, "risk", {r.risk});
        addLines(out, "verify", {r.verify});
        if (!r.findings.empty()) addLines(out, "answers", {fmt::format("{}", fmt::join(r.findings, ", "))});
    }
    if (!advice.kept.empty()) out += "\n";
    for (const KeptDefault& kept : advice.kept) out += fmt::format("{}: {}\n", kept.area, kept.why);
    if (!advice.curves.empty()) out += "\n" + bold("Measured times of collectives (nodes x ranks; alpha + beta x bytes)") + "\n";
    for (const CostCurve& curve : advice.curves) out += curveText(curve);
    return out;
}

}  // namespace rankscope::analyzer
