// SPDX-License-Identifier: Apache-2.0
// A reference scenario: the job to run, the cluster it pretends to run on, and the faults planted in it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "reference/workloads/claim.h"
#include "reference/workloads/faults.h"
#include "reference/workloads/framework_job.h"

namespace rankscope::reference {

/// The kind framework is a script of a training framework; the others are jobs of rankscope-workload.
enum class Kind : uint8_t { framework, ddp, zero1, zero2, fsdp, hsdp, tp, tpSp, pp, ep, threeD };
enum class Dtype : uint8_t { bf16, fp16, fp32 };
enum class Schedule : uint8_t { gpipe, oneForwardOneBackward, interleaved };

const char* kindName(Kind kind);
/// Layers are cut into parts, stages or experts: the kinds tp, tp+sp, pp, ep and 3d, in which every degree may be
/// combined.
bool cutsModel(Kind kind);
const char* dtypeName(Dtype dtype);
int64_t dtypeBytes(Dtype dtype);

/// One class of links; gbps are 1e9 bytes per second, in one direction, per rank.
struct Link {
    double alphaUs = 0;
    double gbps = 0;
};

struct Cluster {
    int nodes = 2;
    int ranksPerNode = 4;
    double tflops = 300;
    double hbmGbps = 2000;
    double launchUs = 6;
    Link intra{6, 200};
    Link inter{18, 40};
};

struct Model {
    int layers = 16;
    int64_t hidden = 4096;
    int64_t seq = 2048;
    int64_t microBatch = 2;
    Dtype dtype = Dtype::bf16;
    int experts = 0;  ///< of each layer; each token goes to one. 0: a dense model
};

struct Parallel {
    int dp = 8;
    int tp = 1;
    int pp = 1;
    int ep = 1;
    bool tensorOutermost = false;  ///< tensor-parallel ranks lie farthest from each other instead of side by side;
                                   ///< planted by tp_across_nodes
    Schedule schedule = Schedule::oneForwardOneBackward;
    int virtualStages = 1;
    int microBatches = 8;
    double bucketMb = 25;
    bool overlap = true;
    bool prefetch = true;
    int accumulate = 1;
    bool noSync = true;
    Dtype gradDtype = Dtype::bf16;
};

/// Worlds (reference/vgpu/engine/nccl_world.h) have numbers from 1 on; 0 is the ideal one.
inline constexpr int64_t kLastWorld = 1'000'000'000;

struct Scenario {
    std::string name;
    std::string description;
    Kind kind = Kind::fsdp;
    int steps = 12;
    int64_t seed = 7;
    double noise = 0.02;
    double noiseRun = 0;
    Cluster cluster;
    Model model;
    Parallel parallel;
    FrameworkJob framework;  ///< of the kind framework, where model and parallel say nothing
    Faults faults;
    std::vector<Claim> claims;  ///< of expect and allow

    int worldSize() const {
        return kind == Kind::framework ? cluster.nodes * cluster.ranksPerNode : parallel.dp * parallel.tp * parallel.pp;
    }
};

/// Says which key of which file is wrong, and what would be right.
struct ScenarioError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Reads and checks a scenario. `origin` names it in messages. Throws ScenarioError.
Scenario parseScenario(const std::string& text, const std::string& origin);
Scenario loadScenario(const std::string& path);

/// The scenario with its `fixed` overrides merged into it (RFC 7386) and nothing left to expect, as JSON text. Throws
/// ScenarioError.
std::string fixedScenarioText(const std::string& text, const std::string& origin);

/// The link peaks in the form of RANKSCOPE_LINKS.
std::string linksText(const Cluster& cluster);

/// One JSON object for tools that start workloads: name, kind, world_size, nodes, ranks_per_node, links, steps, faults,
/// claims [{key, id}], and of the kind framework `framework`: script, arguments, environment, modules.
std::string summaryText(const Scenario& scenario);

}  // namespace rankscope::reference
