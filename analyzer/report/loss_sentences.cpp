// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analyzer/report/sentences.h"
#include "analyzer/text/units.h"

namespace rankscope::report {

namespace {

int place(const LossRow& loss) {
    if (loss.kind == "first_death") return 0;
    if (loss.severity == "error") return 1;
    return loss.severity == "warning" ? 2 : 3;
}

/// Returns what is said of the rank, without its name in front.
std::string withoutRank(const LossRow& loss) {
    if (!loss.rank) return loss.meaning;
    const std::string name = fmt::format("rank {}", *loss.rank);
    if (!loss.meaning.starts_with(name) || loss.meaning.size() == name.size()) return loss.meaning;
    const size_t rest = loss.meaning.find_first_not_of(": ", name.size());
    const bool isWhole = loss.meaning[name.size()] == ' ' || loss.meaning[name.size()] == ':';
    return isWhole && rest != std::string::npos ? loss.meaning.substr(rest) : loss.meaning;
}

std::string withoutNumbers(const std::string& text) {
    std::string shape;
    for (const char c : text)
        if (c < '0' || c > '9')
            shape += c;
        else if (shape.empty() || shape.back() != '#')
            shape += '#';
    return shape;
}

}  // namespace

void orderLosses(std::vector<LossRow>& losses) {
    std::ranges::stable_sort(losses, [](const LossRow& a, const LossRow& b) { return place(a) < place(b); });
}

std::string lossText(const LossRow& loss) {
    const bool namesItsRank = loss.meaning.starts_with("rank ");
    return fmt::format("{}{}{}", loss.rank && !namesItsRank ? fmt::format("rank {}: ", *loss.rank) : "", loss.meaning,
                       loss.count > 1 && loss.kind != "first_death" ? fmt::format(" ({} x)", loss.count) : "");
}

std::vector<LossLine> lossLines(const std::vector<LossRow>& losses) {
    struct Group {
        LossRow sum;
        std::string text;  // of its first rank, without its name
        std::vector<int> ranks;
        bool alike = true;  // all have that text
    };
    std::vector<Group> groups;
    std::map<std::tuple<std::string, std::string, std::string>, size_t> known;
    for (const LossRow& loss : losses) {
        const std::string text = withoutRank(loss);
        const bool groupable = loss.rank && loss.kind != "first_death";
        const auto [at, isNew] = known.try_emplace(
            {loss.kind, loss.severity, groupable ? withoutNumbers(text) : std::to_string(groups.size())},
            groups.size());
        if (isNew) {
            groups.push_back({loss, text, {}, true});
        } else {
            groups[at->second].sum.count += loss.count;
            groups[at->second].alike = groups[at->second].alike && groups[at->second].text == text;
        }
        if (loss.rank) groups[at->second].ranks.push_back(*loss.rank);
    }
    std::vector<LossLine> lines;
    for (const Group& group : groups) {
        const std::set<int> ranks(group.ranks.begin(), group.ranks.end());
        if (ranks.size() < 2) {
            lines.push_back({group.sum.severity, lossText(group.sum)});
            continue;
        }
        const bool counts = group.sum.count > static_cast<int64_t>(group.ranks.size());
        lines.push_back(
            {group.sum.severity,
             fmt::format("{}: {}{}{}", text::ranksText({ranks.begin(), ranks.end()}), group.text,
                         group.alike ? "" : fmt::format(" (so on rank {}, the others alike)", group.ranks.front()),
                         counts ? fmt::format(" ({} x in all)", group.sum.count) : "")});
    }
    return lines;
}

}  // namespace rankscope::report
