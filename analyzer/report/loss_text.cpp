// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/loss_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace rankscope::analyzer {

namespace {

int place(const LossRow& loss) {
    if (loss.kind == "first_death") return 0;
    if (loss.severity == "error") return 1;
    return loss.severity == "warning" ? 2 : 3;
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

}  // namespace rankscope::analyzer
