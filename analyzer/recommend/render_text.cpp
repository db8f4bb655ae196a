// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analyzer/costs/nccl_names.h"
#include "analyzer/recommend/recommend.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/terminal_text.h"
#include "analyzer/text/units.h"

namespace rankscope::recommend {
namespace {

std::string labelled(const char* label, bool isFirst) {
    return fmt::format("  {:<8}", isFirst ? label : "");
}

void addLines(std::string& out, const char* label, const std::vector<std::string>& lines, size_t columns) {
    for (size_t i = 0; i < lines.size(); ++i)
        if (!lines[i].empty()) out += text::wrapped(lines[i], labelled(label, i == 0), columns);
}

std::vector<std::string> settingLines(const Settings& settings) {
    std::vector<std::string> lines;
    for (const auto& [name, value] : settings.environment) {
        if (!value)
            lines.push_back("unset " + name);
        else if (value->empty())
            lines.push_back(fmt::format("unset {}  # where the job's own script sets it: export {}=", name, name));
        else
            lines.push_back(fmt::format("export {}={}", name, text::shellQuoted(*value)));
    }
    for (const TunerAdvice& row : settings.tuner)
        lines.push_back(fmt::format("tuner table: {} of {} to {} on {} nodes, {} ranks: {}/{}", costs::ncclName(row.op),
                                    text::bytesText(static_cast<double>(row.minBytes)),
                                    text::bytesText(static_cast<double>(row.maxBytes)), row.shape.nodes,
                                    row.shape.ranks, costs::ncclName(row.choice.algorithm),
                                    costs::ncclName(row.choice.protocol)));
    for (std::string& line : programLines(settings)) lines.push_back(std::move(line));
    return lines;
}

std::string intervalText(const facts::Estimate& gain, double stepNs) {
    const auto end = [](double ns) { return ns > 0 || ns < -1'000 ? text::durationText(ns) : "nothing"; };
    return fmt::format("{} per step ({}; {} to {})", end(gain.expected),
                       stepNs > 0 ? text::percentText(gain.expected / stepNs) : "?", end(gain.low), end(gain.high));
}

std::string numbersText(const std::vector<int>& numbers) {
    std::string text;
    for (size_t i = 0; i < numbers.size(); ++i)
        text += fmt::format("{}{}", i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ", numbers[i]);
    return text;
}

std::vector<int> repairsOf(const Advice& advice) {
    std::vector<int> numbers;
    for (const Recommendation& r : advice.recommendations)
        if (r.kind != AdviceKind::setting && r.savingKnown) numbers.push_back(r.number);
    return numbers;
}

std::vector<std::string> gainLines(const Recommendation& r, double stepNs) {
    if (r.meanStepNs > 0) stepNs = r.meanStepNs;
    if (r.batch != 1 && stepNs > 0)
        return {fmt::format(
            "{} less time per sample ({} to {}): a step takes {} instead of {}, for {} times the samples",
            text::percentText(r.savingNs.expected / stepNs), text::percentText(r.savingNs.low / stepNs),
            text::percentText(r.savingNs.high / stepNs), text::durationText(r.batch * (stepNs - r.savingNs.expected)),
            text::durationText(stepNs), r.batch)};
    if (!r.savingKnown)
        return {fmt::format("unknown; the cause was seen to take {} ({})", text::durationText(r.savingNs.high),
                            text::percentText(stepNs > 0 ? r.savingNs.high / stepNs : 0))};
    const facts::Estimate& gain = r.savingNs;
    if (r.onTopOf.empty()) return {intervalText(gain, stepNs)};
    std::vector<std::string> lines = {
        fmt::format("{}, on top of {}", intervalText(gain, stepNs), numbersText(r.onTopOf))};
    if (r.alone) lines.push_back("by itself " + intervalText(*r.alone, stepNs));
    return lines;
}

/// Tells the gain of all settings, and what is left of it once that is repaired which no setting repairs: `repairs`.
std::string togetherText(const Together& together, const std::vector<int>& repairs, double stepNs) {
    std::string out;
    if (together.settings > 0)
        out += fmt::format("{} about {}\n",
                           together.settings == 1
                               ? "The recommended setting gains"
                               : fmt::format("All {} recommended settings together gain", together.settings),
                           intervalText(together.gain, stepNs));
    if (!together.fixed) return out;
    out += fmt::format("What no setting cures ({}) costs about {}\n", numbersText(repairs),
                       intervalText(*together.fixed, stepNs));
    if (together.settings == 0 || !together.both) return out;
    out += fmt::format("Cured, and with the settings: about {} shorter\n", intervalText(*together.both, stepNs));
    out += "The settings are judged with that still there";
    out += together.both->expected - together.fixed->expected > together.noiseNs
               ? ": once it is cured, run again and ask again\n"
               : ", and gain nothing once it is cured: cure it first, run again and ask again\n";
    return out;
}

std::string orAny(const std::string& name) {
    return name.empty() ? "*" : name;
}

std::string curveText(const costs::CostCurve& curve, size_t columns) {
    const costs::CurveKey& key = curve.key;
    const bool named =
        key.choice.algorithm != store::Algorithm::unknown || key.choice.protocol != store::Protocol::unknown;
    std::string row =
        fmt::format("  {:<14} {:>2} x {:<4} {:<20}", store::toText(key.op), key.shape.nodes, key.shape.ranks,
                    named ? fmt::format("{}/{}", orAny(costs::ncclName(key.choice.algorithm)),
                                        orAny(costs::ncclName(key.choice.protocol)))
                          : "NCCL's choice");
    row += fmt::format(" {:>6} samples, {:>3} size{}", curve.samples(), curve.timesBySize.size(),
                       curve.timesBySize.size() == 1 ? " " : "s");
    row += curve.line ? fmt::format(", {} to {}: {} + {:.4g} ns/KiB", text::bytesText(curve.timesBySize.begin()->first),
                                    text::bytesText(curve.timesBySize.rbegin()->first),
                                    text::durationText(curve.line->alphaNs), curve.line->betaNsPerByte * 1024)
                      : ": no line, sizes hardly differ";
    if (key.from == costs::EvidenceFrom::ncclTests) row += " [nccl-tests]";
    row += "\n";
    if (!curve.group.empty())
        row += text::wrapped(fmt::format("{}: the line of the findings ({})", curve.group, curve.line->source),
                             "      ", columns);
    return row;
}

std::string bodyText(const Recommendation& r, double stepNs, size_t columns) {
    std::string out;
    addLines(out, "gains", gainLines(r, stepNs), columns);
    const std::vector<std::string> settings = settingLines(r.settings);  // each is copied as a line
    for (size_t i = 0; i < settings.size(); ++i) out += labelled("set", i == 0) + settings[i] + "\n";
    addLines(out, "do", r.steps, columns);
    addLines(out, "where", r.notes, columns);
    addLines(out, "shown", r.evidence, columns);
    addLines(out, "basis", {r.basis}, columns);
    addLines(out, "risk", {r.risk}, columns);
    addLines(out, "verify", {r.verify}, columns);
    if (!r.findings.empty()) addLines(out, "answers", {text::joined(r.findings)}, columns);
    return out;
}

/// A line in bold with an empty one above, broken at `columns`; lines behind the first are indented as `first` is long.
std::string heading(const text::Painter& paint, size_t columns, std::string_view words, std::string_view first = {}) {
    std::string lines = text::wrapped(words, first, columns);
    lines.pop_back();
    return "\n" + paint.bold(lines) + "\n";
}

/// Says to keep what is there; empty where some setting is advised.
std::string keepText(const Advice& advice, const text::Painter& paint, size_t columns) {
    if (std::ranges::any_of(advice.recommendations,
                            [](const Recommendation& r) { return r.kind == AdviceKind::setting; }))
        return "";
    if (!advice.death.empty())
        return heading(paint, columns,
                       "No setting is predicted to make a step faster by more than chance. First find out why the job "
                       "died.");
    const char* what = !advice.recommendations.empty() ? "the settings as they are: none"
                       : advice.limits.empty()         ? "everything as it is: no setting"
                                                       : "as it is what could be judged: no setting of it";
    return heading(paint, columns, fmt::format("Keep {} is predicted to gain more than chance.", what));
}

/// Tells the sizes to avoid first; what is said of a table is a warning.
std::string notesText(const Advice& advice, const text::Painter& paint, size_t columns) {
    using Kind = costs::TableNote::Kind;
    std::string kinks, warnings;
    for (const costs::TableNote& note : advice.notes) {
        const bool kink = note.kind == Kind::kink;
        (kink ? kinks : warnings) += text::wrapped(noteText(note), kink ? "  " : "warning: ", columns);
    }
    if (!kinks.empty()) kinks = heading(paint, columns, "Sizes to avoid") + kinks;
    return kinks + (warnings.empty() ? "" : "\n" + warnings);
}

}  // namespace

std::vector<std::string> programLines(const Settings& settings) {
    std::vector<std::string> lines;
    for (const auto& [where, values] : settings.programs()) {
        std::vector<std::string> parts;
        for (const auto& [name, value] : *values) parts.push_back(name + "=" + value);
        if (!parts.empty()) lines.push_back(fmt::format("{}: {}", where, text::joined(parts)));
    }
    return lines;
}

std::string noteText(const costs::TableNote& note) {
    using Kind = costs::TableNote::Kind;
    const bool unused = note.kind == Kind::notUsed || note.kind == Kind::impossible || note.kind == Kind::inconsistent;
    return fmt::format("{}{}{}", note.file.empty() ? "" : fmt::format("{} line {}: ", note.file, note.line),
                       unused ? "not used: " : "", note.text);
}

std::string renderAdviceText(const Advice& advice, bool colour, size_t columns) {
    const text::Painter paint(colour);
    std::string out = paint.bold((advice.run.empty() ? "this run" : advice.run) +
                                 (advice.steps > 0 ? fmt::format(": advice for a step of {} (median of {})",
                                                                 text::durationText(advice.stepNs), advice.steps)
                                                   : std::string(": no step was recorded that advice could be for"))) +
                      "\n";
    if (!advice.death.empty())
        out += paint.bold(advice.death) + "\nNo setting here answers that; what follows is of the steps before it.\n";
    if (!advice.judge.empty()) out += text::wrapped("judged by " + advice.judge, {}, columns);
    out += fmt::format("NCCL {}; a gain counts from {} a step\n", advice.nccl ? advice.nccl->text() : "version unknown",
                       text::durationText(advice.noiseNs));
    const std::vector<std::string> nothing = advice.whyNothingJudged();
    if (!nothing.empty()) {
        out += heading(
            paint, columns,
            fmt::format("{} could be judged, because:", advice.recommendations.empty() ? "Nothing" : "No setting"));
        for (const std::string& why : nothing) out += text::wrapped(why, "  ", columns);
    } else {
        for (const std::string& limit : advice.limits) out += text::wrapped("not judged: " + limit, {}, columns);
        out += keepText(advice, paint, columns);
    }
    double ofNs = advice.stepNs;  // of the mean step where rare ones alone gain
    for (const Recommendation& r : advice.recommendations) ofNs = std::max(ofNs, r.meanStepNs);
    if (advice.together && (advice.together->settings > 0 || advice.together->fixed))
        out += "\n" + togetherText(*advice.together, repairsOf(advice), ofNs);
    for (const Recommendation& r : advice.recommendations) {
        const char* kind = r.kind == AdviceKind::repair              ? "Repair: "
                           : r.kind == AdviceKind::program           ? "In the program: "
                           : r.certainty == Certainty::tryAndMeasure ? "Try and measure: "
                                                                     : "";
        out += heading(paint, columns, kind + r.title, fmt::format("{}. ", r.number)) +
               bodyText(r, advice.stepNs, columns);
    }
    if (!advice.alternatives.empty()) {
        constexpr std::string_view kTitle = "Alternatives";
        const std::string lines =
            text::wrapped(fmt::format("{}: they set the same things otherwise, or gain nothing beside them. Each by "
                                      "itself; in no file of settings but a tuner table",
                                      kTitle),
                          {}, columns);
        out += "\n" + paint.bold(kTitle) + lines.substr(kTitle.size());
    }
    for (const Recommendation& r : advice.alternatives)
        out +=
            heading(paint, columns,
                    fmt::format("{}: {}{}", r.alternativeTo > 0 ? fmt::format("Instead of {}", r.alternativeTo) : "Or",
                                r.certainty == Certainty::tryAndMeasure ? "try and measure " : "", r.title)) +
            bodyText(r, advice.stepNs, columns);
    const bool onTop = std::ranges::any_of(advice.recommendations, [](const Recommendation& r) {
        return r.alone && r.certainty == Certainty::recommended;
    });
    if (!advice.kept.empty())
        out += onTop ? heading(paint, columns, "Looked at on top of these settings, and left as it is") : "\n";
    for (const KeptDefault& kept : advice.kept) out += text::wrapped(kept.area + ": " + kept.why, {}, columns);
    if (!advice.curves.empty())
        out += heading(paint, columns,
                       "Measured times of collectives (nodes x ranks; start-up + rate x bytes for each algorithm and "
                       "protocol)");
    for (const costs::CostCurve& curve : advice.curves) out += curveText(curve, columns);
    out += notesText(advice, paint, columns);
    return out;
}

}  // namespace rankscope::recommend
