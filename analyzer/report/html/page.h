// SPDX-License-Identifier: Apache-2.0
// The frame of an HTML report: one file without anything beside it. No network, no fonts, no pictures; a policy in its
// head forbids them to the browser too.
#pragma once

#include <string>
#include <string_view>

namespace rankscope::report::html {

enum class Mood { good, warn, bad };

struct Page {
    std::string title;  // text, of the window and the heading
    std::string about;  // text, beside the heading
    Mood mood = Mood::good;
    std::string verdict;      // text: the report in one sentence
    std::string verdictMore;  // text under it; may be empty
    std::string body;         // markup
    std::string data;  // JSON: the same report for programs, in <script type="application/json" id="rankscope-data">
};

std::string renderPage(const Page& page);

/// Makes of JSON what may stand inside a script element: one line of ASCII in which nothing ends the element. Throws
/// nlohmann::json::exception for what is no JSON.
std::string scriptData(std::string_view json);

/// <section> with a heading and a hint (text), around `markup`.
std::string section(std::string_view id, std::string_view heading, std::string_view hint, std::string_view markup);

/// Writes one figure of the head: text, text, text.
std::string tile(std::string_view name, std::string_view value, std::string_view more);

/// The files of assets/ as text; the build makes html_assets.cpp of them.
std::string_view reportStyle() noexcept;
std::string_view reportScript() noexcept;

}  // namespace rankscope::report::html
