// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "analyzer/compare/sentences.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

std::vector<const OddRun*> slowNewRuns(const Comparison& comparison) {
    std::vector<const OddRun*> odd;
    for (const OddRun& run : comparison.oddRuns)
        if (run.side == "new") odd.push_back(&run);
    return odd;
}

std::string numberText(size_t count) {
    constexpr std::string_view kNumbers[] = {"no",   "one", "two",   "three", "four",
                                             "five", "six", "seven", "eight", "nine"};
    return count < std::size(kNumbers) ? std::string(kNumbers[count]) : std::to_string(count);
}

/// "one of your three runs is not like the others"
std::string whatText(const Comparison& comparison) {
    const size_t odd = slowNewRuns(comparison).size();
    return fmt::format("{} of your {} runs {} not like the others", numberText(odd),
                       numberText(comparison.now.runs.size()), odd == 1 ? "is" : "are");
}

/// "step-time-2 takes 227 ms, the other two 174 ms and 175 ms"
std::string timesText(const OddRun& odd) {
    std::vector<std::string> others;
    for (const double ns : text::first(odd.othersNs, 4)) others.push_back(text::durationText(ns));
    std::string text = fmt::format("{} takes {}", odd.run, text::durationText(odd.stepNs));
    if (others.empty()) return text;
    const std::string last = others.back();
    others.pop_back();
    return fmt::format("{}, the other {} {}{}{}", text, numberText(odd.othersNs.size()), text::joined(others),
                       others.empty() ? "" : " and ", last);
}

/// "rank 1 on node0 is slow in it alone (RS301 straggler rank)"; empty: no rank stands out.
std::string placeText(const OddRun& odd) {
    const std::string hosts = odd.hosts.empty() ? "" : " on " + text::joined(odd.hosts);
    if (!odd.diagnosis.empty())
        return fmt::format("{}{}, in it alone: {} ({})", text::ranksText(odd.ranks), hosts, odd.title, odd.diagnosis);
    if (odd.ranks.empty()) return {};
    return fmt::format("{}{} {} longer, in it alone", text::ranksText(odd.ranks), hosts,
                       odd.ranks.size() == 1 ? "computes" : "compute");
}

constexpr std::string_view kMachine = "one of your machines, not your change";

std::string blameText(const OddRun& odd) {
    const std::string place = placeText(odd);
    return place.empty()
               ? "no rank of it stands out: a neighbour or another clock, or a change that is slow now and then"
               : fmt::format("{}: {}", place, kMachine);
}

/// "without it: no change (-0.4 % to +1.1 %)"
std::string withoutText(const Comparison& comparison) {
    if (!comparison.withoutOdd) return {};
    const StepTimeChange& step = *comparison.withoutOdd;
    const std::string them = slowNewRuns(comparison).size() == 1 ? "it" : "them";
    return fmt::format("without {}: {}, {}", them, toText(step.verdict), changeText(step));
}

}  // namespace

std::string oddRunNote(const OddRun& odd) {
    const std::string place = placeText(odd);
    return fmt::format("{} is {} {} than the other {} runs, and is left out of the verdict{}{}", odd.run,
                       text::percentText(odd.ratio > 1 ? odd.ratio - 1 : 1 - odd.ratio),
                       odd.ratio > 1 ? "slower" : "faster", odd.side, place.empty() ? "" : ": ", place);
}

std::string undecidedSentence(const Comparison& comparison) {
    const std::vector<const OddRun*> odd = slowNewRuns(comparison);
    std::string text = "undecided: " + whatText(comparison);
    for (const OddRun* run : text::first(odd, 2)) text += fmt::format("; {}; {}", timesText(*run), blameText(*run));
    const std::string without = withoutText(comparison);
    return without.empty() ? text : text + "; " + without;
}

std::vector<std::string> undecidedLines(const Comparison& comparison) {
    const std::vector<const OddRun*> odd = slowNewRuns(comparison);
    std::vector<std::string> lines{"undecided: " + whatText(comparison)};
    for (const OddRun* run : odd) {
        lines.push_back(timesText(*run) + (comparison.step.baseNs
                                               ? fmt::format(" (base: {})", text::durationText(*comparison.step.baseNs))
                                               : ""));
        lines.push_back(blameText(*run));
    }
    if (const std::string without = withoutText(comparison); !without.empty()) lines.push_back(without);
    std::string names;
    for (const OddRun* run : odd) names += " --drop " + run->run;
    lines.push_back(fmt::format("run {} again, or leave {} out:{}; when the same node is slow again, take it out",
                                odd.size() == 1 ? "that one" : "them", odd.size() == 1 ? "it" : "them", names));
    return lines;
}

}  // namespace rankscope::compare
