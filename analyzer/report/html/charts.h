// SPDX-License-Identifier: Apache-2.0
// Charts as inline SVG. Labels are text and escaped here; colours are classes of assets/report.css.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankscope::report::html {

struct Part {
    std::string colour;  // class
    std::string label;
    double value = 0;
};

/// Parts side by side, scaled to `whole`; each tells its label when pointed at.
std::string stackedBar(const std::vector<Part>& parts, double whole);

/// Names the colours.
std::string legend(const std::vector<Part>& parts);

struct Bar {
    std::string label;
    std::string text;  // the value as people read it
    double value = 0;
    std::string colour;
};

/// Bars from left to right below each other, scaled to `whole` (0: the longest one).
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

}  // namespace rankscope::report::html
