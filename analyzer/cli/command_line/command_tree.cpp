// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/command_line/command_tree.h"

#include <sstream>
#include <utility>

namespace rankscope::cli {
namespace {

// CLI11 writes a check for one of several values behind the type: "TEXT:{text,json}".
std::vector<std::string> choicesIn(const std::string& type) {
    const size_t open = type.find('{'), close = type.rfind('}');
    std::vector<std::string> choices;
    if (open == std::string::npos || close == std::string::npos || close < open) return choices;
    std::istringstream words(type.substr(open + 1, close - open - 1));
    for (std::string word; std::getline(words, word, ',');) choices.push_back(word);
    return choices;
}

CommandOption readOption(const CLI::Option& option, const CommandFacts& facts) {
    CommandOption read{.help = option.get_description(),
                       .isArgument = option.get_positional(),
                       .isRequired = option.get_required(),
                       .isRepeated = option.get_expected_max() > 1};
    if (read.isArgument) {
        read.names = {option.get_name(true)};
        read.value = read.names.front();
    } else {
        for (const std::string& name : option.get_snames()) read.names.push_back("-" + name);
        for (const std::string& name : option.get_lnames()) read.names.push_back("--" + name);
    }
    const std::string type = option.get_type_name();
    if (!read.isArgument && option.get_type_size() != 0) read.value = type.substr(0, type.find(':'));
    if (option.get_type_size() != 0) read.fallback = option.get_default_str();
    read.choices = choicesIn(type);
    if (read.choices.empty() && facts.knownWords) read.choices = facts.knownWords(&option);
    return read;
}

CommandTree readVerb(const CLI::App& app, std::vector<std::string> path, const CommandFacts& facts) {
    path.push_back(app.get_name());
    CommandTree tree{.path = path,
                     .help = app.get_description(),
                     .footer = app.get_footer(),
                     .takesJob = facts.takesJob && facts.takesJob(app)};
    std::string words;
    for (const std::string& word : path) words += (words.empty() ? "" : " ") + word;
    const auto* layout = dynamic_cast<const CLI::Formatter*>(app.get_formatter().get());
    if (layout != nullptr) tree.usage = layout->make_usage(&app, words);
    for (const CLI::Option* option : app.get_options())
        if (!option->get_group().empty()) tree.options.push_back(readOption(*option, facts));
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
        if (!verb->get_group().empty()) tree.verbs.push_back(readVerb(*verb, path, facts));
    return tree;
}

}  // namespace

CommandTree readCommandTree(const CLI::App& app, const CommandFacts& facts) {
    return readVerb(app, {}, facts);
}

}  // namespace rankscope::cli
