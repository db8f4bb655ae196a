// SPDX-License-Identifier: Apache-2.0
// What CI services read: JUnit XML, and workflow commands of GitHub Actions.
#include <fmt/format.h>

#include <map>

#include "analyzer/compare/renderers.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::compare {
namespace {

class Suite {
  public:
    void pass(const std::string& group, const std::string& name, double seconds = 0, const std::string& result = {}) {
        ++m_tests;
        m_cases += fmt::format("    <testcase classname=\"rankscope.{}\" name=\"{}\" time=\"{:.9f}\"{}>\n", group,
                               text::markupText(text::oneLine(name)), seconds,
                               result.empty() ? "/" : ">\n      " + result + "\n    </testcase");
    }
    void fail(const std::string& group, const std::string& name, const std::string& type, const std::string& message,
              const std::string& text, double seconds = 0) {
        ++m_failures;
        pass(group, name, seconds,
             fmt::format("<failure type=\"{}\" message=\"{}\">{}</failure>", text::markupText(type),
                         text::markupText(text::oneLine(message)), text::markupText(text)));
    }
    void skip(const std::string& group, const std::string& name, const std::string& message) {
        ++m_skipped;
        pass(group, name, 0, fmt::format("<skipped message=\"{}\"/>", text::markupText(text::oneLine(message))));
    }
    std::string xml(const std::string& output) const {
        const std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\"", m_tests, m_failures);
        return fmt::format(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"rankscope compare\" {}>\n  <testsuite "
            "name=\"rankscope compare\" {} skipped=\"{}\">\n{}    <system-out>{}</system-out>\n  "
            "</testsuite>\n</testsuites>\n",
            counts, counts, m_skipped, m_cases, text::markupText(output));
    }

  private:
    std::string m_cases;
    size_t m_tests = 0, m_failures = 0, m_skipped = 0;
};

void addStepTime(const Comparison& c, Suite& suite) {
    const double seconds = c.step.newNs.value_or(0) / 1e9;
    if (stepFailsGate(c))
        suite.fail("step", "step time", std::string(toText(c.step.verdict)), c.step.reason,
                   c.step.reason + causeLines(c, "  "), seconds);
    else if (c.step.isOpen() || c.step.verdict == StepVerdict::noBaseline ||
             c.step.verdict == StepVerdict::incomparable)
        suite.skip("step", "step time", (c.gate.judged ? "" : "gate not judged: ") + c.step.reason);
    else
        suite.pass("step", "step time", seconds);
}

void addFindings(const Comparison& c, Suite& suite) {
    for (const FindingChange* finding : firstFindings(c, kMostPrintedFindings)) {
        if (failsGate(c, *finding))
            suite.fail("findings", findingName(*finding), std::string(toText(finding->status)), finding->cause,
                       findingBody(*finding));
        else
            suite.pass("findings", findingName(*finding));
    }
}

constexpr size_t kMostOfAKind = 10;  // a step's further ones are not shown
constexpr size_t kLongestTitle = 200;
constexpr size_t kLongest = 4000;  // bytes of a message; GitHub cuts longer ones

std::string escaped(std::string_view bytes, std::string_view special) {
    std::string out;
    for (const char c : text::shortened(text::plainText(bytes), kLongest)) {
        if (c == '%' || c == '\n' || special.find(c) != std::string_view::npos)
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        else
            out += c;
    }
    return out;
}

class Annotations {
  public:
    void add(const std::string& kind, const std::string& title, const std::string& message) {
        const size_t number = ++m_counts[kind];
        if (number < kMostOfAKind) write(kind, title, message);
        if (number == kMostOfAKind) m_last[kind] = {title, message};
    }

    /// The tenth of a kind says how many more there are, if there are.
    std::string take() && {
        for (const auto& [kind, last] : m_last) {
            if (m_counts[kind] == kMostOfAKind)
                write(kind, last.first, last.second);
            else
                write(kind, "Rankscope",
                      fmt::format("{} more of this kind: the report has all", m_counts[kind] - kMostOfAKind + 1));
        }
        return std::move(m_text);
    }

  private:
    void write(const std::string& kind, const std::string& title, const std::string& message) {
        m_text +=
            fmt::format("::{} title={}::{}\n", kind,
                        escaped(text::shortened(text::oneLine(title), kLongestTitle), ":,"), escaped(message, ""));
    }

    std::string m_text;
    std::map<std::string, size_t> m_counts;
    std::map<std::string, std::pair<std::string, std::string>> m_last;
};

}  // namespace

std::string renderComparisonJunit(const Comparison& c) {
    Suite suite;
    addStepTime(c, suite);
    addFindings(c, suite);
    constexpr size_t kLongestOutput = 100'000;
    std::string output = text::shortened(text::plainText(renderComparisonText(c)), kLongestOutput) + "\n";
    if (const std::string rest = leftOutText(c, kMostPrintedFindings); !rest.empty()) output += rest + "\n";
    return suite.xml(output);
}

std::string renderComparisonAnnotations(const Comparison& c) {
    Annotations annotations;
    const std::string why = c.causes.empty() ? "" : "\n" + causesHeading(c) + ":" + causeLines(c, ": ");
    const bool isSlower = c.step.verdict == StepVerdict::regression;
    annotations.add(stepFailsGate(c)                                          ? "error"
                    : isSlower || c.step.verdict == StepVerdict::incomparable ? "warning"
                                                                              : "notice",
                    fmt::format("Rankscope: {}, {}", toText(c.step.verdict), titleText(c)), c.step.reason + why);
    for (const FindingChange* finding : firstFindings(c, c.findings.size())) {
        if (failsGate(c, *finding))
            annotations.add("error", findingName(*finding), findingBody(*finding));
        else if (isTrouble(*finding) && !finding->allowed)
            annotations.add("warning", fmt::format("{} ({})", findingName(*finding), toText(finding->status)),
                            findingBody(*finding));
    }
    if (!c.gate.judged) annotations.add("warning", "Rankscope: gate not judged", c.step.reason);
    for (const std::string& notice : c.gate.notices) annotations.add("notice", "Rankscope", notice);
    return std::move(annotations).take();
}

}  // namespace rankscope::compare
