// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analyzer/cli/command_line/completion.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {
namespace {

std::string functionOf(const CommandTree& tree) {
    return "_" + text::joined(tree.path, "_");
}

// What _arguments takes as a message: brackets and colons mean something there.
std::string zshMessage(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string actionOf(const CommandOption& option) {
    if (option.choices.empty()) return "_files";
    const std::string words = "(" + text::joined(option.choices, " ") + ")";
    return option.isArgument ? fmt::format("{{_alternative \"known:known:{}\" \"files:file:_files\"}}", words) : words;
}

std::string specOf(const CommandOption& option, const std::string& name) {
    const std::string repeated = option.isRepeated ? "*" : "";
    std::string spec = fmt::format("{}{}[{}]", repeated, name, zshMessage(option.help));
    if (!option.value.empty()) spec += fmt::format(":{}:{}", zshMessage(option.value), actionOf(option));
    return spec;
}

std::string zshFunction(const CommandTree& tree) {
    std::string body;
    const auto add = [&](const std::string& spec) { body += " \\\n        " + text::shellQuoted(spec); };
    for (const CommandOption& option : tree.options)
        for (const std::string& name : option.names)
            if (!option.isArgument) add(specOf(option, name));
    for (const CommandOption& option : tree.options)
        if (option.isArgument)
            add(fmt::format("{}:{}:{}", option.isRepeated ? "*" : "", zshMessage(option.value), actionOf(option)));
    if (tree.takesJob) add("*::command:_normal");
    std::string out;
    if (tree.verbs.empty()) {
        out = fmt::format("{}() {{\n    _arguments -s{}\n}}\n\n", functionOf(tree), body);
    } else {
        add("1:verb:->verb");
        add("*::argument:->argument");
        std::string verbs, cases;
        for (const CommandTree& verb : tree.verbs) {
            verbs += "\n            " + text::shellQuoted(zshMessage(verb.name()) + ":" + verb.help);
            cases += fmt::format("            {}) {} ;;\n", verb.name(), functionOf(verb));
        }
        out = fmt::format(
            "{}() {{\n    local state line\n    _arguments -C{}\n    case $state in\n        verb)\n"
            "            local -a verbs=({})\n            _describe verb verbs ;;\n"
            "        argument) case $words[1] in\n{}        esac ;;\n    esac\n}}\n\n",
            functionOf(tree), body, verbs, cases);
    }
    for (const CommandTree& verb : tree.verbs) out += zshFunction(verb);
    return out;
}

}  // namespace

std::string zshCompletion(const CommandTree& program) {
    return "#compdef rankscope\n# SPDX-License-Identifier: Apache-2.0\n"
           "# zsh completion of rankscope, made from its option tables.\n\n" +
           zshFunction(program) +
           "if [[ $funcstack[1] == _rankscope ]]; then _rankscope \"$@\"; else compdef _rankscope rankscope; fi\n";
}

}  // namespace rankscope::cli
