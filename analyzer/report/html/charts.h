// SPDX-License-Identifier: Apache-2.0
// Charts as inline SVG. Labels are text and escaped here; colours are classes of assets/report.css.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/report/step_overview.h"

namespace rankscope::report::html {

struct Part {
    std::string colour;  // class
    std::string label;
    double value = 0;
};

/// Draws parts side by side, scaled to `whole`; each tells its label when pointed at.
std::string stackedBar(const std::vector<Part>& parts, double whole);

/// Names the colours.
std::string legend(const std::vector<Part>& parts);

/// Names the colours of a bar that shows where a step goes.
std::string stepPartsLegend();

struct Bar {
    std::string label;
    std::string text;  // the value as people read it
    double value = 0;
    std::string colour;
};

/// Draws bars from left to right below each other, scaled to `whole` (0: the longest one).
std::string barChart(std::string_view title, const std::vector<Bar>& bars, double whole = 0);

struct Point {
    double x = 0;
    double y = 0;
    std::string label;
    std::string colour;
    double radius = 5;
};

struct Axis {
    std::string title;
    bool isLogarithmic = false;  // base 2
    std::string (*text)(double value) = nullptr;
};

struct Chart {
    std::string title;                       // what it shows, for readers who cannot see it
    Axis x, y;                               // y begins at 0
    std::vector<std::vector<Point>> curves;  // lines
    std::vector<Point> dots;
    std::vector<std::pair<double, std::string>> levels;  // horizontal lines with a name
    bool fromZero = true;                                // of y
    std::vector<std::pair<double, std::string>> xNames;  // in place of numbers below the x axis
};

std::string drawChart(const Chart& chart);

/// Labels an axis of times: "12.5 ms".
std::string millisecondsText(double ns);

/// No more ranks are drawn: those that findings name, and others spread evenly.
inline constexpr size_t kMostLanes = 64;

/// Names the colours of the lanes.
std::string lanesLegend();

/// Draws the overview as one row per rank: device above, communication below. `named` are ranks that findings name;
/// they are marked, and kept where not all can be drawn. `spanNs`: what the width of the page stands for, for several
/// overviews on one scale; the overview's own length where it is shorter.
std::string drawLanes(const StepOverview& overview, const std::vector<int>& named, int64_t spanNs = 0);

/// Chooses which lanes are drawn, by index.
std::vector<size_t> chosenLanes(const StepOverview& overview, const std::vector<int>& named);

}  // namespace rankscope::report::html
