// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/html/page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analyzer/text/activity_colours.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::report::html {

namespace {

const char* moodClass(Mood mood) {
    return mood == Mood::good ? "good" : mood == Mood::warn ? "warn" : "bad";
}

std::string variables(const text::ActivityColours& colours) {
    return fmt::format(
        "{{ --compute: #{:06x}; --overlapped: #{:06x}; --transfer: #{:06x}; --wait: #{:06x}; --memory: #{:06x}; }}\n",
        colours.compute, colours.overlapped, colours.transfer, colours.waiting, colours.memory);
}

// In the order in which report.css chooses a theme: paper is always light.
std::string activityStyle() {
    const std::string light = variables(text::kActivitiesOnLight), dark = variables(text::kActivitiesOnDark);
    return ":root " + light + "@media (prefers-color-scheme: dark) { :root:not([data-theme=\"light\"]) " + dark +
           "}\n:root[data-theme=\"dark\"] " + dark +
           "@media print { :root, :root[data-theme=\"dark\"], :root:not([data-theme=\"light\"]) " + light + "}\n";
}

}  // namespace

std::string scriptData(std::string_view json) {
    // In ASCII no character can act: U+2028 ends a line of JavaScript, not of JSON.
    const std::string ascii = nlohmann::ordered_json::parse(json).dump(-1, ' ', true);
    std::string out;
    out.reserve(ascii.size());
    for (const char c : ascii) {
        if (c == '<' || c == '>' || c == '&')
            out += fmt::format("\\u{:04x}", static_cast<int>(c));
        else
            out += c;
    }
    return out;
}

std::string section(std::string_view id, std::string_view heading, std::string_view hint, std::string_view markup) {
    std::string out = fmt::format("<section id=\"{}\" aria-labelledby=\"{}-title\">\n<h2 id=\"{}-title\">{}</h2>\n", id,
                                  id, id, text::markupText(heading));
    if (!hint.empty()) out += fmt::format("<p class=\"hint\">{}</p>\n", text::markupText(hint));
    return out.append(markup).append("</section>\n");
}

std::string tile(std::string_view name, std::string_view value, std::string_view more) {
    return fmt::format("<div><dt>{}</dt><dd>{}<span class=\"small\">{}</span></dd></div>\n", text::markupText(name),
                       text::markupText(value), text::markupText(more));
}

std::string renderPage(const Page& page) {
    std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    out +=
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n";
    out +=
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"generator\" "
        "content=\"Rankscope\">\n<link rel=\"icon\" href=\"data:,\">\n";
    out += fmt::format("<title>{} - Rankscope</title>\n<style>\n", text::markupText(text::oneLine(page.title)));
    out.append(reportStyle())
        .append(activityStyle())
        .append("</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#content\">To the content</a>\n");
    out += fmt::format(
        "<header class=\"top\"><h1>{}</h1><span class=\"about\">{}</span><button id=\"theme\" type=\"button\" "
        "hidden>Dark</button></header>\n",
        text::markupText(text::oneLine(page.title)), text::markupText(page.about));
    out += fmt::format("<main id=\"content\">\n<div class=\"verdict {}\" role=\"status\">{}", moodClass(page.mood),
                       text::markupText(page.verdict));
    if (!page.verdictMore.empty()) out += fmt::format("<p>{}</p>", text::markupText(page.verdictMore));
    out += "</div>\n" + page.body;
    out +=
        "<footer>Made by Rankscope; this file needs nothing beside it. All values are in it as JSON too: the element "
        "<code>rankscope-data</code>.</footer>\n</main>\n";
    out += "<script type=\"application/json\" id=\"rankscope-data\">" + scriptData(page.data) + "</script>\n<script>\n";
    return out.append(reportScript()).append("</script>\n</body>\n</html>\n");
}

}  // namespace rankscope::report::html
