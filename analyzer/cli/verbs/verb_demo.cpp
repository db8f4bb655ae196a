// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/install_layout.h"
#include "analyzer/cli/job/child_program.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/text/plain_text.h"
#include "collector/store/bounded_json.h"

namespace rankscope::cli {
namespace {

constexpr const char* kScenario = "fsdp-slow-rank";

// An earlier demo, and nothing else, is replaced without being asked.
bool isEarlierDemo(const std::string& name) {
    const auto document = store::readJsonOrNothing(std::filesystem::path(name) / "run.json");
    return document.is_object() && document.value("scenario", nlohmann::json()) == kScenario;
}

// Runs this program on, with what it says on stdout and stderr passed through; returns its exit status.
int runSelf(const std::vector<std::string>& words, const Console& console) {
    std::vector<std::string> command = {ownProgram().string(), "-q", "--color",
                                        console.colorOnStdout() ? "always" : "never"};
    command.insert(command.end(), words.begin(), words.end());
    HeldSignals signals;
    const JobEnd job = runJob({{command, currentEnvironment()}}, signals, 0, true);
    const ProcessEnd end = job.processes.front();
    if (end.signal != 0) endLike(end);
    return end.status;
}

int demo(const std::string& name, const Console& console) {
    std::vector<std::string> record = {"reference", "run", kScenario, "-o", name};
    if (isEarlierDemo(name)) record.push_back("--force");
    console.note(fmt::format("a job of 8 ranks on virtual GPUs, in which something is wrong:"));
    console.note(fmt::format("  rankscope reference run {} -o {}", kScenario, text::shellWord(name)));
    if (const int status = runSelf(record, console); status != kExitOk) return status;
    console.note("its diagnosis: rankscope analyze " + text::shellWord(name));
    if (const int status = runSelf({"analyze", name}, console); status != kExitOk) return status;
    console.next(fmt::format("rankscope view {}", text::shellWord(name)));
    return kExitOk;
}

}  // namespace

void addDemoVerb(CLI::App& app, Invocation& invocation) {
    auto name = std::make_shared<std::string>("demo-run");
    auto* verb = app.add_subcommand("demo", "Record a job with a fault on virtual GPUs and say what is wrong with it");
    verb->group(kTryGroup);
    verb->add_option("-o,--output", *name, "Run directory; an earlier demo there is replaced")
        ->type_name("NAME")
        ->capture_default_str();
    setAction(*verb, invocation, [name, &invocation] { return demo(*name, invocation.console); });
}

}  // namespace rankscope::cli
