// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/nccl_names.h"
#include "analyzer/recommend/recommend.h"
#include "analyzer/text/json_text.h"

namespace rankscope::recommend {
namespace {

using text::arrayOf;
using text::Json;
using text::orNull;
using text::whole;

/// A value as JSON has it: a number or a truth value is none in quotes.
Json valueJson(const std::string& value) {
    if (value == "True" || value == "False") return value == "True";
    const Json json = Json::parse(value, nullptr, false);
    return json.is_number() || json.is_boolean() || json.is_string() ? json : Json(value);
}

Json wordsJson(const Settings::Words& words) {
    Json json = Json::object();
    for (const auto& [name, value] : words) json[name] = valueJson(value);
    return json;
}

Json settingsJson(const Settings& settings) {
    Json environment = Json::object();
    for (const auto& [name, value] : settings.environment) environment[name] = orNull(value);
    const Json rows = arrayOf(settings.tuner, [](const TunerAdvice& row) {
        return Json{{"collective", costs::ncclName(row.op)},
                    {"min_bytes", row.minBytes},
                    {"max_bytes", row.maxBytes},
                    {"algorithm", costs::tunerName(row.choice.algorithm)},
                    {"protocol", costs::ncclName(row.choice.protocol)},
                    {"nodes", row.shape.nodes},
                    {"ranks", row.shape.ranks}};
    });
    return {{"env", environment},
            {"tuner_csv", rows},
            {"ddp", wordsJson(settings.ddp)},
            {"fsdp", wordsJson(settings.fsdp)},
            {"deepspeed", wordsJson(settings.deepspeed)},
            {"accelerate", wordsJson(settings.accelerate)},
            {"job", wordsJson(settings.launcher)}};
}

Json gainJson(const facts::Estimate& gain) {
    return {{"predicted_saving_ns", whole(gain.expected)}, {"interval_ns", {whole(gain.low), whole(gain.high)}}};
}

const char* kindName(AdviceKind kind) {
    return kind == AdviceKind::repair ? "repair" : kind == AdviceKind::program ? "program" : "setting";
}

Json togetherJson(const Together& together) {
    Json json = {{"settings", together.settings}};
    json.update(gainJson(together.gain));
    json["cures"] = together.fixes;
    json["of_cures"] = together.fixed ? gainJson(*together.fixed) : Json(nullptr);
    json["with_cures"] = together.both ? gainJson(*together.both) : Json(nullptr);
    return json;
}

Json recommendationJson(const Recommendation& r) {
    Json json = {{"number", r.number > 0 ? Json(r.number) : Json(nullptr)},
                 {"kind", kindName(r.kind)},
                 {"area", r.area},
                 {"title", r.title},
                 {"certainty", r.certainty == Certainty::recommended ? "recommended" : "try"},
                 {"findings", r.findings}};
    json.update(settingsJson(r.settings));
    json["predicted_saving_ns"] = r.savingKnown ? Json(whole(r.savingNs.expected)) : Json(nullptr);
    json["interval_ns"] = r.savingKnown ? Json{whole(r.savingNs.low), whole(r.savingNs.high)} : Json(nullptr);
    json["batch_factor"] = r.batch;
    json["on_top_of"] = r.onTopOf;
    json["alone"] = r.alone ? gainJson(*r.alone) : Json(nullptr);
    if (r.alternativeTo > 0) json["alternative_to"] = r.alternativeTo;
    if (r.kind != AdviceKind::setting) json["ranks"] = r.ranks, json["steps"] = r.steps;
    json["notes"] = r.notes;
    json["evidence"] = r.evidence;
    json["basis"] = r.basis;
    json["risk"] = r.risk;
    json["verify"] = r.verify;
    return json;
}

Json curveJson(const costs::CostCurve& curve) {
    return {{"source", curve.key.from == costs::EvidenceFrom::trace ? "trace" : "nccl-tests"},
            {"files", curve.files},
            {"op", store::toText(curve.key.op)},
            {"nodes", curve.key.shape.nodes},
            {"ranks", curve.key.shape.ranks},
            {"algorithm", orNull(costs::ncclName(curve.key.choice.algorithm))},
            {"protocol", orNull(costs::ncclName(curve.key.choice.protocol))},
            {"samples", curve.samples()},
            {"sizes", curve.timesBySize.size()},
            {"smallest_bytes", whole(curve.timesBySize.begin()->first)},
            {"largest_bytes", whole(curve.timesBySize.rbegin()->first)},
            {"kinks", arrayOf(curve.sizes.kinks(),
                              [](const costs::Kink& kink) {
                                  return Json{{"bytes", whole(kink.bytes)},
                                              {"ns", whole(kink.ns)},
                                              {"smooth_ns", whole(kink.smoothNs)},
                                              {"instead_bytes", whole(kink.insteadBytes)},
                                              {"instead_ns", whole(kink.insteadNs)}};
                              })},
            {"line", curve.line ? Json{{"group", orNull(curve.group)},
                                       {"alpha_ns", curve.line->alphaNs},
                                       {"beta_ns_per_byte", curve.line->betaNsPerByte},
                                       {"source", curve.line->source}}
                                : Json(nullptr)}};
}

}  // namespace

std::string renderAdviceJson(const Advice& advice) {
    Json json;
    json["schema"] = "rankscope.recommend/1";
    json["run"] = {{"name", advice.run}, {"step_ns", whole(advice.stepNs)}, {"steps", advice.steps}};
    json["nccl_version"] = advice.nccl ? Json(advice.nccl->text()) : Json(nullptr);
    json["judge"] = advice.judge;
    json["noise_ns"] = whole(advice.noiseNs);
    json["limits"] = advice.limits;
    const std::vector<std::string> nothing = advice.whyNothingJudged();
    json["judged"] = nothing.empty();
    json["nothing_judged_because"] = nothing;
    json["together"] = advice.together ? togetherJson(*advice.together) : Json(nullptr);
    json["recommendations"] = arrayOf(advice.recommendations, recommendationJson);
    json["alternatives"] = arrayOf(advice.alternatives, recommendationJson);
    json["kept"] = arrayOf(advice.kept, [](const KeptDefault& kept) {
        return Json{{"area", kept.area}, {"why", kept.why}};
    });
    json["fits"] = arrayOf(advice.curves, curveJson);
    json["table_notes"] = arrayOf(advice.notes, [](const costs::TableNote& note) {
        return Json{{"kind", costs::toText(note.kind)},
                    {"file", orNull(note.file)},
                    {"line", note.file.empty() ? Json(nullptr) : Json(note.line)},
                    {"text", note.text}};
    });
    return text::jsonText(json);
}

}  // namespace rankscope::recommend
