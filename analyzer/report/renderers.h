// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analyzer/edits/what_if.h"
#include "analyzer/report/report_model.h"
#include "analyzer/text/terminal_text.h"

namespace rankscope::report {

struct TextStyle {
    bool colour = false;
    size_t columns = text::kTextColumns;  // sentences are broken into lines of at most so many characters
    std::string runName;  // of the run in the commands that are named, as its user typed it; empty: its own
};

std::string renderText(const Report& report, const TextStyle& style = {});
std::string renderJson(const Report& report);  // rankscope.report/1
std::string renderMarkdown(const Report& report);

/// A page of its own that needs nothing beside it: no network, no other file. Report::overview, where it is there, is
/// drawn. Findings beyond 200 are left out, and it says so.
std::string renderHtml(const Report& report);

/// Writes one finding as an object of rankscope.report/1.
std::string renderFindingJson(const Report& report, const job::Finding& finding);

/// Says what the analysis took for the links' peaks: link_peaks of rankscope.report/1, and `text` and `warnings` for
/// people. Kept in meta `link_peaks`, for the window.
std::string renderLinkPeaksJson(const Report& report);

std::string renderWhatIfText(const edits::WhatIf& result, const std::vector<std::string>& changes);

/// Schema rankscope.whatif/1: {changes, measured_step_ns, replay {predicted_step_ns, error}, changed_step_ns,
/// tokens_factor, saving_ns_per_step, saving_share, saving_interval_ns, ranks [{rank, before, after: {compute_ns,
/// waiting_ns, transfer_ns}}], critical_path {before, after: [{category, rank, ns_per_step}]}, assumed}.
std::string renderWhatIfJson(const edits::WhatIf& result, const std::vector<std::string>& changes);

}  // namespace rankscope::report
