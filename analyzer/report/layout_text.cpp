// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/layout_text.h"

#include <fmt/format.h>

#include "analyzer/report/run_text.h"

namespace rankscope::report {
namespace {

/// "data parallel, 8 ranks (dp8)"; "data parallel 2 x tensor parallel 4 (dp2 tp4)"; empty: no degree is known.
std::string degreesText(const LayoutSection& layout) {
    std::string words, letters;
    int split = 0, ranks = 1;
    const auto add = [&](const char* name, const char* letter, const std::optional<int>& degree) {
        if (!degree) return;
        if (*degree > 1 || letters.empty())
            letters += fmt::format("{}{}{}", letters.empty() ? "" : " ", letter, *degree);
        if (*degree <= 1) return;
        words += fmt::format("{}{} {}", split++ == 0 ? "" : " x ", name, *degree);
        ranks = *degree;
    };
    add("data parallel", "dp", layout.dp);
    add("tensor parallel", "tp", layout.tp);
    add("pipeline", "pp", layout.pp);
    add("expert parallel", "ep", layout.ep);
    if (letters.empty()) return {};
    if (split == 0) return fmt::format("one rank ({})", letters);
    if (split == 1) words = fmt::format("{}, {} ranks", words.substr(0, words.rfind(' ')), ranks);
    return fmt::format("{} ({})", words, letters);
}

}  // namespace

std::string layoutText(const LayoutSection& layout) {
    std::string text = degreesText(layout);
    if (text.empty()) return "unknown";
    if (layout.sp && *layout.sp > 1) text += ", sequence parallel";
    if (layout.zero && *layout.zero > 0) text += fmt::format(", ZeRO-{}", *layout.zero);
    if (layout.replicate && *layout.replicate > 1)
        text += fmt::format(" in {} copies of {} shards (HSDP)", *layout.replicate, layout.shard.value_or(1));
    if (layout.pp && *layout.pp > 1) text += ", schedule " + layout.schedule;
    if (layout.microBatches)
        text += fmt::format(", {} micro-batch{}", *layout.microBatches, *layout.microBatches == 1 ? "" : "es");
    if (layout.virtualStages.value_or(1) > 1) text += fmt::format(", {} virtual stages a rank", *layout.virtualStages);
    return text;
}

}  // namespace rankscope::report
