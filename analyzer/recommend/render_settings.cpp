// SPDX-License-Identifier: Apache-2.0
// Advice as files for other programs: a shell, a tuner plugin, DeepSpeed, Accelerate.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzer/costs/nccl_names.h"
#include "analyzer/recommend/recommend.h"
#include "analyzer/recommend/tune.h"
#include "analyzer/text/json_text.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::recommend {
namespace {

using text::oneLine;  // comments are one line each, whatever a run is called

std::string head(const Advice& advice, const char* what) {
    return fmt::format("# {} for {} by rankscope recommend; judged with NCCL {}\n", what,
                       oneLine(advice.run.empty() ? "this run" : advice.run),
                       advice.nccl ? advice.nccl->text() : "of unknown version");
}

std::string gainText(const facts::Estimate& gain) {
    return fmt::format("{} a step shorter ({} to {})", text::durationText(gain.expected),
                       text::durationText(std::max(0.0, gain.low)), text::durationText(gain.high));
}

/// A file is taken by itself: so what it gains without the others is told first.
std::string gain(const Recommendation& r) {
    if (!r.savingKnown)
        return fmt::format("# {}: unknown; the cause was seen to take {} of a step\n", oneLine(r.title),
                           text::durationText(r.savingNs.high));
    if (r.onTopOf.empty() || !r.alone) return fmt::format("# {}: {}\n", oneLine(r.title), gainText(r.savingNs));
    return fmt::format("# {}: by itself {}; on top of {} {}\n", oneLine(r.title), gainText(*r.alone),
                       fmt::join(r.onTopOf, ", "), gainText(r.savingNs));
}

/// Says what a file without a setting says, in one line.
std::string nothingText(const Advice& advice, const char* keep) {
    const std::string nothing = advice.nothingJudged();
    return nothing.empty() ? std::string(keep) : oneLine(nothing);
}

/// What is advised in other places than this file, one line each; `isHere` tells what the file holds.
std::vector<std::string> elsewhere(const Advice& advice, const auto& isHere) {
    std::vector<std::string> lines;
    for (const Recommendation& r : advice.recommendations) {
        if (isHere(r)) continue;
        std::vector<std::string> places = programLines(r.settings);
        if (!r.settings.environment.empty()) places.push_back("environment: --format env");
        if (!r.settings.tuner.empty()) places.push_back("tuner table: --format tuner-csv");
        places.insert(places.end(), r.notes.begin(), r.notes.end());
        const char* kind = r.kind == AdviceKind::repair    ? "repair: "
                           : r.kind == AdviceKind::program ? "in the program: "
                                                           : "";
        lines.push_back(oneLine(fmt::format("{}. {}{}{}", r.number, kind, r.title,
                                            places.empty() ? "" : fmt::format(" ({})", fmt::join(places, "; ")))));
    }
    return lines;
}

/// The same as comments.
std::string elsewhereLines(const Advice& advice, const auto& isHere) {
    std::string lines;
    for (const std::string& line : elsewhere(advice, isHere))
        lines += (lines.empty() ? "# advised elsewhere (rankscope recommend tells more):\n#   " : "#   ") + line + "\n";
    return lines;
}

/// Tells whether the files hold it: what is accepted, and can be set.
bool holds(const Recommendation& r) {
    return r.kind == AdviceKind::setting && r.certainty == Certainty::recommended;
}

std::string noteLines(const Recommendation& r) {
    std::string lines;
    for (const std::string& note : r.notes) lines += "# " + oneLine(note) + "\n";
    return lines;
}

/// "a.b": 1 and "a.c": 2 as {"a": {"b": 1, "c": 2}}.
text::Json& placeOf(text::Json& root, const std::string& path) {
    text::Json* at = &root;
    for (size_t from = 0;;) {
        const size_t dot = path.find('.', from);
        at = &(*at)[path.substr(from, dot == std::string::npos ? dot : dot - from)];
        if (dot == std::string::npos) return *at;
        from = dot + 1;
    }
}

void addYaml(std::string& out, const std::map<std::string, std::string>& values, const char* mark) {
    std::string section;
    for (const auto& [path, value] : values) {
        const size_t dot = path.find('.');
        const std::string parent = dot == std::string::npos ? "" : path.substr(0, dot);
        if (parent != section && !parent.empty()) out += fmt::format("{}{}:\n", mark, parent);
        section = parent;
        out += fmt::format("{}{}{}: {}\n", mark, parent.empty() ? "" : "  ",
                           dot == std::string::npos ? path : path.substr(dot + 1), value);
    }
}

}  // namespace

