// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/cli/job/job_process.h"

namespace rankscope::cli {

/// What happened before a trigger, and a collective that takes long: a minute is enough to tell.
inline constexpr const char* kDefaultRing = "60s";

// Says what a job's processes are to record, and when.
struct RecordingOptions {
    std::string trace = "cuda,nccl,nvtx,api";
    // Without device activity: when collectives ran is told by NCCL's profiler plugin. Empty, calls, or kernels: of
    // each step summaries of its kernels besides.
    std::string light;
    std::string ring = kDefaultRing;  // of light mode: how long full detail is kept, as secondsOf() reads it
    double slowStep = 0;              // of light mode: so many times the median is a slow step; 0: none is
    std::string captureRange = "none";
    int64_t maxBytes = int64_t{2} << 30;  // per rank
    double delayS = 0;
    double durationS = 0;  // 0: until the end

    bool isLight() const { return !light.empty(); }
    bool sumsKernels() const { return light == "kernels"; }
    // Of light mode: the sources that it records.
    std::string lightTrace() const { return sumsKernels() ? "cuda,nccl,nvtx" : "nccl,nvtx"; }
};

// Holds what run.json says about a run besides how it ended.
struct RunDescription {
    std::vector<std::string> command;
    std::string jobKey;       // tells the wrappers of one job from those of another
    bool onePerNode = false;  // each node of the job has a wrapper and a launcher inside it: they meet in the directory
                              // while one of them lives
    std::string launcher;     // inside | openmpi | slurm | torchrun …
    int worldSize = 0;        // 0: not known yet
    bool virtualGpus = false;
    bool shared = false;   // others may read the run as the umask has it; else it is the user's alone
    std::string links;     // RANKSCOPE_LINKS as given
    std::string scenario;  // name of the reference scenario, or empty
    std::optional<RecordingOptions> recording;  // of `run`
    std::string tunerRows;                      // rows apart by ';'; empty: none
    // NCCL_ALGO and NCCL_PROTO: of --env, and as the environment has them that the job is started from. Nothing with
    // the launcher outside, which may have set them.
    std::map<std::string, std::string> optionVariables;
    std::optional<std::map<std::string, std::string>> startVariables;
};

// Returns those of the variables NCCL_ALGO and NCCL_PROTO that are set.
std::map<std::string, std::string> forcingVariables(const Environment& environment);

// The place of one wrapper in the run directory. With the launcher outside, the wrappers of all ranks share the
// directory.
struct Membership {
    std::string slot;   // rank and attempt; "job" with the launcher inside
    int localSize = 0;  // wrappers expected on this host; 0: unknown
};

// NAME/, with run.json and capture/ in it.
class RunDirectory {
  public:
    // Creates the directory, or joins the one that a sibling of the same job has created. Another run's directory is
    // refused unless `force`, which empties it, but not while its job lives; a folder that is no run is refused always.
    // Throws VerbError.
    RunDirectory(const std::filesystem::path& path, const RunDescription& description, const Membership& membership,
                 bool force);

    const std::filesystem::path& path() const { return m_path; }
    // When it came no other wrapper of this host was there: what is done once for a host is done by this one.
    bool isFirstOfHost() const { return m_isFirstOfHost; }
    // No wrapper of another host has ever written into the run.
    bool isOfOneHost() const;
    // No other wrapper of this host records into the run.
    bool isAlone() const { return m_membership.localSize == 1; }
    std::filesystem::path captureFolder() const { return m_path / "capture"; }

    // Tells how this wrapper's process ended, and by what signal somebody had it end (0: nobody). True when it was the
    // last one of this host, which is the one that collects.
    bool leave(const ProcessEnd& end, int stopSignal);

    // Takes everything away again that a job left which could not be started, if this wrapper is the only one.
    void abandon() noexcept;

  private:
    std::filesystem::path m_path;
    Membership m_membership;
    bool m_isFirstOfHost = false;
};

// Writes peaks of the links into the run's description, so that it is collected with them from now on. Does nothing
// where there is none.
void tellLinks(const std::filesystem::path& path, const std::string& links);

// True when the folder was made by `rankscope run`.
bool isRunDirectory(const std::filesystem::path& path);

}  // namespace rankscope::cli
