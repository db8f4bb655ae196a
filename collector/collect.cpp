// SPDX-License-Identifier: Apache-2.0
#include "collector/collect.h"

#include "collector/ingest/capture_set.h"
#include "collector/ingest/followed_captures.h"
#include "collector/ingest/health_files.h"
#include "collector/ingest/rank_sources.h"
#include "collector/ingest/run_description.h"
#include "collector/ingest/shared_captures.h"
#include "collector/ingest/shared_ranks.h"
#include "collector/ingest/stack_files.h"
#include "collector/ingest/trace_builder.h"
#include "collector/ingest/written_shard.h"
#include "collector/store/error.h"
#include "collector/team/team.h"

namespace rankscope::collector {
namespace {

namespace fs = std::filesystem;

void requireSomething(const CaptureSet& captures, const fs::path& runDirectory) {
    if (!captures.ranks.empty()) return;
    const std::string where = runDirectory.string();
    if (captures.filesFound == 0) {
        throw store::Error(where, "no capture file (*.cap) below it",
                           "the job recorded nothing: `rankscope doctor` tells what this machine can record");
    }
    if (captures.firstError.empty()) {
        throw store::Error(where,
                           "its " + std::to_string(captures.filesFound) +
                               " capture files are of processes that used neither a GPU nor NCCL",
                           "nothing to analyse: `rankscope doctor` tells what this machine can record");
    }
    throw store::Error(where,
                       "none of its " + std::to_string(captures.filesFound) +
                           " capture files can be read; the first: " + captures.firstError,
                       "the files are damaged, or of another version of rankscope");
}

CaptureSet capturesOf(const std::vector<fs::path>& directories, const CollectOptions& options, unsigned threads) {
    if (options.team) return findCaptures(directories, *options.team);
    if (!options.followed || !options.part) return findCaptures(directories, threads);
    std::vector<CaptureFile> files = captureFilesIn(directories);
    options.followed->follow(files, {options.part->first, options.part->second}, threads);
    return choose(lookAt(files, threads));
}

}  // namespace

std::shared_ptr<FollowedCaptures> followCaptures(const fs::path& folder) {
    return std::make_shared<FollowedCaptures>(folder);
}

CollectResult collect(const fs::path& runDirectory, const CollectOptions& options) {
    std::error_code ignored;
    if (!fs::is_directory(runDirectory, ignored))
        throw store::Error(runDirectory.string(), "no such run directory",
                           "`rankscope run -o NAME -- COMMAND` makes one");
    std::vector<fs::path> directories{runDirectory};
    directories.insert(directories.end(), options.moreDirectories.begin(), options.moreDirectories.end());

    const unsigned threads = options.threads == 0 && options.team ? options.team->threads() : options.threads;
    CaptureSet captures = capturesOf(directories, options, threads);
    requireSomething(captures, runDirectory);

    RunFacts facts = describeRun(runDirectory, captures.losses);
    facts.source = "capture";
    if (!options.links.empty()) facts.meta["links"] = options.links;
    facts.virtualGpu = facts.virtualGpu || captures.virtualGpu;
    if (captures.worldSize > facts.worldSize.value_or(-1)) facts.worldSize = captures.worldSize;
    facts.threads = threads;
    facts.keepBytes = options.keepBytes;

    const fs::path output = options.output.empty() ? runDirectory / "trace.db" : options.output;
    CollectResult result{output, {}};
    const std::string light = facts.meta.contains("light") ? facts.meta.at("light") : "";
    const bool isDump = facts.meta.contains("dump");
    TraceBuilder builder(output, std::move(facts));
    for (CaptureChoice& choice : captures.ranks) {
        if (options.part) choice.part = TimeSpan{options.part->first, options.part->second};
        choice.wentOn = isDump;
        result.ranks.push_back(choice.rank);
    }
    const std::vector<std::string> shards =
        !options.shards ? std::vector<std::string>()
                        : shardNames(options.team ? options.team->hosts() : std::vector{team::hostName()});
    if (options.team) {
        builder.shareWith(*options.team);
        dealOut(captures.ranks, options.keepBytes, shards, *options.team);
    }
    if (options.shards) builder.useShards(shards);
    for (const CaptureChoice& choice : captures.ranks) {
        if (choice.process == 0)
            builder.add(choice.rank, [choice] { return decodeCapture(choice); });
        else
            builder.addElsewhere(choice.rank, choice.process);
    }
    builder.addStacks(readStackFiles(directories, captures.losses));
    builder.addHealth(readHealthFiles(directories, captures.losses));
    const auto tellOfRun = [&](const char* kind, const char* meaning) {
        builder.addLoss({0, kind, store::Severity::info, {}, "collector", 0, {}, {}, meaning});
    };
    if (light == "kernels")
        tellOfRun("light",
                  "light mode: of the program's own kernels each step's sums are known, not when each ran; copies are "
                  "shown as idle time, and what hides of communication is known of a step as a whole");
    else if (!light.empty())
        tellOfRun(
            "light",
            "light mode: no kernels were recorded but NCCL's, as its profiler plugin told them; the program's own "
            "work is shown as idle time, and communication that it hides as if it did not");
    if (isDump)
        tellOfRun("dump",
                  "a dump of a job that went on: of what came after nothing is known, and calls that had not ended are "
                  "shown without their end");
    for (store::Loss& loss : captures.losses) builder.addLoss(std::move(loss));
    builder.finish();
    return result;
}

void helpCollect(const std::vector<fs::path>& directories, team::Team& team) {
    const DealtRanks dealt = helpFindCaptures(directories, team);
    RankSources sources;
    for (const CaptureChoice& choice : dealt.ranks)
        sources.add(choice.rank, [choice] { return decodeCapture(choice); });
    const fs::path database =
        (directories.empty() ? fs::path(".") : directories.front()) / "trace.db";  // --shards has one
    helpBuildTrace(sources, team, dealt.keepBytes, database, dealt.shard);
}

}  // namespace rankscope::collector
