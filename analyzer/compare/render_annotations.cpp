// SPDX-License-Identifier: Apache-2.0
// GitHub's workflow commands: ::KIND title=T::MESSAGE, one on a line. Percent signs and line ends are escaped, in
// properties colons and commas too (https://docs.github.com/actions/reference/workflow-commands-for-github-actions).
#include <fmt/format.h>

#include <map>

#include "analyzer/compare/renderers.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::compare {
namespace {

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

std::string renderComparisonAnnotations(const Comparison& c) {
    Annotations annotations;
    std::string why = c.causes.empty() ? "" : "\n" + causesHeading(c) + ":";
    for (const ChangeCause& cause : c.causes) why += "\n" + signedDurationText(cause.ns) + ": " + cause.text;
    const bool isSlower = c.step.verdict == StepVerdict::regression;
    annotations.add(stepFailsGate(c)                                          ? "error"
                    : isSlower || c.step.verdict == StepVerdict::incomparable ? "warning"
                                                                              : "notice",
                    fmt::format("Rankscope: {}", toText(c.step.verdict)), c.step.reason + why);
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
