// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/scenario_faults.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <sstream>
#include <string_view>

#include "reference/workloads/layout.h"
#include "reference/workloads/scenario_json.h"

namespace rankscope::reference {

using nlohmann::json;

namespace {

constexpr double kDefaultSmallBucketsKb = 1024;
constexpr int kMostLaunchBoundMicroSteps = 4;  // more would only make the trace long

int readRank(ObjectReader& reader, const Scenario& scenario, int fallback) {
    const int rank = reader.integer("rank", fallback, 0);
    if (rank >= scenario.worldSize())
        reader.fail("rank", "is " + std::to_string(rank) + " of " + std::to_string(scenario.worldSize()) + " ranks");
    return rank;
}

int readNode(ObjectReader& reader, const Scenario& scenario, const char* key, int fallback) {
    const int node = reader.integer(key, fallback, 0);
    if (node >= scenario.cluster.nodes)
        reader.fail(key, "is " + std::to_string(node) + " of " + std::to_string(scenario.cluster.nodes) + " nodes");
    return node;
}

void needKind(const ObjectReader& reader, const Scenario& scenario, const std::string& fault,
              std::initializer_list<Kind> kinds) {
    if (std::find(kinds.begin(), kinds.end(), scenario.kind) == kinds.end())
        reader.fail("kind",
                    "is '" + fault + "', which makes no sense for a job of the kind '" + kindName(scenario.kind) + "'");
}

void needReplicas(const ObjectReader& reader, const Scenario& scenario, const std::string& fault) {
    if (scenario.parallel.dp < 2)
        reader.fail("kind", "is '" + fault + "', which needs replicas (parallel.dp of at least 2)");
}

void needPipeline(const ObjectReader& reader, const Scenario& scenario, const std::string& fault) {
    if (scenario.parallel.pp < 2)
        reader.fail("kind", "is '" + fault + "', which needs a pipeline (parallel.pp of at least 2)");
}

/// Sharded parameters have no buckets: each layer's gradients are one message.
void needBuckets(const ObjectReader& reader, const Scenario& scenario, const std::string& fault) {
    needReplicas(reader, scenario, fault);
    if (scenario.kind == Kind::fsdp || scenario.kind == Kind::hsdp)
        reader.fail("kind",
                    "is '" + fault + "', which makes no sense for a job of the kind '" + kindName(scenario.kind) + "'");
}

void needNodes(const ObjectReader& reader, const Scenario& scenario, const std::string& fault) {
    if (scenario.cluster.nodes < 2) reader.fail("kind", "is '" + fault + "', which needs at least two nodes");
}

void readLinkStrength(ObjectReader& reader) {
    reader.positive("gbps", 1);
    reader.positive("factor", 0.25);
}

/// The reason by which NVML tells that a slow device is throttled; left out, NVML tells of none.
void readThrottle(ObjectReader& reader) {
    if (!reader.has("throttle")) return;
    const std::string reason = reader.text("throttle", "");
    if (reason != "power" && reason != "thermal" && reason != "power_brake")
        reader.fail("throttle", "is '" + reason + "': use power, thermal or power_brake");
}

/// Faults of devices and links, which only virtual GPUs can plant: checked here, applied there. False: not one of them.
bool readVirtualFault(const std::string& kind, ObjectReader& reader, const Scenario& scenario) {
    if (kind == "slow_node") {
        readNode(reader, scenario, "node", 0);
        reader.positive("factor", 1.5);
        readThrottle(reader);
    } else if (kind == "slow_link") {
        reader.notNegative("errors_per_s", 0);
        if (const json* pair = reader.find("pair")) {
            const bool valid = pair->is_array() && pair->size() == 2 && (*pair)[0].is_number_unsigned() &&
                               (*pair)[1].is_number_unsigned() &&
                               (*pair)[0].get<uint64_t>() < static_cast<uint64_t>(scenario.worldSize()) &&
                               (*pair)[1].get<uint64_t>() < static_cast<uint64_t>(scenario.worldSize());
            if (!valid) reader.fail("pair", "must be two ranks");
        } else {
            if (!reader.has("rank")) reader.fail("rank", "is missing ('rank' or 'pair' says which link)");
            readRank(reader, scenario, 0);
        }
        readLinkStrength(reader);
    } else if (kind == "slow_nic") {
        needNodes(reader, scenario, kind);
        readNode(reader, scenario, "node", 0);
        readLinkStrength(reader);
    } else if (kind == "under_used_link") {
        readLinkStrength(reader);
    } else if (kind == "sm_contention") {
        reader.positive("factor", 1.3);
    } else if (kind == "clock_offset") {
        needNodes(reader, scenario, kind);
        readNode(reader, scenario, "host", 1);
        for (const char* key : {"us", "ppm"})
            if (const json* value = reader.find(key); value && !value->is_number())
                reader.fail(key, "must be a number");
    } else {
        return false;
    }
    return true;
}

/// Faults that a framework's own options and environment plant, as a user would: the scenario only says so. False: not
/// one of them.
bool readFrameworkLabel(const std::string& kind, ObjectReader& reader) {
    static const std::set<std::string> kLabels = {
        "few_micro_batches", "fp32_grads",      "late_launch", "launch_bound",  "no_no_sync", "no_overlap",
        "no_prefetch",       "pageable_copies", "saturated",   "single_bucket", "slow_input", "small_buckets",
        "stage_imbalance",   "sync_every_step", "uneven_work", "wrong_algo"};
    if (kLabels.count(kind)) return true;
    if (kind != "alloc_churn") return false;
    reader.positive("us", AllocChurn{}.us);  // what the driver takes for each call: applied by the virtual GPUs
    return true;
}

/// Forward and backward passes in a step: host faults that a training loop repeats come in each of them.
int microSteps(const Scenario& scenario) {
    return scenario.parallel.pp > 1 ? scenario.parallel.microBatches : scenario.parallel.accumulate;
}

/// Faults of the hosts of all ranks. False: not one of them.
bool readHostFault(const std::string& kind, ObjectReader& reader, const Scenario& scenario, Faults& faults) {
    const int micro = microSteps(scenario);
    if (kind == "jitter") {
        Jitter jitter;
        jitter.share = reader.positive("share", jitter.share);
        if (jitter.share > 1) reader.fail("share", "is a share of the steps: at most 1");
        jitter.ms = reader.positive("ms", jitter.ms * micro);
        if (scenario.worldSize() < 2)
            reader.fail("kind", "is 'jitter', which changes between ranks: it needs at least two");
        faults.jitter = jitter;
    } else if (kind == "late_launch") {
        needKind(reader, scenario, kind, {Kind::ddp, Kind::zero1, Kind::zero2, Kind::fsdp, Kind::hsdp});
        LateLaunch late;
        if (reader.has("ms")) late.ms = reader.positive("ms", 1);
        faults.lateLaunch = late;
    } else if (kind == "launch_bound") {
        LaunchBound bound;
        bound.kernels = reader.integer("kernels", bound.kernels * std::min(micro, kMostLaunchBoundMicroSteps), 2);
        bound.hostUs = reader.notNegative("host_us", bound.hostUs);
        faults.launchBound = bound;
    } else if (kind == "sync_every_step") {
        SyncEveryStep sync;
        sync.perStep = reader.integer("per_step", sync.perStep * micro, 1);
        sync.hostMs = reader.notNegative("host_ms", sync.hostMs);
        faults.syncEveryStep = sync;
    } else if (kind == "slow_input") {
        faults.slowInput = SlowInput{reader.positive("ms", SlowInput{}.ms * micro)};
    } else if (kind == "alloc_churn") {
        AllocChurn churn;
        churn.perStep = reader.integer("per_step", churn.perStep * micro, 1);
        churn.us = reader.positive("us", churn.us);
        faults.allocChurn = churn;
    } else if (kind == "pageable_copies") {
        PageableCopies copies;
        copies.perStep = reader.integer("per_step", copies.perStep * micro, 1);
        copies.mb = reader.positive("mb", copies.mb * micro);
        faults.pageableCopies = copies;
    } else {
        return false;
    }
    return true;
}

UnevenWork readUnevenWork(ObjectReader& reader, const Scenario& scenario) {
    UnevenWork uneven;
    uneven.factor = reader.positive("factor", uneven.factor);
    if (uneven.factor < 1) reader.fail("factor", "is what the heaviest has over the mean: at least 1");
    uneven.ranks = reader.ranks("ranks", scenario.worldSize());
    std::set<int> heavy;
    for (const int rank : uneven.ranks) heavy.insert(Layout(scenario.parallel, rank).dataRank());
    if (static_cast<int>(heavy.size()) == scenario.parallel.dp)
        reader.fail("ranks", "names every replica: none is left to have less");
    return uneven;
}

/// Names that NCCL knows, in its own syntax: "tree", "allreduce:tree;allgather:ring", "^LL".
void checkNcclNames(const ObjectReader& reader, const char* key, std::string value,
                    const std::set<std::string>& known) {
    std::transform(value.begin(), value.end(), value.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    static const std::set<std::string> functions = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"};
    std::istringstream sections(value);
    for (std::string section; std::getline(sections, section, ';');) {
        if (const size_t colon = section.find(':'); colon != std::string::npos) {
            if (!functions.count(section.substr(0, colon)))
                reader.fail(key, "names the function '" + section.substr(0, colon) + "', which NCCL has not");
            section.erase(0, colon + 1);
        }
        if (!section.empty() && section[0] == '^') section.erase(0, 1);
        std::istringstream names(section);
        for (std::string name; std::getline(names, name, ',');)
            if (!known.count(name)) reader.fail(key, "is '" + value + "': NCCL knows no '" + name + "'");
    }
}

WrongAlgo readWrongAlgo(ObjectReader& reader) {
    WrongAlgo wrong;
    wrong.algo = reader.text("algo", "");
    wrong.proto = reader.text("proto", wrong.algo.empty() ? "LL" : "");
    checkNcclNames(reader, "algo", wrong.algo,
                   {"tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"});
    checkNcclNames(reader, "proto", wrong.proto, {"ll", "ll128", "simple"});
    return wrong;
}

/// Faults of the job itself: of how its work is dealt out, and of settings. False: not one of them.
bool readJobFault(const std::string& kind, ObjectReader& reader, const Scenario& scenario, Faults& faults) {
    if (kind == "uneven_work") {
        needReplicas(reader, scenario, kind);
        faults.unevenWork = readUnevenWork(reader, scenario);
    } else if (kind == "stage_imbalance") {
        needPipeline(reader, scenario, kind);
        StageImbalance imbalance;
        imbalance.stage = reader.integer("stage", imbalance.stage, 0);
        if (imbalance.stage >= scenario.parallel.pp)
            reader.fail("stage", "is " + std::to_string(imbalance.stage) + " of " +
                                     std::to_string(scenario.parallel.pp) + " stages");
        imbalance.factor = reader.positive("factor", imbalance.factor);
        faults.stageImbalances.push_back(imbalance);
    } else if (kind == "fp32_grads") {
        needReplicas(reader, scenario, kind);
        if (scenario.model.dtype == Dtype::fp32)
            reader.fail("kind", "is 'fp32_grads', but model.dtype is fp32: nothing computes in 16 bit");
        faults.fp32Grads = true;
    } else if (kind == "no_no_sync") {
        needReplicas(reader, scenario, kind);
        if (microSteps(scenario) < 2)
            reader.fail("kind", std::string("is 'no_no_sync', which needs parallel.") +
                                    (scenario.parallel.pp > 1 ? "micro_batches" : "accumulate") + " of at least 2");
        faults.noNoSync = true;
    } else if (kind == "tp_across_nodes") {
        needNodes(reader, scenario, kind);
        if (scenario.parallel.tp < 2)
            reader.fail("kind", "is 'tp_across_nodes', which needs parallel.tp of at least 2");
        faults.tpAcrossNodes = true;
    } else if (kind == "wrong_algo") {
        faults.wrongAlgo = readWrongAlgo(reader);
    } else {
        return false;
    }
    return true;
}

int readStep(ObjectReader& reader, const Scenario& scenario) {
    const int step = reader.integer("step", scenario.steps / 2, 0);
    if (step >= scenario.steps)
        reader.fail("step", "is " + std::to_string(step) + " of " + std::to_string(scenario.steps) + " steps");
    return step;
}

/// Only the workloads know their steps, and NVML's clocks are told for the whole run.
int readFromStep(ObjectReader& reader, const Scenario& scenario) {
    if (scenario.kind == Kind::framework)
        reader.fail("from_step", "is for workloads: nothing plants it in a framework");
    if (reader.has("throttle")) reader.fail("from_step", "and 'throttle' exclude each other");
    const int step = reader.integer("from_step", 0, 0);
    if (step >= scenario.steps)
        reader.fail("from_step", "is " + std::to_string(step) + " of " + std::to_string(scenario.steps) + " steps");
    return step;
}

SlowKernel readSlowKernel(ObjectReader& reader, const Scenario& scenario) {
    constexpr std::array<std::string_view, 7> kKernels = {"attention", "layerNorm",   "qkvGemm", "projectionGemm",
                                                          "mlpUpGemm", "mlpDownGemm", "adamStep"};
    SlowKernel slow;
    slow.kernel = reader.text("kernel", slow.kernel);
    if (std::ranges::find(kKernels, slow.kernel) == kKernels.end())
        reader.fail("kernel", "is '" + slow.kernel +
                                  "', which is none of attention, layerNorm, qkvGemm, projectionGemm, mlpUpGemm, "
                                  "mlpDownGemm, adamStep");
    if (reader.has("rank")) slow.rank = readRank(reader, scenario, 0);
    slow.factor = reader.positive("factor", slow.factor);
    if (reader.has("from_step")) slow.fromStep = readFromStep(reader, scenario);
    return slow;
}

Mismatch::What readWhat(ObjectReader& reader) {
    const std::string what = reader.text("what", "size");
    if (what == "size") return Mismatch::What::size;
    if (what == "dtype") return Mismatch::What::dtype;
    if (what == "op") return Mismatch::What::op;
    if (what == "order") return Mismatch::What::order;
    if (what == "root") return Mismatch::What::root;
    reader.fail("what", "is '" + what + "': use op, size, dtype, order or root");
}

bool endsJobs(const std::string& kind) {
    constexpr const char* kKinds[] = {"kill",    "oom",       "missing_rank",   "mismatch",     "asleep",
                                      "stopped", "exception", "opposite_order", "ended_by_user"};
    return std::any_of(std::begin(kKinds), std::end(kKinds), [&](const char* known) { return kind == known; });
}

MissingRank::Where whereOf(const std::string& kind) {
    return kind == "asleep"    ? MissingRank::Where::loader
           : kind == "stopped" ? MissingRank::Where::stopped
                               : MissingRank::Where::step;
}

/// Faults that end the job. False: not one of them.
bool readFailure(const std::string& kind, ObjectReader& reader, const Scenario& scenario, Faults& faults) {
    if (!endsJobs(kind)) return false;
    if (kind == "ended_by_user") {
        const std::string signal = reader.text("signal", "SIGINT");
        if (signal != "SIGINT" && signal != "SIGTERM")
            reader.fail("signal", "is '" + signal + "': use SIGINT or SIGTERM");
        faults.endedByUser = EndedByUser{signal == "SIGINT" ? SIGINT : SIGTERM, readStep(reader, scenario)};
        return true;
    }
    const int rank = readRank(reader, scenario, 0);
    const int step = readStep(reader, scenario);
    if (kind == "kill") {
        faults.kill = Kill{rank, step};
        return true;
    }
    if (scenario.worldSize() < 2)
        reader.fail("kind", "is '" + kind + "', which needs others that wait: at least two ranks");
    if (kind == "oom") faults.oom = OutOfMemory{rank, step};
    if (kind == "missing_rank" || kind == "asleep" || kind == "stopped")
        faults.missingRank = MissingRank{whereOf(kind), rank, step};
    if (kind == "exception") faults.exception = Exception{rank, step};
    if (kind == "opposite_order") faults.oppositeOrder = OppositeOrder{rank, step};
    if (kind == "mismatch") {
        const Mismatch::What what = readWhat(reader);
        if (what != Mismatch::What::root && scenario.parallel.dp * scenario.parallel.tp < 2)
            reader.fail("kind", "is 'mismatch', but the job has no collectives (only sends between stages)");
        faults.mismatch = Mismatch{what, rank, step};
        // In the others all collectives of a communicator are alike.
        if (faults.mismatch->what == Mismatch::What::order)
            needKind(reader, scenario, "mismatch' of 'order",
                     {Kind::ddp, Kind::zero1, Kind::zero2, Kind::fsdp, Kind::hsdp, Kind::tpSp});
    }
    faults.watchdogSeconds = reader.positive("timeout_s", faults.watchdogSeconds);
    faults.watchedFromStep = std::min(faults.watchedFromStep, step);
    return true;
}

bool mayRepeat(const std::string& kind) {
    return kind == "straggler" || kind == "slow_kernel" || kind == "stage_imbalance" || kind == "slow_link" ||
           kind == "slow_nic" || kind == "clock_offset";
}

void readFault(ObjectReader& reader, const Scenario& scenario, Faults& faults) {
    const std::string kind = reader.text("kind", "");
    if (kind.empty()) reader.fail("kind", "is missing");
    if (std::count(faults.kinds.begin(), faults.kinds.end(), kind) && !mayRepeat(kind))
        reader.fail("kind", "is '" + kind + "' a second time");
    faults.kinds.push_back(kind);
    if (kind == "none") return;
    if (scenario.kind == Kind::framework && readFrameworkLabel(kind, reader)) return;
    if (readVirtualFault(kind, reader, scenario)) {
        faults.virtualOnly.push_back(kind);
    } else if (scenario.kind == Kind::framework && kind != "straggler") {
        reader.fail("kind", "is '" + kind + "', which nothing plants in a job of a framework");
    } else if (readHostFault(kind, reader, scenario, faults) || readJobFault(kind, reader, scenario, faults) ||
               readFailure(kind, reader, scenario, faults)) {
        return;
    } else if (kind == "straggler") {
        Straggler straggler;
        straggler.rank = readRank(reader, scenario, 0);
        straggler.factor = reader.positive("factor", straggler.factor);
        if (reader.has("from_step")) straggler.fromStep = readFromStep(reader, scenario);
        straggler.overSteps = reader.integer("over_steps", straggler.overSteps, 1);
        if (straggler.overSteps > 1 && straggler.fromStep == 0)
            reader.fail("over_steps", "is for a straggler with 'from_step' of 1 or more");
        readThrottle(reader);
        faults.stragglers.push_back(straggler);
    } else if (kind == "slow_kernel") {
        faults.slowKernels.push_back(readSlowKernel(reader, scenario));
    } else if (kind == "small_buckets") {
        needBuckets(reader, scenario, kind);
        const double kb = reader.positive("kb", kDefaultSmallBucketsKb);
        if (kb * 1024 < static_cast<double>(dtypeBytes(scenario.parallel.gradDtype)))
            reader.fail("kb", "is less than one gradient");
        faults.smallBucketsKb = kb;
    } else if (kind == "single_bucket") {
        needBuckets(reader, scenario, kind);
        faults.singleBucket = true;
    } else if (kind == "no_overlap") {
        needReplicas(reader, scenario, kind);
        faults.noOverlap = true;
    } else if (kind == "no_prefetch") {
        needKind(reader, scenario, kind, {Kind::fsdp, Kind::hsdp});
        faults.noPrefetch = true;
    } else if (kind == "saturated") {
        return;
    } else if (kind == "few_micro_batches") {
        needPipeline(reader, scenario, kind);
    } else {
        reader.fail("kind", "is '" + kind + "', which is not a fault of this harness");
    }
}

}  // namespace

Faults readFaults(const json& list, const Scenario& scenario, const std::string& origin) {
    if (!list.is_array()) throw ScenarioError(origin + ": 'faults' must be a list");
    Faults faults;
    for (size_t i = 0; i < list.size(); ++i) {
        ObjectReader reader(list[i], origin, "faults[" + std::to_string(i) + "]");
        readFault(reader, scenario, faults);
        reader.rejectUnknownKeys();
    }
    if (faults.smallBucketsKb && faults.singleBucket)
        throw ScenarioError(origin + ": 'small_buckets' and 'single_bucket' exclude each other");
    return faults;
}

void applySettings(const Faults& faults, Parallel& parallel) {
    if (faults.fp32Grads) parallel.gradDtype = Dtype::fp32;
    if (faults.noNoSync) parallel.noSync = false;
    if (faults.tpAcrossNodes) parallel.tensorOutermost = true;
}

}  // namespace rankscope::reference
