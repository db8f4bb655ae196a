// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/facts/loss_kinds.h"
#include "analyzer/report/sentences.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::report {
namespace {

const char* words(diagnose::Exposed category) {
    switch (category) {
        case diagnose::Exposed::waiting:
            return "waiting for other ranks";
        case diagnose::Exposed::transfer:
            return "transfer that nothing hides";
        case diagnose::Exposed::communication:
            return "communication that nothing hides, waiting or transfer";
        case diagnose::Exposed::memory:
            return "copies that nothing hides";
        case diagnose::Exposed::idle:
            break;
    }
    return "idle";
}

std::string waitedForText(const std::vector<diagnose::WaitedFor>& waitedFor) {
    std::string text;
    for (const diagnose::WaitedFor& waited : waitedFor)
        text += fmt::format(", {:.0f} % of it for rank {}", 100 * waited.share, waited.rank);
    return text;
}

bool recordsAreMissing(const Report& report) {
    return std::ranges::any_of(report.losses, [](const LossRow& loss) {
        return loss.severity != "info" && facts::isOfMissingRecords(loss.kind);
    });
}

bool areRecordingsApart(const Report& report) {
    return std::ranges::any_of(report.losses, [](const LossRow& loss) { return loss.kind == facts::kRecordingsApart; });
}

/// " from step 7 on" of what costs the steps since then alone; else empty.
std::string sinceText(const job::Finding& finding) {
    for (const auto& [name, step] : finding.evidence.numbers)
        if (name == "from_step" && finding.meanStepNs > 0) return fmt::format(" from step {:.0f} on", step);
    return {};
}

std::string everyStepText(const job::Finding& finding) {
    const std::string since = sinceText(finding);
    return finding.meanStepNs > 0 && since.empty() ? "the mean step" : "every step" + since;
}

}  // namespace

std::vector<std::string> unexplainedSentences(const diagnose::Accounting& accounting) {
    std::vector<std::string> sentences;
    for (const diagnose::Unexplained& open : accounting.unexplained)
        sentences.push_back(
            fmt::format("Unexplained: {} of the step is {} ({}){}, and no finding accounts for it. To settle it: {}.",
                        text::percentText(open.share), words(open.category), text::ranksText(open.ranks),
                        waitedForText(open.waitedFor), open.settle));
    return sentences;
}

std::vector<std::string> unexplainedFacts(const diagnose::Accounting& accounting) {
    std::vector<std::string> facts;
    for (const diagnose::Unexplained& open : accounting.unexplained)
        facts.insert(facts.end(), open.facts.begin(), open.facts.end());
    return facts;
}

std::string saidText(const diagnose::Accounting& accounting) {
    std::string text;
    for (const diagnose::Account& account : accounting.said) {
        text += fmt::format("{}{} of the step is {}", text.empty() ? "" : "; ", text::percentText(account.share),
                            words(account.category));
        for (size_t i = 0; i < account.parts.size(); ++i)
            text += fmt::format("{} {} {}", i == 0 ? ":" : ",", text::percentText(account.parts[i].share),
                                account.parts[i].by);
        if (account.unexplained >= 0.0005) text += fmt::format(", {} the rest", text::percentText(account.unexplained));
    }
    return text;
}

std::vector<std::string> notJudgedLines(const std::vector<diagnose::NotJudged>& notJudged) {
    std::vector<std::pair<std::string, std::string>> byNeed;  // need, ids
    for (const diagnose::NotJudged& open : notJudged) {
        const auto known = std::ranges::find_if(byNeed, [&](const auto& entry) { return entry.first == open.needs; });
        if (known == byNeed.end()) {
            byNeed.emplace_back(open.needs, open.id);
        } else {
            known->second += ", " + open.id;
        }
    }
    std::vector<std::string> lines;
    for (const auto& [need, ids] : byNeed) lines.push_back(ids + ": " + need);
    return lines;
}

bool isClean(const Report& report) {
    return (report.run.stepNs > 0 || report.run.isRecorder) && report.findings.empty() && !recordsAreMissing(report) &&
           report.accounting.unexplained.empty();
}

std::string nothingInDumpsText(const Report& report) {
    std::string text = recordsAreMissing(report) ? "No finding in the dumps that are here: " : "No finding: ";
    text += "members of a group called the same, and nobody waits for one that did not come.";
    if (report.run.openCalls > 0)
        text += fmt::format(
            " {} had not ended when the dumps were written, though all that are known of had come: they were on their "
            "way, or hang in the transfer itself, which dumps do not tell apart.",
            text::countedText(report.run.openCalls, "call"));
    return text;
}

