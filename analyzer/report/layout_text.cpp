// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/layout_text.h"

#include <fmt/format.h>

namespace rankscope::analyzer {
namespace {

std::string degree(const char* name, const std::optional<int>& value) { return value ? fmt::format("{}{} ", name, *value) : std::string(); }

}  // namespace

std::string layoutText(const LayoutSection& layout) {
    std::string text = degree("dp", layout.dp) + degree("tp", layout.tp) + degree("pp", layout.pp);
    if (layout.ep && *layout.ep > 1) text += degree("ep", layout.ep);
    if (text.empty()) return "unknown";
    text.pop_back();
    if (layout.sp && *layout.sp > 1) text += ", sequence parallel";
    if (layout.zero && *layout.zero > 0) text += fmt::format(", ZeRO-{}", *layout.zero);
    if (layout.replicate && *layout.replicate > 1) text += fmt::format(" in {} copies of {} shards (HSDP)", *layout.replicate, layout.shard.value_or(1));
    if (layout.pp && *layout.pp > 1) text += ", schedule " + layout.schedule;
    if (layout.microBatches) text += fmt::format(", {} micro-batches", *layout.microBatches);
    if (layout.virtualStages.value_or(1) > 1) text += fmt::format(", {} virtual stages a rank", *layout.virtualStages);
    return text;
}

}  // namespace rankscope::analyzer
