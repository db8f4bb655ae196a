// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "analyzer/report/bound.h"
#include "analyzer/report/memory.h"
#include "analyzer/report/renderers.h"
#include "analyzer/report/sentences.h"
#include "analyzer/text/json_text.h"

namespace rankscope::report {
namespace {

using text::arrayOf;
using text::Json;
using text::orNull;
using text::whole;
using text::wholeOrNull;

Json evidenceJson(const job::Evidence& evidence) {
    Json numbers = Json::object();
    for (const auto& [name, value] : evidence.numbers) numbers[name] = value;
    Json rows = Json::array();
    for (const job::EvidenceRow& row : evidence.rows) {
        rows.push_back({{"table", row.table},
                        {"id", row.id},
                        {"rank", row.rank < 0 ? Json(nullptr) : Json(row.rank)},
                        {"note", row.note}});
    }
    return {{"facts", evidence.facts}, {"numbers", numbers}, {"rows", rows}};
}

Json findingJson(const Report& report, const job::Finding& f) {
    std::set<std::string> hosts;
    for (int rank : f.ranks) {
        const auto host = report.hostOfRank.find(rank);
        if (host != report.hostOfRank.end() && !host->second.empty()) hosts.insert(host->second);
    }
    Json json;
    json["id"] = f.id;
    json["or"] = f.alternatives;
    json["title"] = f.title;
    json["severity"] = f.severity;
    json["ranks"] = f.ranks;
    json["affected_ranks"] = f.affectedRanks;
    json["hosts"] = hosts;
    json["communicator"] = orNull(f.communicator);
    json["group"] = f.communicator ? Json(groupText(report, *f.communicator)) : Json(nullptr);
    json["steps"] = f.steps;
    json["window_ns"] = f.windowEndNs > f.windowStartNs ? Json::array({f.windowStartNs, f.windowEndNs}) : Json(nullptr);
    json["cause"] = f.cause;
    json["evidence"] = evidenceJson(f.evidence);
    json["fix"] = f.fix;
    json["saving_ns_per_step"] = f.savingNs ? Json(whole(f.savingNs->expected)) : Json(nullptr);
    json["saving_interval_ns"] = f.savingNs ? Json{whole(f.savingNs->low), whole(f.savingNs->high)} : Json(nullptr);
    json["saving_source"] = f.savingNs ? Json("replay") : Json(nullptr);
    json["why_saving_unknown"] = f.savingNs ? Json(nullptr) : Json(f.whyNotPlayed);
    json["cost_ns_per_step"] = whole(f.costNs);
    json["changes"] = Json::array();
    for (const job::Change& change : f.changes) json["changes"].push_back(change.text());
    json["confidence"] = nullptr;  // how often it is right on jobs nobody tuned it for has not been measured
    json["verdict"] = f.verdict == job::Verdict::inconclusive ? "inconclusive"
                      : f.verdict == job::Verdict::note       ? "note"
                                                              : "found";
    json["why_note"] = f.verdict == job::Verdict::note ? Json(whyNoteText(f)) : Json(nullptr);
    json["why_inconclusive"] = f.verdict == job::Verdict::inconclusive ? Json(f.whyInconclusive) : Json(nullptr);
    return json;
}

Json breakdownJson(const BreakdownRow& row) {
    return {{"rank", row.rank},
            {"compute_ns", row.total.computeNs},
            {"exposed_comm_ns", row.total.exposedCommNs()},
            {"exposed_wait_ns", row.splitKnown ? Json(row.total.exposedWaitNs) : Json(nullptr)},
            {"exposed_transfer_ns", row.splitKnown ? Json(row.total.exposedTransferNs) : Json(nullptr)},
            {"late_transfer_ns", row.splitKnown ? Json(row.total.lateTransferNs) : Json(nullptr)},
            {"overlapped_comm_ns", row.total.overlappedCommNs},
            {"memory_ns", row.total.memoryNs},
            {"idle_ns", row.total.idleNs},
            {"step_ns", row.total.stepNs},
            {"idle_by_cause_ns", row.idleByCauseNs}};
}

Json collectiveJson(const CollectiveRow& row) {
    Json last = Json::array();
    for (const auto& [rank, count] : row.lastRanks) last.push_back({{"rank", rank}, {"count", count}});
    return {{"communicator", orNull(row.communicator)},
            {"communicator_name", orNull(row.communicatorName)},
            {"group", orNull(row.group)},
            {"ranks", row.ranks},
            {"op", row.op},
            {"size_class", row.sizeClass},
            {"count", row.count},
            {"bytes", orNull(row.bytes)},
            {"wait_ns", orNull(row.waitNs)},
            {"transfer_ns", orNull(row.transferNs)},
            {"wait_ns_per_rank_and_step", wholeOrNull(row.waitNsPerRankStep)},
            {"transfer_ns_per_rank_and_step", wholeOrNull(row.transferNsPerRankStep)},
            {"algbw", orNull(row.algbw)},
            {"busbw", orNull(row.busbw)},
            {"algo", orNull(row.algorithm)},
            {"proto", orNull(row.protocol)},
            {"alpha_ns", orNull(row.alphaNs)},
            {"crossover_bytes", orNull(row.crossoverBytes)},
            {"fit_source", orNull(row.fitSource)},
            {"last_ranks", last}};
}

Json efficiencyJson(const Efficiency& efficiency) {
    return {{"parallel", orNull(efficiency.parallel)},
            {"load_balance", orNull(efficiency.loadBalance)},
            {"serialisation", orNull(efficiency.serialisation)},
            {"transfer", orNull(efficiency.transfer)}};
}

Json replayJson(const ReplaySection& replay) {
    Json path = Json::object();
    for (const auto& [category, ns] : replay.criticalPathNs) path[category + "_ns"] = whole(ns);
    Json ranks = Json::array();
    for (const auto& [rank, ns] : replay.criticalRanksNs) ranks.push_back({{"rank", rank}, {"ns", whole(ns)}});
    Json ceiling = nullptr;
    if (const std::optional<diagnose::Ceiling>& all = replay.ceiling)
        ceiling = {{"saving_ns_per_step", whole(all->savingNs.expected)},
                   {"saving_interval_ns", Json::array({whole(all->savingNs.low), whole(all->savingNs.high)})},
                   {"share", all->share},
                   {"findings", all->findings}};
    return {{"predicted_step_ns", wholeOrNull(replay.predictedStepNs)},
            {"measured_step_ns", wholeOrNull(replay.measuredStepNs)},
            {"error", orNull(replay.error)},
            {"critical_path", path},
            {"critical_ranks", ranks},
            {"unavailable", orNull(replay.unavailable)},
            {"notes", replay.notes},
            {"ceiling", ceiling}};
}

Json boundJson(const Bound& bound) {
    const auto share = [&](double value) { return bound.isMeasured ? Json(value) : Json(nullptr); };
    return {{"verdict", toText(bound.by)},
            {"of", !bound.isMeasured ? Json(nullptr) : Json(bound.isOfPath ? "critical path" : "ranks' time")},
            {"compute", share(bound.compute)},
            {"communication", share(bound.communication)},
            {"memory", share(bound.memory)},
            {"host", share(bound.host)},
            {"rest", share(bound.rest)}};
}

Json memoryJson(const MemoryRow& row) {
    return {{"rank", row.rank},
            {"peak_bytes", orNull(peakOf(row))},
            {"device_bytes", orNull(row.deviceBytes)},
            {"left_bytes", orNull(marginOf(row))},
            {"source", sourceOf(row)},
            {"held_bytes", orNull(row.heldBytes)},
            {"used_bytes", orNull(row.usedBytes)},
            {"sampled_bytes", orNull(row.sampledBytes)}};
}

Json linkClassJson(const std::optional<costs::LinkClass>& link) {
    if (!link) return nullptr;
    return {{"gbps", link->bytesPerNs},
            {"alpha_us", link->alphaNs > 0 ? Json(link->alphaNs / 1000) : Json(nullptr)},
            {"kind", toText(link->kind)},
            {"medium", link->medium != costs::LinkMedium::unknown ? Json(toText(link->medium)) : Json(nullptr)},
            {"source", link->source}};
}

Json linkPeaksJson(const costs::LinkPeaks& peaks) {
    return {{"intra", linkClassJson(peaks.intra)}, {"inter", linkClassJson(peaks.inter)}};
}

Json unexplainedJson(const diagnose::Unexplained& open) {
    Json waitedFor = Json::array(), shares = Json::array();
    for (const diagnose::WaitedFor& waited : open.waitedFor) {
        waitedFor.push_back(waited.rank);
        shares.push_back(waited.share);
    }
    return {{"category", toText(open.category)},
            {"share", open.share},
            {"ns_per_step", whole(open.nsPerStep)},
            {"ranks", open.ranks},
            {"waited_for", waitedFor},
            {"waited_for_shares", shares},
            {"facts", open.facts},
            {"settle", open.settle}};
}

Json accountJson(const diagnose::Account& account) {
    const auto part = [](const diagnose::AccountPart& p) {
        return Json{{"by", p.by}, {"finding", p.finding}, {"share", p.share}};
    };
    return {{"category", toText(account.category)},
            {"share", account.share},
            {"parts", arrayOf(account.parts, part)},
            {"unexplained", account.unexplained}};
}

}  // namespace

std::string renderFindingJson(const Report& report, const job::Finding& finding) {
    return text::jsonLine(findingJson(report, finding));
}

std::string renderJson(const Report& r) {
    const auto finding = [&](const job::Finding& f) { return findingJson(r, f); };
    Json json;
    json["schema"] = "rankscope.report/1";
    json["run"] = {{"name", orNull(r.run.name)},
                   {"world_size", orNull(r.run.worldSize)},
                   {"ranks", r.run.ranks},
                   {"hosts", r.run.hosts.empty() ? Json(nullptr) : Json(r.run.hosts)},
                   {"source", r.run.source},
                   {"virtual", r.run.isVirtual},
                   {"duration_ns", r.run.durationNs},
                   {"steps", r.run.steps},
                   {"step_source", r.run.stepSource},
                   {"failed", r.failed},
                   {"overhead", orNull(r.run.overheadNs)}};
    json["step_time"] = {{"ns", r.run.stepNs > 0 ? Json(whole(r.run.stepNs)) : Json(nullptr)},
                         {"estimator", "median"},
                         {"steps", r.run.steps}};
    const facts::Pipeline* pipeline = toldPipeline(r.layout);
    json["layout"] = {{"dp", orNull(r.layout.dp)},
                      {"tp", orNull(r.layout.tp)},
                      {"pp", orNull(r.layout.pp)},
                      {"ep", orNull(r.layout.ep)},
                      {"zero", orNull(r.layout.zero)},
                      {"zero_or", orNull(r.layout.zeroOr)},
                      {"schedule", r.layout.schedule},
                      {"confidence", r.layout.confidence},
                      {"sp", orNull(r.layout.sp)},
                      {"shard", orNull(r.layout.shard)},
                      {"replicate", orNull(r.layout.replicate)},
                      {"micro_batches", pipeline ? Json(pipeline->microBatches) : Json(nullptr)},
                      {"virtual_stages", pipeline ? Json(pipeline->virtualStages) : Json(nullptr)},
                      {"confidences", r.layout.confidences}};
    json["clock"] = {{"method", r.clock.method}, {"max_offset_ns", r.clock.maxOffsetNs}, {"bound_ns", r.clock.boundNs}};
    json["link_peak_source"] = orNull(r.linkPeaks.source);
    json["link_peaks"] = linkPeaksJson(r.linkPeaks);
    json["steps"] = arrayOf(r.steps, [](const StepRow& s) {
        return Json{{"index", s.index}, {"start_ns", s.startNs}, {"dur_ns", s.durNs}, {"warm_up", s.warmUp}};
    });
    json["breakdown"] = arrayOf(r.breakdown, breakdownJson);
    json["efficiency"] = efficiencyJson(r.efficiency);
    json["efficiency"]["groups"] = arrayOf(r.efficiency.groups, [](const GroupEfficiency& group) {
        Json row{{"communicator", group.communicator}, {"role", group.role}, {"ranks", group.ranks}};
        row.update(efficiencyJson(group));
        return row;
    });
    json["collectives"] = arrayOf(r.collectives, collectiveJson);
    json["volumes"] = arrayOf(r.volumes, [](const VolumeRow& row) {
        const auto bytes = [](const std::optional<double>& value) {
            return value ? Json(whole(*value)) : Json(nullptr);
        };
        return Json{{"strategy", row.strategy},
                    {"bytes", bytes(row.busBytes)},
                    {"expected_bytes", bytes(row.expectedBytes)},
                    {"formula", orNull(row.formula)},
                    {"why_not_expected", orNull(row.open)},
                    {"gradient_bytes", bytes(row.gradientBytes)},
                    {"reductions_of_each", orNull(row.reductions)},
                    {"broadcast_bytes", bytes(row.toldBytes)},
                    {"gatherings_per_reduction", orNull(row.gatherings)},
                    {"adam_state_bytes", bytes(row.adamStateBytes)}};
    });
    json["replay"] = replayJson(r.replay);
    json["bound_by"] = boundJson(r.bound);
    json["memory"] = arrayOf(r.memory, memoryJson);
    json["findings"] = arrayOf(r.findings, finding);
    json["notes"] = arrayOf(r.notes, finding);
    json["unexplained"] = arrayOf(r.accounting.unexplained, unexplainedJson);
    json["accounts"] = arrayOf(r.accounting.accounts, accountJson);
    json["delays"] = arrayOf(r.delays.byRank, [](const job::Delay& delay) {
        return Json{{"rank", delay.rank},
                    {"ns_per_step", whole(delay.nsPerStep())},
                    {"waiting_ns", whole(delay.waitingNs)},
                    {"transfer_ns", whole(delay.transferNs)},
                    {"ranks", delay.victims},
                    {"share", delay.share}};
    });
    json["not_judged"] = arrayOf(r.notJudged, [](const diagnose::NotJudged& open) {
        return Json{{"id", open.id}, {"needs", open.needs}};
    });
    json["loss"] = arrayOf(r.losses, [](const LossRow& l) {
        return Json{{"kind", l.kind},
                    {"severity", l.severity},
                    {"count", l.count},
                    {"rank", orNull(l.rank)},
                    {"what_it_means", l.meaning}};
    });
    return text::jsonText(json);
}

std::string renderLinkPeaksJson(const Report& report) {
    Json json = linkPeaksJson(report.linkPeaks);
    json["text"] = costs::linkPeaksText(report.linkPeaks, report.run.hosts.size());
    json["warnings"] = report.linkPeaks.warnings;
    return text::jsonLine(json);
}

}  // namespace rankscope::report
