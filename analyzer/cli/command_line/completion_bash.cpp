// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "analyzer/cli/command_line/completion.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {
namespace {

// "reference run", as the function below puts the verbs that it has seen together; empty: the program itself.
std::string verbOf(const CommandTree& tree) {
    return text::joined(text::first(tree.path, tree.path.size()).subspan(1), " ");
}

void addCases(const CommandTree& tree, std::string& words, std::string& values) {
    std::vector<std::string> known;
    for (const CommandTree& verb : tree.verbs) known.push_back(verb.name());
    for (const CommandOption& option : tree.options) {
        if (option.isArgument) {
            known.insert(known.end(), option.choices.begin(), option.choices.end());
            continue;
        }
        known.insert(known.end(), option.names.begin(), option.names.end());
        if (option.value.empty()) continue;
        std::string patterns;
        for (const std::string& name : option.names)
            patterns += (patterns.empty() ? "" : "|") + fmt::format("{}", text::shellQuoted(verbOf(tree) + ":" + name));
        values += fmt::format("        {}) takes=1; choices={} ;;\n", patterns,
                              text::shellQuoted(text::joined(option.choices, " ")));
    }
    words += fmt::format("        {}) words={} ;;\n", text::shellQuoted(verbOf(tree)),
                         text::shellQuoted(text::joined(known, " ")));
    for (const CommandTree& verb : tree.verbs) addCases(verb, words, values);
}

}  // namespace

std::string bashCompletion(const CommandTree& program) {
    std::string words, values, verbs;
    addCases(program, words, values);
    const auto addVerbs = [&](const auto& self, const CommandTree& tree) -> void {
        for (const CommandTree& verb : tree.verbs) {
            verbs += (verbs.empty() ? "" : "|") + text::shellQuoted(verbOf(verb));
            self(self, verb);
        }
    };
    addVerbs(addVerbs, program);
    return fmt::format(R"(# SPDX-License-Identifier: Apache-2.0
# bash completion of rankscope, made from its option tables.
_rankscope() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} verb= word at takes= choices= words=
    for ((at = 1; at < COMP_CWORD; at++)); do
        word=${{COMP_WORDS[at]}}
        if [[ $word == -- ]]; then
            # What follows is a command of its own.
            if declare -F _command_offset >/dev/null; then _command_offset $((at + 1)); else COMPREPLY=($(compgen -c -- "$current")); fi
            return
        fi
        _rankscope_value "$verb" "$word"
        if [[ -n $takes && $at -lt $((COMP_CWORD - 1)) ]]; then ((at++)); continue; fi
        case "${{verb:+$verb }}$word" in
            {}) verb="${{verb:+$verb }}$word" ;;
        esac
    done
    _rankscope_value "$verb" "${{COMP_WORDS[COMP_CWORD - 1]}}"
    if [[ -n $takes ]]; then
        words=$choices
    else
        case "$verb" in
{}        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [[ ${{#COMPREPLY[@]}} -eq 0 || ( -n $takes && -z $choices ) ]]; then
        COMPREPLY=($(compgen -f -- "$current"))
        compopt -o filenames 2>/dev/null
    fi
}}

# Sets `takes` where the option $2 of the verb $1 takes a value, and `choices` to the values that there are.
_rankscope_value() {{
    takes= choices=
    local option
    for option in "$1:$2" ":$2"; do
        case "$option" in
{}        esac
        [[ -n $takes ]] && return
    done
}}

complete -F _rankscope rankscope
)",
                       verbs, words, values);
}

}  // namespace rankscope::cli
