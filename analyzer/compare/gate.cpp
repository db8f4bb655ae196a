// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "analyzer/compare/compare.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/text/lists.h"

namespace rankscope::compare {
namespace {

bool matches(const std::string& pattern, const std::string& id) {
    return fnmatch(pattern.c_str(), id.c_str(), 0) == 0;
}

bool anyMatches(const std::vector<std::string>& patterns, const std::string& id) {
    return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches(pattern, id); });
}

std::string describe(const FindingChange& finding) {
    return fmt::format("{} {} on {}{}: {}", finding.id, finding.title, finding.where, inRunsText(finding),
                       finding.cause);
}

// Words of --fail-on beside diagnoses and patterns of them.
constexpr std::string_view kRegression = "regression", kNewFinding = "new-finding", kUndecided = "undecided",
                           kNoBaseline = "no-baseline", kIncomparable = "incomparable", kNever = "never";
constexpr std::string_view kWords[] = {kRegression, kNewFinding, kUndecided, kNoBaseline, kIncomparable, kNever};
constexpr std::string_view kFinding = "finding:";

/// "RS301" of "finding:RS301".
std::string withoutPrefix(const std::string& word) {
    return word.starts_with(kFinding) ? word.substr(kFinding.size()) : word;
}

class Judge {
  public:
    Judge(Comparison& comparison, const GateOptions& options) : m_comparison(comparison), m_options(options) {
        m_gate.failOn = options.failOn;
    }

    GateResult gate() && {
        const StepVerdict verdict = m_comparison.step.verdict;
        judgeStep();
        for (FindingChange& finding : m_comparison.findings) judgeFinding(finding);
        if (asks(kNever)) pardon();
        m_gate.failed = !m_gate.reasons.empty();
        const bool hasNoOther = verdict == StepVerdict::incomparable || verdict == StepVerdict::noBaseline;
        const bool wantsBase = (asks(kRegression) || asks(kNewFinding)) && !asks(kNever);
        if (m_gate.failed)
            m_gate.conclusion = GateConclusion::failed;
        else if (verdict == StepVerdict::incomparable || (hasNoOther && wantsBase))
            m_gate.conclusion = GateConclusion::notJudged;
        else if (m_comparison.step.isOpen() && asks(kRegression) && !asks(kNever))
            m_gate.conclusion = GateConclusion::undecided;
        m_gate.judged = m_gate.conclusion != GateConclusion::notJudged;
        m_gate.exitStatus = m_gate.failed ? 1 : verdict == StepVerdict::incomparable ? 3 : 0;
        if (!m_gate.failed && verdict == StepVerdict::incomparable)
            m_gate.notices.push_back("nothing is known of a regression: " + m_comparison.step.reason);
        return std::move(m_gate);
    }

  private:
    bool asks(std::string_view word) const { return text::contains(m_options.failOn, word); }

    void judgeStep() {
        const StepTimeChange& step = m_comparison.step;
        const auto failIf = [&](std::string_view word, bool isSo) {
            if (isSo && asks(word)) m_gate.reasons.push_back(step.reason);
            return isSo && !asks(word);
        };
        if (failIf(kRegression, step.verdict == StepVerdict::regression))
            m_gate.notices.push_back(fmt::format("not failed, as --fail-on {} does not name regression: {}",
                                                 fmt::join(m_options.failOn, ","), step.reason));
        if (failIf(kUndecided, step.isOpen()) && asks(kRegression))
            m_gate.notices.push_back("the gate cannot tell a regression: " + step.reason);
        failIf(kNoBaseline, step.verdict == StepVerdict::noBaseline);
        failIf(kIncomparable, step.verdict == StepVerdict::incomparable);
    }

    void judgeFinding(FindingChange& finding) {
        // Of a job that must not be compared with this one nothing tells whether a finding is news.
        const bool asNew = asks(kNewFinding) && finding.status == FindingStatus::isNew &&
                           m_comparison.step.verdict != StepVerdict::incomparable;
        const bool asDiagnosis = finding.now.runs > 0 && std::ranges::any_of(m_options.failOn, [&](const auto& word) {
                                     return matches(withoutPrefix(word), finding.id);
                                 });
        finding.allowed = anyMatches(m_options.allow, finding.id);
        if (!asNew && !asDiagnosis) return;
        finding.failed = !finding.allowed;
        if (finding.allowed)
            m_gate.allowed.push_back(describe(finding));
        else
            m_gate.reasons.push_back((asNew ? "new finding: " : "found: ") + describe(finding));
    }

    void pardon() {
        for (std::string& reason : m_gate.reasons)
            m_gate.notices.push_back("not failed, as asked (--fail-on never): " + std::move(reason));
        m_gate.reasons.clear();
        for (FindingChange& finding : m_comparison.findings) finding.failed = false;
    }

    Comparison& m_comparison;
    const GateOptions& m_options;
    GateResult m_gate;
};

}  // namespace

std::string checkAllow(const std::string& word) {
    for (const diagnose::Diagnosis* entry : diagnose::catalogue())
        if (matches(word, entry->id)) return {};
    return fmt::format("no diagnosis is called \"{}\"; `rankscope explain` lists them", word);
}

std::string checkFailOn(const std::string& word) {
    if (text::contains(kWords, word) || checkAllow(withoutPrefix(word)).empty()) return {};
    return fmt::format(
        "\"{}\" is none of {} and no diagnosis such as RS203, RS2* or finding:RS203; `rankscope explain` lists them",
        word, fmt::join(kWords, ", "));
}

GateResult judgeGate(Comparison& comparison, const GateOptions& options) {
    return Judge(comparison, options).gate();
}

}  // namespace rankscope::compare
