// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/command_line/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>

#include "analyzer/text/lists.h"

namespace rankscope::cli {
namespace {

// A text as roff reads it back: a line that begins with a dot or a quote would be a request.
std::string roff(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
            out += std::string("\\&") + c;
        else
            out += c;
    }
    return out;
}

std::string upperCase(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

// "Usage: rankscope run [OPTIONS] -- COMMAND..." without its first word.
std::string synopsis(const CommandTree& verb) {
    const size_t colon = verb.usage.find(": ");
    std::string usage = colon == std::string::npos ? text::joined(verb.path, " ") : verb.usage.substr(colon + 2);
    while (!usage.empty() && usage.back() == '\n') usage.pop_back();
    return roff(usage) + "\n";
}

std::string roffEntry(const CommandOption& option) {
    std::string names;
    for (const std::string& name : option.names)
        names += (names.empty() ? "" : ", ") + fmt::format("\\fB{}\\fR", roff(name));
    if (option.isArgument)
        names = fmt::format("\\fI{}\\fR{}", roff(option.names.front()), option.isRepeated ? "..." : "");
    else if (!option.value.empty())
        names += fmt::format(" \\fI{}\\fR", roff(option.value));
    std::string out = fmt::format(".TP\n{}\n{}", names, roff(option.help));
    if (!option.choices.empty() && !option.isArgument)
        out += fmt::format(" (one of {})", roff(text::joined(option.choices)));
    if (!option.fallback.empty()) out += fmt::format(" (default: {})", roff(option.fallback));
    return out + "\n";
}

void addOptions(const CommandTree& verb, std::string& out) {
    for (const bool arguments : {true, false})
        for (const CommandOption& option : verb.options)
            if (option.isArgument == arguments) out += roffEntry(option);
}

// The lines as they are: commands.
void addFooter(const CommandTree& verb, std::string& out) {
    if (!verb.footer.empty()) out += ".PP\n.nf\n" + roff(verb.footer) + "\n.fi\n";
}

}  // namespace

std::string manPage(const CommandTree& verb, const std::string& version) {
    const std::string name = text::joined(verb.path, "-");
    std::string out = fmt::format(
        ".\\\" SPDX-License-Identifier: Apache-2.0\n.\\\" Made from the option tables of the program.\n"
        ".TH {} 1 \"\" \"Rankscope {}\" \"User commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
        roff(upperCase(name)), version, roff(name), roff(verb.help));
    if (verb.verbs.empty()) out += synopsis(verb);
    for (size_t i = 0; i < verb.verbs.size(); ++i) out += (i == 0 ? "" : ".br\n") + synopsis(verb.verbs[i]);
    out += ".SH DESCRIPTION\n" + roff(verb.help) + ".\n";
    addFooter(verb, out);
    out += ".SH OPTIONS\n";
    addOptions(verb, out);
    for (const CommandTree& inner : verb.verbs) {
        out += fmt::format(".SH {}\n{}.\n", roff(upperCase(text::joined(inner.path, " "))), roff(inner.help));
        addFooter(inner, out);
        addOptions(inner, out);
    }
    return out +
           ".SH SEE ALSO\n.BR rankscope (1)\ntells what all verbs share, the exit statuses and the files among it.\n";
}

}  // namespace rankscope::cli
