// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "analyzer/cli/command_line/completion.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {
namespace {

// fish knows \\ and \' in single quotes.
std::string fishQuoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\\' || c == '\'') out += '\\';
        out += c;
    }
    return out + "'";
}

// Holds where a verb's words are offered: behind it and before any verb of its own.
std::string conditionOf(const CommandTree& tree) {
    std::string condition;
    for (size_t i = 1; i < tree.path.size(); ++i)
        condition += (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + tree.path[i]);
    std::vector<std::string> inner;
    for (const CommandTree& verb : tree.verbs) inner.push_back(verb.name());
    if (!inner.empty())
        condition +=
            (condition.empty() ? "" : "; and ") + ("not __fish_seen_subcommand_from " + text::joined(inner, " "));
    return condition;
}

void addFishLines(const CommandTree& tree, std::string& out) {
    const std::string condition = conditionOf(tree);
    const std::string when = condition.empty() ? "" : " -n " + fishQuoted(condition);
    for (const CommandTree& verb : tree.verbs)
        out += fmt::format("complete -c rankscope{} -f -a {} -d {}\n", when, verb.name(), fishQuoted(verb.help));
    for (const CommandOption& option : tree.options) {
        const std::string choices = fishQuoted(text::joined(option.choices, " "));
        if (option.isArgument) {
            if (!option.choices.empty()) out += fmt::format("complete -c rankscope{} -a {}\n", when, choices);
            continue;
        }
        // What stands before the verb is taken behind it, too.
        std::string line = "complete -c rankscope" + (tree.path.size() > 1 ? when : "");
        for (const std::string& name : option.names)
            line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
        if (!option.value.empty()) line += option.choices.empty() ? " -r" : " -x -a " + choices;
        out += line + " -d " + fishQuoted(option.help) + "\n";
    }
    for (const CommandTree& verb : tree.verbs) addFishLines(verb, out);
}

}  // namespace

std::string fishCompletion(const CommandTree& program) {
    std::string out =
        "# SPDX-License-Identifier: Apache-2.0\n# fish completion of rankscope, made from its option tables.\n";
    addFishLines(program, out);
    return out;
}

}  // namespace rankscope::cli
