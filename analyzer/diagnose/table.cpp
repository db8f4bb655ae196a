// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/price.h"
#include "analyzer/text/terminal_text.h"

namespace rankscope::diagnose {
namespace {

// A nanosecond belongs to the deepest cause that explains it: a host's own stalls first, then slow and heavy ranks,
// then links, and last what would be left on healthy ones.
constexpr std::array kTable{
    &kInput,         &kAllocator, &kPageable,   &kStarved,       &kSynchronisation,      &kLaunchBound, &kTransient,
    &kStragglerNode, &kStraggler, &kUnevenWork, &kSlowerKernels, &kStageImbalance,       &kSlowLink,    &kUnderUsedLink,
    &kExposedP2p,    &kBubble,    &kContention, &kAlgorithm,     &kTensorParallelSpan,   &kRedundant,   &kFullPrecision,
    &kSmallMessages, &kOverlap,   &kSaturation, &kMissingRank,   &kMismatchedCollective, &kTimeoutRoot,
};

}  // namespace

std::span<const Diagnosis* const> diagnoses() {
    return kTable;
}

std::span<const Diagnosis* const> catalogue() {
    static const auto kById = [] {
        auto entries = kTable;
        std::ranges::sort(entries, {}, [](const Diagnosis* one) { return std::string_view(one->id); });
        return entries;
    }();
    return kById;
}

const Diagnosis* findDiagnosis(std::string_view id) {
    std::string wanted(id);
    std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    for (const Diagnosis* diagnosis : kTable)
        if (diagnosis->id == wanted) return diagnosis;
    return nullptr;
}

std::string renderDiagnosis(const Diagnosis& d, size_t columns) {
    const auto wrapped = [columns](std::string_view text, std::string_view first = {}) {
        return text::wrapped(text, first, columns);
    };
    std::string out = fmt::format("{} {}\n\n{}", d.id, d.title, wrapped(d.definition));
    if (d.detect == nullptr)
        return out + "\n" + wrapped(fmt::format("Usual fix: {}", d.fix)) +
               "\nCatalogued, but not detected yet: a report without it says nothing about it.\n";
    const std::vector<Threshold> thresholds = thresholdsOf(d);
    if (!thresholds.empty()) out += "\nThresholds\n";
    for (const Threshold& t : thresholds)
        out += wrapped(fmt::format("{:.4g} {} ({})", t.value, t.unit, t.reason), fmt::format("  {:<18} ", t.name));
    return out + "\nFalse positives\n" + wrapped(d.falsePositives, "  ") + "\nFix\n" + wrapped(d.fix, "  ");
}

Family familyOf(std::string_view id) {
    return id.size() > 2 ? static_cast<Family>(id[2]) : Family{};
}

std::vector<Threshold> thresholdsOf(const Diagnosis& diagnosis) {
    std::vector<Threshold> all = diagnosis.thresholds;
    if (diagnosis.needs == Needs::events) return all;  // the job failed: nothing is a share of its steps
    all.push_back({"floor", PriceThresholds::kFloorShare, "share of the step",
                   "what costs less is a note: the spread from run to run of real jobs hides the gain"});
    all.push_back({"fewest steps", PriceThresholds::kFewestSteps, "analysed steps",
                   "fewer cannot tell a persistent cause from an accident: inconclusive"});
    return all;
}

}  // namespace rankscope::diagnose
