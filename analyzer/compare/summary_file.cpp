// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/summary_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>

#include "analyzer/compare/summary_object.h"
#include "analyzer/text/json_text.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::compare {
namespace {

using text::arrayOf;
using text::Json;               // written: the same order every time
using Parsed = nlohmann::json;  // read: a lookup that does not walk all keys

constexpr double kShortestStepNs = 1;          // clocks tick in ns
constexpr int kLargestSizeClass = 31;          // of 4^31 bytes and more: the largest that an int64_t counts
constexpr uintmax_t kLargestFile = 16u << 20;  // some kilobytes per rank: ten thousand of them

/// Times to the nanosecond, other numbers to six digits: a summary is small, and the same on every machine.
double rounded(double value) {
    if (!std::isfinite(value)) return 0;
    if (std::abs(value) >= 1e6) return std::round(value);
    return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

Json roundedOrNull(const std::optional<double>& value) {
    return value ? Json(rounded(*value)) : Json(nullptr);
}

Json numbersJson(const std::map<std::string, double>& numbers) {
    Json json = Json::object();
    for (const auto& [name, value] : numbers) json[name] = rounded(value);
    return json;
}

/// Writes numbers in the order of the summary's kernels, which have the names.
Json workJson(const RoleSummary& role, const std::vector<KernelSummary>& kernels, double KernelWork::*part) {
    Json json = Json::array();
    for (size_t i = 0; i < std::min(RunSummary::kMostKernelsOfARank, kernels.size()); ++i) {
        const auto work = role.work.find(kernels[i].name);
        json.push_back(work == role.work.end() ? 0 : rounded(work->second.*part));
    }
    return json;
}

template <typename Row, size_t Size>
void addNumbers(const Row& row, const NumberField<Row> (&fields)[Size], Json& json) {
    for (const NumberField<Row>& field : fields) json[field.name] = rounded(row.*field.member);
}

template <typename Row, size_t Size>
void readNumbers(const SummaryObject& r, const NumberField<Row> (&fields)[Size], Row& row) {
    for (const NumberField<Row>& field : fields)
        row.*field.member = field.maySink ? r.signedNumber(field.name) : r.number(field.name);
}

Json roleJson(const RoleSummary& role, const std::vector<KernelSummary>& kernels) {
    Json json = {{"role", role.role}, {"rank", role.rank}, {"stage", role.stage}, {"host", role.host}};
    addNumbers(role, kRoleNumbers, json);
    json["idle_by_cause_ns"] = numbersJson(role.idleByCauseNs);
    json["stall_by_cause_ns"] = numbersJson(role.stallByCauseNs);
    json["path_ns"] = numbersJson(role.pathNs);
    json["kernel_ns"] = workJson(role, kernels, &KernelWork::ns);
    json["kernel_blocks"] = workJson(role, kernels, &KernelWork::blocks);
    return json;
}

Json trafficJson(const TrafficSummary& row) {
    Json json = {{"use", row.use},     {"op", row.op},       {"dtype", row.dataType},
                 {"ranks", row.ranks}, {"nodes", row.nodes}, {"size_class", row.sizeClass}};
    addNumbers(row, kTrafficNumbers, json);
    json["algo"] = row.algorithm;
    json["proto"] = row.protocol;
    return json;
}

Json findingJson(const FindingSummary& row) {
    return {{"id", row.id},
            {"title", row.title},
            {"verdict", row.verdict},
            {"ranks", row.ranks},
            {"roles", row.roles},
            {"cause", row.cause},
            {"fix", row.fix},
            {"cost_ns", roundedOrNull(row.costNs)},
            {"saving_ns", roundedOrNull(row.savingNs)},
            {"severity", rounded(row.severity)}};
}

Json contentsJson(const RunSummary& summary) {
    Json json;
    json["environment"] = summary.environment;
    json["hosts"] = summary.hosts;
    json["steps"] = summary.steps;
    json["steps_per_sample"] = summary.stepsPerSample;
    json["steps_ns"] = arrayOf(summary.stepsNs, [](double ns) { return Json(rounded(ns)); });
    if (summary.slowStepNs) json["step_p95_ns"] = rounded(*summary.slowStepNs);
    json["roles"] = arrayOf(summary.roles, [&](const RoleSummary& role) { return roleJson(role, summary.kernels); });
    json["traffic"] = arrayOf(summary.traffic, trafficJson);
    json["has_path"] = summary.hasPath;
    json["path_transfer_ns"] = numbersJson(summary.pathTransferNs);
    json["device_loss"] = summary.deviceLoss;
    json["kernels"] = arrayOf(summary.kernels, [](const KernelSummary& k) {
        return Json{{"name", k.name}, {"count", rounded(k.count)}, {"ns", rounded(k.ns)}};
    });
    json["efficiency"] = numbersJson(summary.efficiency);
    json["findings"] = arrayOf(summary.findings, findingJson);
    json["loss"] = arrayOf(summary.losses, [](const report::LossRow& l) {
        return Json{{"kind", l.kind}, {"severity", l.severity}, {"count", l.count}, {"what_it_means", l.meaning}};
    });
    return json;
}

std::string dumped(const Json& json) {
    return text::jsonText(json, 1);
}

RoleSummary readRole(const SummaryObject& r, const std::vector<KernelSummary>& kernels) {
    RoleSummary role;
    role.role = r.text("role");
    role.rank = r.whole("rank");
    role.stage = r.whole("stage", -1);
    role.host = r.text("host");
    readNumbers(r, kRoleNumbers, role);
    role.idleByCauseNs = r.times("idle_by_cause_ns");
    role.stallByCauseNs = r.numbers("stall_by_cause_ns");
    role.pathNs = r.numbers("path_ns");
    const std::vector<double> ns = r.numberList("kernel_ns"), blocks = r.numberList("kernel_blocks");
    for (size_t i = 0; i < std::min({ns.size(), blocks.size(), kernels.size()}); ++i)
        if (ns[i] > 0) role.work[kernels[i].name] = {ns[i], blocks[i]};
    return role;
}

TrafficSummary readTraffic(const SummaryObject& r) {
    TrafficSummary row;
    row.use = r.text("use");
    row.op = r.text("op");
    row.dataType = r.text("dtype");
    row.ranks = r.whole("ranks");
    row.nodes = r.whole("nodes");
    row.sizeClass = std::min(r.whole("size_class", -1), kLargestSizeClass);
    readNumbers(r, kTrafficNumbers, row);
    row.algorithm = r.text("algo");
    row.protocol = r.text("proto");
    return row;
}

FindingSummary readFinding(const SummaryObject& r) {
    FindingSummary row;
    row.id = r.text("id");
    row.title = r.text("title");
    row.verdict = r.text("verdict");
    row.ranks = r.wholeList("ranks");
    row.roles = r.textList("roles");
    row.cause = r.text("cause");
    row.fix = r.textList("fix");
    row.costNs = r.numberOrNull("cost_ns");
    row.savingNs = r.numberIfThere("saving_ns");
    row.severity = r.signedNumber("severity");
    return row;
}

void checkSchema(const Parsed& json, const std::string& origin) {
    const auto schema = json.is_object() ? json.find("schema") : json.end();
    if (schema == json.end() || !schema->is_string())
        throw SummaryError(fmt::format("{}: no summary of a run: it has no schema", origin),
                           "a baseline file is made by: rankscope baseline save NAME --dir DIR");
    const std::string name = text::shortened(schema->get_ref<const std::string&>(), 100);
    if (name == kSummarySchema) return;
    if (name.starts_with("rankscope.run-summary/"))
        throw SummaryError(
            fmt::format("{}: written by another version: {}, this one reads {}", origin, name, kSummarySchema),
            "save the baseline anew with this version: rankscope baseline save NAME --dir DIR");
    throw SummaryError(fmt::format("{}: no summary of a run: its schema is {}", origin, name),
                       "a baseline file is made by: rankscope baseline save NAME --dir DIR");
}

void checkSteps(const RunSummary& summary, const std::string& origin) {
    for (size_t i = 0; i < summary.stepsNs.size(); ++i)
        if (!std::isfinite(summary.stepsNs[i]) || summary.stepsNs[i] < kShortestStepNs)
            throw SummaryError(
                fmt::format("{}: steps_ns[{}] is not the length of a step: {}", origin, i, summary.stepsNs[i]),
                "save it anew: rankscope baseline save NAME --dir DIR");
    if (summary.stepsPerSample < 1 || summary.steps < static_cast<int>(summary.stepsNs.size()))
        throw SummaryError(fmt::format("{}: {} steps do not fit {} samples of {} steps", origin, summary.steps,
                                       summary.stepsNs.size(), summary.stepsPerSample),
                           "save it anew: rankscope baseline save NAME --dir DIR");
}

}  // namespace

std::string renderSummary(const RunSummary& summary) {
    Json json;
    json["schema"] = kSummarySchema;
    json["name"] = summary.name;
    json["label"] = summary.label;
    json["tool_version"] = summary.toolVersion;
    json["start_unix_ns"] = summary.startUnixNs;
    json.update(contentsJson(summary));
    return dumped(json);
}

RunSummary parseSummary(const std::string& text, const std::string& origin) {
    const Parsed json = parseStrictJson(text, origin);
    checkSchema(json, origin);
    const SummaryObject r(json, "", origin);
    RunSummary summary;
    summary.file = origin;
    summary.fromBaseline = true;
    summary.name = r.text("name");
    summary.label = r.text("label");
    summary.toolVersion = r.text("tool_version");
    summary.startUnixNs = r.count("start_unix_ns");
    summary.environment = r.texts("environment");
    summary.hosts = r.textList("hosts");
    summary.steps = r.whole("steps");
    summary.stepsPerSample = r.whole("steps_per_sample");
    summary.stepsNs = r.numberList("steps_ns");
    summary.slowStepNs = r.numberIfThere("step_p95_ns");
    r.each("kernels", [&](const SummaryObject& row) {
        summary.kernels.push_back({row.text("name"), row.number("count"), row.number("ns")});
    });
    r.each("roles", [&](const SummaryObject& row) { summary.roles.push_back(readRole(row, summary.kernels)); });
    r.each("traffic", [&](const SummaryObject& row) { summary.traffic.push_back(readTraffic(row)); });
    summary.hasPath = r.flag("has_path");
    summary.pathTransferNs = r.numbers("path_transfer_ns");
    summary.deviceLoss = r.flag("device_loss");
    summary.efficiency = r.numbers("efficiency");
    r.each("findings", [&](const SummaryObject& row) { summary.findings.push_back(readFinding(row)); });
    r.each("loss", [&](const SummaryObject& row) {
        summary.losses.push_back(
            {row.text("kind"), row.text("severity"), row.count("count"), row.text("what_it_means"), std::nullopt});
    });
    checkSteps(summary, origin);
    return summary;
}

RunSummary readSummary(const std::filesystem::path& file) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (!error && size > kLargestFile)
        throw SummaryError(fmt::format("{}: {} bytes are no summary of a run", file.string(), size), kSaveAnew);
    errno = 0;
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    if (stream.is_open()) text << stream.rdbuf();
    // Of an empty file nothing is put into the text, which is no error.
    const bool isRead = stream.is_open() && (text || errno == 0);
    if (!isRead)
        throw SummaryError(
            fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno != 0 ? errno : EIO)),
            "see who may read it: ls -l " + text::shellWord(file.string()));
    return parseSummary(text.str(), file.string());
}

std::string summaryId(const RunSummary& summary) {
    return fmt::format("{:016x}", contentHash(dumped(contentsJson(summary))));
}

}  // namespace rankscope::compare
