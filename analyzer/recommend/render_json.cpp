// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "analyzer/recommend/nccl_names.h"
#include "analyzer/recommend/renderers.h"

namespace rankscope::analyzer {
namespace {

using Json = nlohmann::ordered_json;

int64_t whole(double value) { return std::llround(value); }

Json orNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json settingsJson(const Settings& settings) {
    Json environment = Json::object();
    for (const auto& [name, value] : settings.environment) environment[name] = value ? Json(*value) : Json(nullptr);
    Json rows = Json::array();
    for (const TunerAdvice& row : settings.tuner)
        rows.push_back({{"collective", ncclName(row.op)}, {"min_bytes", row.minBytes}, {"max_bytes", row.maxBytes}, {"algorithm", tunerName(row.choice.algorithm)},
                        {"protocol", ncclName(row.choice.protocol)}, {"nodes", row.shape.nodes}, {"ranks", row.shape.ranks}});
    return {{"env", environment}, {"tuner_csv", rows}, {"ddp", settings.ddp}, {"fsdp", settings.fsdp}, {"deepspeed", settings.deepspeed},
            {"accelerate", settings.accelerate}, {"job", settings.launcher}};
}

Json recommendationJson(const Recommendation& r) {
    Json json = {{"area", r.area},
                 {"title", r.title},
                 {"certainty", r.certainty == Certainty::recommended ? "recommended" : "try"},
                 {"findings", r.findings}};
    json.update(settingsJson(r.settings));
    json["predicted_saving_ns"] = whole(r.savingNs);
    json["interval_ns"] = {whole(r.savingLowNs), whole(r.savingHighNs)};
    json["notes"] = r.notes;
    json["evidence"] = r.evidence;
    json["basis"] = r.basis;
    json["risk"] = r.risk;
    json["verify"] = r.verify;
    return json;
}

Json curveJson(const CostCurve& curve) {
    Json pieces = Json::array();
    for (const FitPiece& piece : curve.fit.pieces)
        pieces.push_back({{"from_bytes", whole(piece.fromBytes)}, {"alpha_ns", piece.alphaNs}, {"beta_ns_per_byte", piece.betaNsPerByte}});
    return {{"source", curve.key.from == EvidenceFrom::trace ? "trace" : "nccl-tests"},
            {"files", curve.files},
            {"op", store::toText(curve.key.op)},
            {"nodes", curve.key.shape.nodes},
            {"ranks", curve.key.shape.ranks},
            {"algorithm", orNull(ncclName(curve.key.choice.algorithm))},
            {"protocol", orNull(ncclName(curve.key.choice.protocol))},
            {"samples", curve.fit.samples},
            {"sizes", curve.fit.sizes},
            {"smallest_bytes", whole(curve.fit.smallestBytes)},
            {"largest_bytes", whole(curve.fit.largestBytes)},
            {"pieces", pieces},
            {"residual", curve.fit.residual},
            {"refused", orNull(curve.fit.refused)}};
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
    json["recommendations"] = Json::array();
    for (const Recommendation& r : advice.recommendations) json["recommendations"].push_back(recommendationJson(r));
    json["kept"] = Json::array();
    for (const KeptDefault& kept : advice.kept) json["kept"].push_back({{"area", kept.area}, {"why", kept.why}});
    json["fits"] = Json::array();
    for (const CostCurve& curve : advice.curves) json["fits"].push_back(curveJson(curve));
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rankscope::analyzer
