// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/edit_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <ranges>

#include "analyzer/facts/layout.h"
#include "analyzer/text/units.h"

namespace rankscope::edits {
namespace {

// Beyond these no change of a job is meant, and times of a trace would leave 64 bits.
constexpr double kLeastNumber = 1e-6, kMostNumber = 1e6;

constexpr int kMostRanks = 1 << 20;  // a range of ranks beyond this is a typing error

template <typename Number>
bool parseNumber(std::string_view text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

EditArguments::EditArguments(const job::Change& change, const EditFamily& family)
    : m_change(change.text()), m_family(family) {
    for (const auto& [key, value] : change.arguments) {
        for (const Argument& known : m_arguments)
            if (known.key == key) refuse(fmt::format("{} is given twice", key));
        m_arguments.push_back({key, value, false});
    }
}

void EditArguments::refuse(const std::string& why) const {
    throw EditError(fmt::format("change '{}': {}", m_change, why), fmt::format("syntax: {}", m_family.syntax));
}

std::optional<std::string> EditArguments::text(std::string_view key) {
    for (Argument& argument : m_arguments) {
        if (argument.key != key) continue;
        argument.used = true;
        return argument.value;
    }
    return std::nullopt;
}

std::string EditArguments::word(std::string_view key, std::initializer_list<std::string_view> words,
                                std::string_view fallback) {
    const std::optional<std::string> value = text(key);
    if (!value) return std::string(fallback);
    if (std::ranges::find(words, *value) == words.end())
        refuse(fmt::format("{} is '{}', but may be {}", key, *value, fmt::join(words.begin(), words.end(), ", ")));
    return *value;
}

std::optional<double> EditArguments::positive(std::string_view key) {
    const std::optional<std::string> value = text(key);
    if (!value) return std::nullopt;
    if (*value == "inf") return std::numeric_limits<double>::infinity();
    double number = 0;
    if (!parseNumber(*value, number) || !(number >= kLeastNumber && number <= kMostNumber))
        refuse(fmt::format("{} is '{}', but must be a number from {:g} to {:g}, or inf", key, *value, kLeastNumber,
                           kMostNumber));
    return number;
}

double EditArguments::requiredPositive(std::string_view key) {
    const std::optional<double> number = positive(key);
    if (!number) refuse(fmt::format("{} is missing", key));
    return *number;
}

std::optional<int> EditArguments::whole(std::string_view key, int least) {
    const std::optional<std::string> value = text(key);
    if (!value) return std::nullopt;
    int number = 0;
    if (!parseNumber(*value, number) || number < least)
        refuse(fmt::format("{} is '{}', but must be a whole number from {} on", key, *value, least));
    return number;
}

int EditArguments::requiredWhole(std::string_view key, int least) {
    const std::optional<int> number = whole(key, least);
    if (!number) refuse(fmt::format("{} is missing", key));
    return *number;
}

std::vector<int> EditArguments::ranks(std::string_view key) {
    std::vector<int> ranks;
    const std::optional<std::string> value = text(key);
    if (!value) return ranks;
    for (const auto range : std::string_view(*value) | std::views::split('+')) {
        const std::string_view part(range.begin(), range.end());
        const size_t dash = part.find('-');
        int first = 0, last = 0;
        const bool isNumber = parseNumber(part.substr(0, dash), first);
        if (!isNumber || first < 0) refuse(fmt::format("{} is '{}', but must be like 3, 0+4 or 0-3", key, *value));
        last = first;
        if (dash != std::string_view::npos &&
            (!parseNumber(part.substr(dash + 1), last) || last < first || last - first > kMostRanks))
            refuse(fmt::format("{} is '{}', but must be like 3, 0+4 or 0-3", key, *value));
        for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
    }
    std::ranges::sort(ranks);
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
}

std::optional<int64_t> EditArguments::communicator() {
    return whole("communicator");
}

void EditArguments::finish() const {
    for (const Argument& argument : m_arguments)
        if (!argument.used) refuse(fmt::format("there is no {} here", argument.key));
}

void checkRecorded(const Analysis& analysis, const std::vector<int>& ranks) {
    for (int rank : ranks)
        if (analysis.findRank(rank) == nullptr)
            throw EditError(fmt::format("rank {} is not in this run", rank),
                            analysis.ranks.empty()
                                ? "no rank was recorded"
                                : fmt::format("recorded ranks: {} to {}, {} in all", analysis.ranks.front().rank,
                                              analysis.ranks.back().rank, analysis.ranks.size()));
}

std::string replayedText(const Analysis& analysis) {
    return text::ranksText(recordedRanks(analysis, {}));
}

std::vector<int> recordedRanks(const Analysis& analysis, const std::vector<int>& ranks) {
    checkRecorded(analysis, ranks);
    std::vector<int> recorded;
    for (const facts::RankSummary& rank : analysis.ranks) recorded.push_back(rank.rank);
    if (!ranks.empty() && analysis.replay.hasLeftOut(ranks))
        throw EditError(fmt::format("other ranks stand for {} in the replay", text::ranksText(ranks)),
                        "name a rank that runs the same: replayed are " + replayedText(analysis));
    std::vector<int> replayed;
    std::ranges::set_difference(ranks.empty() ? recorded : ranks, analysis.replay.leftOut,
                                std::back_inserter(replayed));
    return replayed;
}

bool isNamed(const std::vector<int>& named, int64_t communicator) {
    return std::ranges::binary_search(named, communicator, {}, [](int id) { return static_cast<int64_t>(id); });
}

std::string communicatorsText(const Analysis& analysis) {
    std::string known;
    int listed = 0;
    for (const auto& [id, name] : facts::communicatorNames(analysis.facts, analysis.layout)) {
        if (++listed > 12) {
            known += " …";
            break;
        }
        known += fmt::format("{}{} ({})", known.empty() ? "" : "; ", id, name);
    }
    return known.empty() ? "the run has none" : "communicators: " + known;
}

void checkCommunicator(const Analysis& analysis, int64_t wanted) {
    if (analysis.facts.communicators.count(wanted) == 0)
        throw EditError(fmt::format("there is no communicator {} in this run", wanted), communicatorsText(analysis));
}

void NamedCommunicators::carries(int64_t communicator) {
    if (const auto at = std::ranges::lower_bound(m_idle, communicator); at != m_idle.end() && *at == communicator)
        m_idle.erase(at);
}

void NamedCommunicators::tell(bool found, const Analysis& analysis, EditEffect& effect) const {
    if (m_idle.empty()) return;
    const bool one = m_idle.size() == 1;
    const std::string idle = fmt::format("communicator{} {}", one ? "" : "s", job::listText(m_idle));
    const bool leftOut = std::ranges::all_of(
        m_idle, [&](int id) { return analysis.replay.hasLeftOut(analysis.facts.communicators.at(id).ranks); });
    const std::string why =
        leftOut ? fmt::format("{} {} of ranks that others stand for in the replay", idle, one ? "is" : "are")
                : fmt::format("{} {} nothing in this run", idle, one ? "carries" : "carry");
    if (found)
        effect.assume(why + ": the change leaves " + (one ? "it" : "them") + " as " + (one ? "it is" : "they are"));
    else
        throw EditError(
            why, leftOut ? "name one like it: replayed are " + replayedText(analysis) : communicatorsText(analysis));
}

}  // namespace rankscope::edits