std::string nothingFoundText(const Report& report) {
    if (!report.death.empty())
        return report.death +
               (report.findings.empty() ? "" : " What follows is of the steps before, and inconclusive.");
    if (report.run.isRecorder && report.findings.empty()) return nothingInDumpsText(report);
    if (report.run.isRecorder)
        return "No certain finding: what follows is inconclusive, and says what would settle it.";
    if (areRecordingsApart(report) && report.findings.empty())
        return "Nothing was judged: the ranks were recorded at different times. Import those of one run by themselves.";
    if (report.run.stepNs <= 0) return "No finding: no device activity was recorded, there is nothing to analyse.";
    std::string text;
    for (const std::string& sentence : unexplainedSentences(report.accounting))
        text += (text.empty() ? "" : " ") + sentence;
    if (!report.findings.empty())
        return "No certain finding: what follows is inconclusive, and says what would settle it." +
               (text.empty() ? text : " " + text);
    const bool missing = recordsAreMissing(report);
    if (!text.empty()) return text + (missing ? " Records are missing, so that a cause may hide in them." : "");
    if (missing) return "No finding in what was recorded; records are missing, so that a cause may hide in them.";
    if (const std::string said = saidText(report.accounting); !said.empty())
        return "Nothing to repair: no diagnosis that Rankscope knows costs 3 % of the step or more. But " + said + ".";
    if (report.notJudged.empty()) return "No finding: nothing that Rankscope knows costs 3 % of the step or more.";
    return fmt::format(
        "No finding: nothing that could be judged costs 3 % of the step or more; {} diagnos{} could not be.",
        report.notJudged.size(), report.notJudged.size() == 1 ? "is" : "es");
}

size_t certainFindings(const Report& report) {
    return static_cast<size_t>(std::ranges::count(report.findings, job::Verdict::found, &job::Finding::verdict));
}

std::string worthText(const Report& report, const job::Finding& finding) {
    if (diagnose::familyOf(finding.id) == diagnose::Family::hang) {
        const bool isOver = !report.run.isDump;
        if (finding.verdict == job::Verdict::inconclusive)
            return isOver ? "it may have ended the job" : "the job may have stood still by it";
        if (finding.severity < 1) return "its results are wrong";
        return isOver ? "it ended the job" : "the job stood still by it";
    }
    const std::string since = sinceText(finding);
    return fmt::format("{} of the {}step{}", text::percentText(finding.severity),
                       finding.meanStepNs > 0 && since.empty() ? "mean " : "", since);
}

std::string savingText(const Report& report, const job::Finding& finding) {
    if (diagnose::familyOf(finding.id) == diagnose::Family::hang) return "the job";
    const std::string share = text::percentText(job::savingShare(finding, report.run.stepNs));
    if (!finding.savingNs)
        return fmt::format("unknown, since {}; the cause was seen to take {} per step ({})", finding.whyNotPlayed,
                           text::durationText(finding.costNs), share);
    return fmt::format("{} per step ({}; {} to {}), replayed", text::durationText(finding.savingNs->expected), share,
                       text::durationText(finding.savingNs->low), text::durationText(finding.savingNs->high));
}

std::string whyNoteText(const job::Finding& note) {
    if (!note.whyNote.empty()) return note.whyNote;
    return fmt::format("under {} of the step",
                       text::percentText(std::max(note.leastShare, diagnose::PriceThresholds::kFloorShare)));
}

std::string noteText(const job::Finding& note) {
    return fmt::format("{} {}: {} ({}: {})", note.id, note.title, note.cause, text::percentText(note.severity),
                       whyNoteText(note));
}

namespace {

/// What came once is no finding, however long it was; that it took so much of the recording is said.
std::string onceText(const Report& report) {
    std::string text;
    for (const job::Finding& note : report.notes) {
        if (note.id != diagnose::kTransient.id || note.steps.size() != 1 ||
            note.severity < diagnose::PriceThresholds::kFloorShare)
            continue;
        text += fmt::format(" Once, in step {}, {} stalled: that took {} of the time of all steps ({} in the notes).",
                            note.steps.front(), text::ranksText(note.ranks), text::percentText(note.severity), note.id);
    }
    return text;
}

std::string findingsText(const Report& report) {
    const size_t found = certainFindings(report);
    if (found == 0) return nothingFoundText(report);
    const job::Finding& first = *std::ranges::find(report.findings, job::Verdict::found, &job::Finding::verdict);
    if (diagnose::familyOf(first.id) == diagnose::Family::hang)
        return fmt::format("{} finding{}. {}: {}.", found, found == 1 ? "" : "s",
                           first.severity < 1 ? "The job's results are wrong" : "The job failed", first.cause);
    if (report.run.stepNs <= 0) return nothingFoundText(report);
    std::string text = report.death.empty() ? "" : report.death + " Of the steps before: ";
    text += fmt::format("{} finding{}. The first costs {} of {}: {}.", found, found == 1 ? "" : "s",
                        text::percentText(first.severity), everyStepText(first), first.cause);
    for (const std::string& sentence : unexplainedSentences(report.accounting)) text += " " + sentence;
    return text;
}

}  // namespace

std::string verdictText(const Report& report) {
    return findingsText(report) + onceText(report);
}

}  // namespace rankscope::report
