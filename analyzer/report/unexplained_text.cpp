// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/unexplained_text.h"

#include <fmt/format.h>

#include <algorithm>

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
        const auto known =
            std::find_if(byNeed.begin(), byNeed.end(), [&](const auto& entry) { return entry.first == open.needs; });
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

}  // namespace rankscope::report
