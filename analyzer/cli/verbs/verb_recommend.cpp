// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/cli/console/freed_memory.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/console/terminal_size.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/recommend/recommend.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {
namespace {

struct RecommendVerbOptions {
    std::string run;
    std::string format = "text";
    std::string output;
    std::vector<std::string> evidence;
    unsigned workers = 0;
    LinkOptions links;
};

std::string render(const recommend::Advice& advice, const std::string& format, bool color, size_t columns) {
    if (format == "json") return recommend::renderAdviceJson(advice);
    if (format == "env") return recommend::renderAdviceEnvironment(advice);
    if (format == "tuner-csv") return recommend::renderAdviceTunerCsv(advice);
    if (format == "deepspeed") return recommend::renderAdviceDeepSpeed(advice);
    if (format == "accelerate") return recommend::renderAdviceAccelerate(advice);
    return recommend::renderAdviceText(advice, color, columns);
}

// Says what a file without a setting means to whoever uses it; empty where there are some.
std::string nothingIn(const recommend::Advice& advice, const std::string& format) {
    using Settings = recommend::Settings;
    const auto any = [&](auto part) {
        const auto has = [&](const recommend::Recommendation& r) { return !(r.settings.*part).empty(); };
        const bool instead = format == "tuner-csv" && std::ranges::any_of(advice.alternatives, has);
        return instead || std::ranges::any_of(advice.recommendations, has);
    };
    std::string keep;
    if (format == "tuner-csv" && !any(&Settings::tuner)) keep = "no row is advised: NCCL's own choice stays";
    if (format == "env" && !any(&Settings::environment)) keep = "no variable is advised: keep the environment as it is";
    if (format == "deepspeed" && !any(&Settings::deepspeed))
        keep = "nothing of DeepSpeed's is advised: keep its configuration as it is";
    if (format == "accelerate" && !any(&Settings::accelerate))
        keep = "nothing of Accelerate's is advised: keep its configuration as it is";
    const std::string nothing = advice.nothingJudged();
    return keep.empty() || nothing.empty() ? keep : nothing;
}

/// Writes one line on stderr, which is written over and over, and gone in the end. None with -q, nor where nobody
/// watches.
class ProgressLine {
  public:
    explicit ProgressLine(const Console& console) : m_shown(!console.isQuiet() && isatty(STDERR_FILENO)) {}
    ~ProgressLine() {
        if (m_shown) std::fputs("\r\033[K", stderr);
    }
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    void show(const recommend::AdviceProgress& progress) const {
        constexpr int kWidth = 21;  // blocks: three a stage
        if (!m_shown) return;
        const auto done = static_cast<size_t>(kWidth * progress.stage / recommend::AdviceProgress::kStages);
        fmt::print(stderr, "\r\033[K[{:-<{}}] {}{}", std::string(done, '#'), kWidth, progress.what,
                   progress.played > 0 ? fmt::format(", {} changed jobs played", progress.played) : "");
        std::fflush(stderr);
    }

  private:
    bool m_shown;
};

/// In a process that mpirun started beside the first one.
int help(const RecommendVerbOptions& options, team::Team& team) {
    helpCollect({options.run}, team);
    keepFreedMemory(1);
    recommend::helpRecommend(options.run, team, {.workers = options.workers});
    return helpedToTheEnd(team);
}

int recommend(const RecommendVerbOptions& options, const Console& console, team::Team* team) {
    const RunInput input = findRun(options.run);
    checkOutput(options.output, {options.run});
    recommend::RecommendOptions settings;
    settings.workers = options.workers;
    settings.shownName = options.run;
    settings.links = linkSources(options.links);
    for (const std::string& text : options.evidence) {
        const costs::EvidenceSource source = costs::parseEvidenceSource(text);
        std::ranges::move(costs::readNcclTestsTables(source.path, source.hints), std::back_inserter(settings.tables));
    }
    settings.team = team;
    settings.tell = [&console](const std::string& what) { console.note(what); };
    collectOnDemand(input, console, team);
    keepFreedMemory(1);
    const recommend::Advice advice = [&] {
        const ProgressLine line(console);
        settings.progress = [&](const recommend::AdviceProgress& progress) { line.show(progress); };
        return recommend::recommend(input.database, settings);
    }();
    console.stage(fmt::format("judged: {}, {}", text::countedText(advice.recommendations.size(), "recommendation"),
                              text::countedText(advice.alternatives.size(), "alternative")));
    const bool toFile = !options.output.empty();
    const std::string text = render(advice, options.format, !toFile && console.colorOnStdout(),
                                    toFile ? text::kTextColumns : columnsOfStdout());
    giveResult(text, options.output, console);
    if (const std::string kept = nothingIn(advice, options.format); !kept.empty()) console.note(kept);
    if (options.format != "text" && options.format != "json")  // these hold it themselves
        for (const costs::TableNote& note : advice.notes)
            if (note.kind != costs::TableNote::Kind::kink) console.note("warning: " + recommend::noteText(note));
    if (options.format != "text") return kExitOk;
    for (const char* format : {"env", "tuner-csv", "deepspeed"})
        if (nothingIn(advice, format).empty()) {
            console.next(fmt::format("rankscope recommend {} --format {}", text::shellWord(options.run), format));
            break;
        }
    return kExitOk;
}

}  // namespace

void addRecommendVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<RecommendVerbOptions>();
    auto* verb = app.add_subcommand("recommend",
                                    "Settings that make the job faster: NCCL variables, tuner tables, buckets, "
                                    "prefetch; what each gains, how sure that is");
    verb->group(kChangeGroup);
    addRunOption(*verb, options->run);
    addRepeatedOption(
        *verb, "--evidence", options->evidence, "FILE",
        "Output of nccl-tests on the same machines, FILE[:operation][:algorithm/protocol], either left out where NCCL "
        "chose; may be repeated");
    addFormatOption(*verb, options->format, {"text", "json", "env", "tuner-csv", "deepspeed", "accelerate"},
                    "text, json, env, tuner-csv, deepspeed or accelerate");
    addOutputOption(*verb, options->output, "File for the result");
    addLinkOptions(*verb, options->links);
    addWorkersOption(*verb, options->workers);
    setAction(*verb, invocation, [options, &invocation] {
        team::Team* team = invocation.team.get();
        if (team != nullptr && !team->isFirst()) return help(*options, *team);
        return recommend(*options, invocation.console, team);
    });
}

}  // namespace rankscope::cli