std::string renderAdviceEnvironment(const Advice& advice) {
    std::string out = head(advice, "environment");
    bool any = false;
    for (const Recommendation& r : advice.recommendations) {
        if (r.settings.environment.empty()) continue;
        // With a tuner table the variables are only cleared out of its way; without the table that is another setting.
        if (!r.settings.tuner.empty()) continue;
        const bool active = r.certainty == Certainty::recommended;
        any = any || active;
        out += (active ? "" : "# try and measure, ") + gain(r).substr(active ? 0 : 2) + noteLines(r);
        out += shellLines(r.settings.environment, active ? "" : "# ");
    }
    if (!any) out += "# " + nothingText(advice, "nothing to set here: keep the environment as it is") + "\n";
    out += elsewhereLines(advice, [](const Recommendation& r) { return !r.settings.environment.empty(); });
    for (const Recommendation& r : advice.alternatives) {
        if (r.settings.environment.empty() || !r.settings.tuner.empty()) continue;
        out +=
            fmt::format("# instead of number {} of the advice, not beside it, ", r.alternativeTo) + gain(r).substr(2);
        out += shellLines(r.settings.environment, "# ");
    }
    return out;
}

std::string renderAdviceTunerCsv(const Advice& advice) {
    std::string out =
        head(advice, "tuner table") + "# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n";
    std::vector<const Recommendation*> tables;
    for (const auto* list : {&advice.recommendations, &advice.alternatives})
        for (const Recommendation& r : *list)
            if (!r.settings.tuner.empty()) tables.push_back(&r);
    if (tables.empty()) return out + "# " + nothingText(advice, "no rows: NCCL's own choice stays") + "\n";
    const Recommendation& r = *tables.front();
    out += (holds(r) ? "" : "# try and measure, ") + gain(r).substr(holds(r) ? 0 : 2);
    if (r.alternativeTo > 0)
        out += fmt::format("# an alternative to number {} of the advice: this or that, not both\n", r.alternativeTo);
    if (!r.settings.environment.empty())
        out += "# these variables come before the rows; in the job's environment, first:\n";
    out += shellLines(r.settings.environment, "#   ");
    out += noteLines(r);
    for (const TunerAdvice& row : r.settings.tuner) {
        out += fmt::format("# {:.4g} a step over {} ranks on {}, all communicators: {} now, {} then ({} to {})\n",
                           row.perStep, row.shape.ranks, text::countedText(row.shape.nodes, "node"),
                           text::durationText(row.nowNs), text::durationText(row.thenNs.expected),
                           text::durationText(row.thenNs.low), text::durationText(row.thenNs.high));
        out += fmt::format("{},{},{},{},{},-1,{},{}\n", costs::ncclName(row.op), row.minBytes, row.maxBytes,
                           costs::tunerName(row.choice.algorithm), costs::ncclName(row.choice.protocol),
                           row.shape.nodes, row.shape.ranks);
    }
    return out;
}

std::string renderAdviceDeepSpeed(const Advice& advice) {
    text::Json json = text::Json::object();
    for (const Recommendation& r : advice.recommendations)
        if (holds(r))
            for (const auto& [path, value] : r.settings.deepspeed) placeOf(json, path) = text::Json::parse(value);
    // JSON has no comments; DeepSpeed passes over keys that it does not know.
    const std::vector<std::string> others =
        elsewhere(advice, [](const Recommendation& r) { return holds(r) && !r.settings.deepspeed.empty(); });
    std::string said = json.empty() ? nothingText(advice, "nothing to set here: keep the configuration as it is") : "";
    if (!others.empty())
        said += fmt::format("{}advised elsewhere: {}", said.empty() ? "" : "; ", fmt::join(others, "; "));
    if (!said.empty()) json["_rankscope"] = said;
    return text::jsonText(json);
}

std::string renderAdviceAccelerate(const Advice& advice) {
    std::string out = head(advice, "Accelerate settings");
    std::map<std::string, std::string> values;
    for (const Recommendation& r : advice.recommendations)
        if (holds(r)) values.insert(r.settings.accelerate.begin(), r.settings.accelerate.end());
    addYaml(out, values, "");
    if (values.empty())
        out += "# " + nothingText(advice, "nothing to set here: keep the configuration as it is") + "\n";
    return out +
           elsewhereLines(advice, [](const Recommendation& r) { return holds(r) && !r.settings.accelerate.empty(); });
}

}  // namespace rankscope::recommend
