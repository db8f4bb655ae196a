// SPDX-License-Identifier: Apache-2.0
// What a report found, in one line.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "analyzer/report/report_model.h"

namespace rankscope::test {

/// "RS301[5] RS203[0 1]": what was found, with ranks; inconclusive ones carry a question mark.
inline std::string foundIn(const report::Report& report) {
    std::string text;
    for (const job::Finding& f : report.findings) {
        if (!text.empty()) text += " ";
        text +=
            f.id + (f.verdict == job::Verdict::inconclusive ? "?" : "") + fmt::format("[{}]", fmt::join(f.ranks, " "));
    }
    return text;
}

inline std::string idsIn(const report::Report& report) {
    std::string text;
    for (const job::Finding& f : report.findings)
        text += (text.empty() ? "" : " ") + f.id + (f.verdict == job::Verdict::inconclusive ? "?" : "");
    return text;
}

}  // namespace rankscope::test
