// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/step_names.h"

#include <cctype>
#include <initializer_list>
#include <string>

namespace rankscope::collector {

namespace {

bool isSmall(char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0;
}

/// `lower`: the name in small letters. True where `word` ends a word of the name, be it with one of the `endings`;
/// `whole`: it also begins one.
bool hasWord(std::string_view name, std::string_view lower, std::string_view word,
             std::initializer_list<std::string_view> endings, bool whole) {
    for (size_t at = lower.find(word); at != std::string_view::npos; at = lower.find(word, at + 1)) {
        if (whole && at > 0 && isSmall(name[at]) && std::isalpha(static_cast<unsigned char>(name[at - 1]))) continue;
        for (const std::string_view ending : endings) {
            const size_t end = at + word.size() + ending.size();
            if (lower.substr(at + word.size(), ending.size()) == ending && (end == name.size() || !isSmall(name[end])))
                return true;
        }
    }
    return false;
}

}  // namespace

StepName stepNameOf(std::string_view pattern) {
    if (pattern == "ProfilerStep") return StepName::profilerStep;
    std::string lower;
    for (const char c : pattern) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    // An optimizer's step is a part of one, and a loader's iterator brings a batch.
    for (const char* part : {"optimizer", "scheduler", "dataloader"})
        if (lower.find(part) != std::string::npos) return StepName::other;
    // trainstep is one; criterion and writer are none.
    const bool says = hasWord(pattern, lower, "step", {"", "s"}, false) ||
                      hasWord(pattern, lower, "iter", {"", "s", "ation", "ations"}, true);
    return says ? StepName::saysStep : StepName::other;
}

}  // namespace rankscope::collector
