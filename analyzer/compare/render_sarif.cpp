// SPDX-License-Identifier: Apache-2.0
// Static Analysis Results Interchange Format (SARIF) 2.1.0, OASIS standard.
#include <fmt/format.h>

#include <map>

#include "analyzer/compare/renderers.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/compare/summary_file.h"
#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/text/json_text.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::compare {
namespace {

using text::Json;

constexpr const char* kStepRule = "step-time";
// Viewers show results at a file of the repository. The cause lies in no file; this is the one in which a finding can
// be allowed.
constexpr const char* kPlace = "rankscope.toml";

Json text(const std::string& words) {
    return {{"text", text::plainText(words)}};
}

/// Is the same for the same finding from run to run: numbers in its cause do not matter.
std::string fingerprint(const std::string& identity) {
    return fmt::format("{:016x}", contentHash(identity));
}

/// Rules in the order of their first result.
class Rules {
  public:
    size_t index(const std::string& id, const std::string& title) {
        const auto [at, isNew] = m_index.try_emplace(id, m_rules.size());
        if (isNew) m_rules.push_back(rule(id, title));
        return at->second;
    }
    const Json& json() const { return m_rules; }

  private:
    static Json rule(const std::string& id, const std::string& title) {
        Json rule = {{"id", text::plainText(id)}, {"name", text::plainText(title)}, {"shortDescription", text(title)}};
        const diagnose::Diagnosis* entry = diagnose::findDiagnosis(id);
        const bool isStep = id == kStepRule;
        rule["fullDescription"] = text(entry != nullptr ? std::string(entry->definition)
                                       : isStep         ? "The step of the job takes longer than in the base."
                                                        : title);
        rule["help"] = text(entry != nullptr ? std::string(entry->fix) + "\nrankscope explain " + id + " tells more."
                                             : "rankscope compare tells what carries the change.");
        rule["defaultConfiguration"] = {{"level", isStep ? "error" : "warning"}};
        return rule;
    }

    Json m_rules = Json::array();
    std::map<std::string, size_t> m_index;
};

Json location(const std::string& where) {
    Json place = {
        {"physicalLocation",
         {{"artifactLocation", {{"uri", kPlace}, {"uriBaseId", "%SRCROOT%"}}}, {"region", {{"startLine", 1}}}}}};
    if (!where.empty())
        place["logicalLocations"] =
            Json::array({{{"fullyQualifiedName", text::plainText(where)}, {"kind", "resource"}}});
    return Json::array({place});
}

const char* baselineState(FindingStatus status) {
    if (status == FindingStatus::isNew) return "new";
    if (status == FindingStatus::gone) return "absent";
    return status == FindingStatus::present || status == FindingStatus::same ? "unchanged" : "updated";
}

Json stepResult(const Comparison& c, Rules& rules) {
    Json result = {{"ruleId", kStepRule},
                   {"ruleIndex", rules.index(kStepRule, "slower step")},
                   {"level", stepFailsGate(c) ? "error" : "warning"},
                   {"message", text(c.step.reason + causeLines(c, ": "))},
                   {"locations", location("")},
                   {"partialFingerprints", {{"rankscope/v1", fingerprint(kStepRule)}}},
                   {"baselineState", "new"}};
    if (c.step.baseNs && c.step.newNs) result["properties"] = {{"base_ns", *c.step.baseNs}, {"new_ns", *c.step.newNs}};
    return result;
}

Json findingResult(const Comparison& c, const FindingChange& finding, Rules& rules) {
    const bool isGone = finding.status == FindingStatus::gone;
    Json result = {{"ruleId", text::plainText(finding.id)},
                   {"ruleIndex", rules.index(finding.id, finding.title)},
                   {"level", failsGate(c, finding)                    ? "error"
                             : isGone                                 ? "none"
                             : isTrouble(finding) && !finding.allowed ? "warning"
                                                                      : "note"},
                   {"message", text(findingName(finding) + ": " + findingBody(finding))},
                   {"locations", location(finding.where)},
                   {"partialFingerprints", {{"rankscope/v1", fingerprint(finding.knownAs + "\n" + finding.where)}}},
                   {"baselineState", baselineState(finding.status)}};
    if (isGone) result["kind"] = "pass";
    if (!finding.alternatives.empty()) result["properties"] = {{"or", finding.alternatives}};
    if (finding.allowed)
        result["suppressions"] =
            Json::array({{{"kind", "external"}, {"justification", "allowed by --allow or rankscope.toml"}}});
    return result;
}

}  // namespace

std::string renderComparisonSarif(const Comparison& c) {
    Rules rules;
    Json results = Json::array();
    if (c.step.verdict == StepVerdict::regression) results.push_back(stepResult(c, rules));
    for (const FindingChange* finding : firstFindings(c, kMostPrintedFindings))
        results.push_back(findingResult(c, *finding, rules));

    Json notifications = Json::array();
    const auto notify = [&](const char* level, const std::string& words) {
        notifications.push_back({{"level", level}, {"message", text(words)}});
    };
    if (c.step.verdict != StepVerdict::regression) notify("note", c.step.reason);
    for (const std::string& notice : c.gate.notices) notify("note", notice);
    if (const std::string rest = leftOutText(c, kMostPrintedFindings); !rest.empty()) notify("warning", rest);

    Json run;
    run["tool"] = {{"driver", {{"name", "Rankscope"}, {"rules", rules.json()}}}};
    run["originalUriBaseIds"] = {{"%SRCROOT%", {{"description", text("The root of the repository.")}}}};
    run["invocations"] = Json::array({{{"executionSuccessful", true}, {"toolExecutionNotifications", notifications}}});
    run["columnKind"] = "unicodeCodePoints";
    run["results"] = results;
    const Json log = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                      {"version", "2.1.0"},
                      {"runs", Json::array({run})}};
    return text::jsonText(log);
}

}  // namespace rankscope::compare
