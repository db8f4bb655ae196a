// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/compare/renderers.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::compare {
namespace {

class Suite {
  public:
    void pass(const std::string& group, const std::string& name, double seconds = 0) {
        open(group, name, seconds, "/>\n");
    }
    void fail(const std::string& group, const std::string& name, const std::string& type, const std::string& message,
              const std::string& text, double seconds = 0) {
        ++m_failures;
        open(group, name, seconds, ">\n");
        m_cases +=
            fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
                        text::markupText(type), text::markupText(text::oneLine(message)), text::markupText(text));
    }
    void skip(const std::string& group, const std::string& name, const std::string& message) {
        ++m_skipped;
        open(group, name, 0, ">\n");
        m_cases +=
            fmt::format("      <skipped message=\"{}\"/>\n    </testcase>\n", text::markupText(text::oneLine(message)));
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
    void open(const std::string& group, const std::string& name, double seconds, const char* end) {
        ++m_tests;
        m_cases += fmt::format("    <testcase classname=\"rankscope.{}\" name=\"{}\" time=\"{:.9f}\"{}", group,
                               text::markupText(text::oneLine(name)), seconds, end);
    }

    std::string m_cases;
    size_t m_tests = 0, m_failures = 0, m_skipped = 0;
};

void addStepTime(const Comparison& c, Suite& suite) {
    const double seconds = c.step.newNs.value_or(0) / 1e9;
    std::string why;
    for (const ChangeCause& cause : c.causes) why += "\n" + signedDurationText(cause.ns) + "  " + cause.text;
    if (stepFailsGate(c))
        suite.fail("step", "step time", "regression", c.step.reason, c.step.reason + why, seconds);
    else if (c.step.verdict == StepVerdict::notEnoughSamples || c.step.verdict == StepVerdict::incomparable)
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

}  // namespace rankscope::compare
