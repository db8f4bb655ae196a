// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "collector/ingest/rank_recording.h"
#include "collector/ingest/stack_files.h"
#include "collector/team/team.h"
#include "injector/capture_format/health_file.h"

namespace rankscope::collector {

/// What holds for the run as a whole.
struct RunFacts {
    std::string source = "capture";  ///< or the name of the importer's Reader
    std::string runName;
    bool virtualGpu = false;
    /// Dumps of a flight recorder: the last calls of each rank. Where they begin, and that the last ones have no
    /// partner, is no loss, and they hold no steps.
    bool isRecorder = false;
    std::optional<int32_t> worldSize;         ///< expected ranks; the ones without a recording become losses
    std::map<std::string, std::string> meta;  ///< further meta rows
    std::optional<int> exitStatus;    ///< of the wrapped command as a shell tells it, 128 + signal; none: nobody says
    std::optional<int> stopSignal;    ///< that the wrapper was sent, to end the job
    unsigned threads = 0;             ///< ranks prepared at a time, 0: one per core
    uint64_t keepBytes = 1ull << 30;  ///< packed events kept in memory; ranks beyond it are loaded a second time
};

/// Makes a trace.db from ranks' recordings: orders events, joins calls with kernels, aligns clocks, matches collectives
/// and p2p, finds steps, writes. The same recordings give the same file whatever their order and the number of threads.
///
///     TraceBuilder builder("out/trace.db", facts);
///     builder.add(rank, [=] { return load(file); });   // or builder.add(std::move(recording))
///     builder.finish();
class TraceBuilder {
  public:
    using Load = std::function<RankRecording()>;

    TraceBuilder(std::filesystem::path target, RunFacts facts);
    ~TraceBuilder();

    /// `load` is called once or twice, on any thread, and must return the same recording each time. A throwing load
    /// ends finish() with its exception.
    void add(int32_t rank, Load load);
    void add(RankRecording recording);
    /// With a team its other processes have ranks, too, and call helpBuildTrace() for them. finish() then throws
    /// team::MemberFailed where one of them fails.
    void shareWith(team::Team& team);
    void addElsewhere(int32_t rank, int process);
    /// The events go into shards (store/shards.h) beside the file, of these names, by process of the team; those of
    /// ranks that are here into the first. Without a team there is one.
    void useShards(std::vector<std::string> names);
    /// A loss that belongs to no recording.
    void addLoss(store::Loss loss);

    /// What the threads of a rank stood in; those of processes that are not among the ranks are left out.
    void addStacks(std::vector<ToldStack> stacks);

    /// How the ranks' devices and the ports of their hosts did; those of processes that are not among the ranks are
    /// left out.
    void addHealth(std::vector<capture::HealthFile> files);

    /// Writes the file; throws store::Error (the target is then as it was before).
    void finish();

  private:
    struct State;
    std::unique_ptr<State> m_state;
};

}  // namespace rankscope::collector
