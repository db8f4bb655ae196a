// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/report/html/report_sections.h"
#include "analyzer/report/sentences.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::report::html {
namespace {

/// The host too, where all of them are on one.
std::string whereText(const Report& report, const job::Finding& finding) {
    std::string host;
    for (const int rank : finding.ranks) {
        const auto at = report.hostOfRank.find(rank);
        if (at == report.hostOfRank.end() || (!host.empty() && at->second != host))
            return text::ranksText(finding.ranks);
        host = at->second;
    }
    return text::ranksText(finding.ranks) + (host.empty() ? "" : " on " + host);
}

std::string costLine(const Report& report, const job::Finding& finding) {
    std::string out = fmt::format("<p class=\"cost\"><b>{}</b>", worthText(report, finding));
    return out + "; predicted saving: " + text::markupText(savingText(report, finding)) + "</p>\n";
}

/// A fix is a sentence ("span"), a command is code ("code"); both can be copied.
std::string copyable(const std::string& text, std::string_view element) {
    return fmt::format(
        "<div class=\"fix\"><{0}>{1}</{0}><button type=\"button\" class=\"copy\" hidden>Copy</button></div>\n", element,
        text::markupText(text));
}

std::string explanation(const std::string& id) {
    const diagnose::Diagnosis* entry = diagnose::findDiagnosis(id);
    if (entry == nullptr) return {};
    std::string out = fmt::format("<details><summary>What is {}?</summary><div class=\"inside\"><p>{}</p>\n",
                                  text::markupText(entry->id), text::markupText(entry->definition));
    if (entry->detect != nullptr) {
        out += "<h4>Thresholds</h4><ul>";
        for (const diagnose::Threshold& threshold : diagnose::thresholdsOf(*entry))
            out += fmt::format("<li>{}: {:.4g} {} ({})</li>", text::markupText(threshold.name), threshold.value,
                               text::markupText(threshold.unit), text::markupText(threshold.reason));
        out += "</ul>\n";
    }
    if (*entry->falsePositives != '\0')
        out += "<h4>What looks like it</h4><p>" + text::markupText(entry->falsePositives) + "</p>\n";
    return out + "</div></details>\n";
}

}  // namespace

std::string findingCard(const Report& report, const job::Finding& finding) {
    const bool isOpen = finding.verdict == job::Verdict::inconclusive;
    std::string out =
        fmt::format("<article class=\"finding{}\"><h3><span class=\"id\">{}</span>{}{}</h3>\n",
                    isOpen ? " inconclusive" : "", text::markupText(finding.id), text::markupText(finding.title),
                    isOpen ? " <span class=\"badge warn\">inconclusive</span>" : "");
    out += costLine(report, finding);
    out += fmt::format("<p>{}.</p>\n", text::markupText(finding.cause));
    if (!finding.whyInconclusive.empty())
        out += fmt::format("<p><b>Inconclusive:</b> {}.</p>\n", text::markupText(finding.whyInconclusive));
    out += "<h4>Where</h4><p>" + text::markupText(whereText(report, finding));
    if (finding.communicator) out += ", " + text::markupText(groupText(report, *finding.communicator));
    if (!finding.affectedRanks.empty() && finding.affectedRanks != finding.ranks)
        out += "; waiting: " + text::markupText(text::ranksText(finding.affectedRanks));
    out += "</p>\n";
    if (!finding.evidence.facts.empty() || finding.windowEndNs > finding.windowStartNs) {
        out += "<h4>Evidence</h4><ul>";
        for (const std::string& fact : finding.evidence.facts) out += "<li>" + text::markupText(fact) + "</li>";
        if (finding.windowEndNs > finding.windowStartNs) out += "<li>" + bestSeenText(report, finding) + "</li>";
        out += "</ul>\n";
    }
    if (!finding.fix.empty()) out += "<h4>Fix</h4>\n";
    for (const std::string& fix : finding.fix) out += copyable(fix, "span");
    if (finding.savingNs) {
        std::string command = "rankscope whatif " + text::shellWord(report.run.name.empty() ? "NAME" : report.run.name);
        out += "<h4>What if</h4>\n" + copyable(command + job::asOptions(finding.changes), "code");
    }
    return out + explanation(finding.id) + "</article>\n";
}

}  // namespace rankscope::report::html
