// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "analyzer/cli/command_line/completion.h"
#include "analyzer/cli/command_line/man_page.h"
#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/output_file.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

CommandTree treeOf(const CLI::App& app, const Invocation& invocation) {
    return readCommandTree(app, {[&](const CLI::App& verb) { return invocation.jobUse(verb) != JobUse::none; },
                                 [&](const CLI::Option* option) {
                                     const auto known = invocation.knownWords.find(option);
                                     return known == invocation.knownWords.end() ? std::vector<std::string>()
                                                                                 : known->second();
                                 }});
}

int complete(const CommandTree& tree, const std::string& shell, const Console& console) {
    console.result(shell == "bash"  ? bashCompletion(tree)
                   : shell == "zsh" ? zshCompletion(tree)
                                    : fishCompletion(tree));
    return kExitOk;
}

// A tree as it is put under PREFIX/share. `except`: verbs that have a page already.
int writePages(const CommandTree& tree, const fs::path& folder, const std::vector<std::string>& except) {
    const auto write = [&](const fs::path& file, const std::string& text) {
        fs::create_directories((folder / file).parent_path());
        text::writeOutputFile(text, folder / file);
    };
    for (const CommandTree& verb : tree.verbs)
        if (!text::contains(except, verb.name()))
            write(fs::path("man/man1") / (text::joined(verb.path, "-") + ".1"), manPage(verb, RANKSCOPE_VERSION));
    write("bash-completion/completions/rankscope", bashCompletion(tree));
    // Debian's zsh looks in the second one.
    for (const char* place : {"zsh/site-functions", "zsh/vendor-completions"})
        write(fs::path(place) / "_rankscope", zshCompletion(tree));
    write("fish/vendor_completions.d/rankscope.fish", fishCompletion(tree));
    return kExitOk;
}

}  // namespace

void addCompletionVerb(CLI::App& app, Invocation& invocation) {
    auto shell = std::make_shared<std::string>();
    auto* verb = app.add_subcommand("completion", "Completion of verbs and options for a shell, on stdout");
    verb->group(kTryGroup);
    verb->footer(
        "  source <(rankscope completion bash)                                        now, in this shell\n"
        "  rankscope completion fish >~/.config/fish/completions/rankscope.fish       for good\n"
        "  rankscope completion zsh >\"${fpath[1]}/_rankscope\"                         for good");
    verb->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
    setAction(*verb, invocation,
              [shell, &app, &invocation] { return complete(treeOf(app, invocation), *shell, invocation.console); });

    // For the build, which puts them beside the program.
    auto folder = std::make_shared<std::string>();
    auto except = std::make_shared<std::vector<std::string>>();
    auto* pages = app.add_subcommand("pages", "Write manual pages and completions into a folder");
    pages->group("");
    pages->add_option("FOLDER", *folder)->required();
    pages->add_option("--except", *except, "Verbs whose page is written by hand");
    setAction(*pages, invocation,
              [folder, except, &app, &invocation] { return writePages(treeOf(app, invocation), *folder, *except); });
}

}  // namespace rankscope::cli
