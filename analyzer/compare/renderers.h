// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analyzer/compare/comparison.h"

namespace rankscope::compare {

std::string renderComparisonJson(const Comparison& comparison);  // rankscope.compare/1
std::string renderComparisonText(const Comparison& comparison, bool colour = false);

/// Is for step summaries and comments: GitHub-flavoured Markdown, under 1 MiB whatever it is about.
std::string renderComparisonMarkdown(const Comparison& comparison);

/// JUnit XML as Jenkins and GitLab read it: a test case for the step time and one for each finding; what fails the gate
/// is a failure, what cannot be judged is skipped.
std::string renderComparisonJunit(const Comparison& comparison);

/// SARIF 2.1.0: a result for the step time when it got slower and one for each finding, with baselineState.
std::string renderComparisonSarif(const Comparison& comparison);

/// Workflow commands of GitHub Actions (::error, ::warning, ::notice), to be printed by a step. GitHub shows ten of
/// each kind.
std::string renderComparisonAnnotations(const Comparison& comparison);

/// JSON as google-benchmark writes it: the runs of both sides as repetitions of step/base and step/new, with their
/// means; `compare.py filters FILE base new` and chart makers read it.
std::string renderComparisonBenchmark(const Comparison& comparison);

/// OpenMetrics 1.0 text: gauges, times in seconds.
std::string renderComparisonOpenMetrics(const Comparison& comparison);

/// A page of its own that needs nothing beside it, as renderHtml() makes them.
std::string renderComparisonHtml(const Comparison& comparison);

/// Draws the steps of every run beside each other, base first; the typical step of each run on top.
std::string stepsChart(const Comparison& comparison);

/// Draws one step of every rank before and after, on one scale, of sides whose trace is at hand.
std::string overviewPictures(const Comparison& comparison);

/// Shows where the step of each rank goes, base above new.
std::string breakdownBars(const Comparison& comparison);

}  // namespace rankscope::compare
