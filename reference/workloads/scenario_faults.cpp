// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/scenario_faults.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "reference/workloads/scenario_json.h"

namespace rankscope::reference {

using nlohmann::json;

namespace {

constexpr double kDefaultSmallBucketsKb = 1024;
constexpr int kMostLaunchBoundMicroSteps = 4;  // more would only make the trace long

constexpr std::array kNotYetAvailable = {"late_launch",     "stage_imbalance", "wrong_algo",   "no_no_sync", "fp32_grads",
                                         "tp_across_nodes", "uneven_work",     "missing_rank", "mismatch",   "oom"};

int readRank(ObjectReader& reader, const Scenario& scenario, int fallback) {
    const int rank = reader.integer("rank", fallback, 0);
    if (rank >= scenario.worldSize()) reader.fail("rank", "is " + std::to_string(rank) + " of " + std::to_string(scenario.worldSize()) + " ranks");
    return rank;
}

int readNode(ObjectReader& reader, const Scenario& scenario, const char* key, int fallback) {
    const int node = reader.integer(key, fallback, 0);
    if (node >= scenario.cluster.nodes) reader.fail(key, "is " + std::to_string(node) + " of " + std::to_string(scenario.cluster.nodes) + " nodes");
    return node;
}

void needNodes(const ObjectReader& reader, const Scenario& scenario, const std::string& fault) {
    if (scenario.cluster.nodes < 2) reader.fail("kind", "is '" + fault + "', which needs at least two nodes");
}

void readLinkStrength(ObjectReader& reader) {
    reader.positive("gbps", 1);
    reader.positive("factor", 0.25);
}

/// Faults of devices and links, which only virtual GPUs can plant: checked here, applied there. False: not one of them.
bool readVirtualFault(const std::string& kind, ObjectReader& reader, const Scenario& scenario) {
    if (kind == "slow_node") {
        readNode(reader, scenario, "node", 0);
        reader.positive("factor", 1.5);
    } else if (kind == "slow_link") {
        if (const json* pair = reader.find("pair")) {
            const bool valid = pair->is_array() && pair->size() == 2 && (*pair)[0].is_number_unsigned() && (*pair)[1].is_number_unsigned() &&
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
            if (const json* value = reader.find(key); value && !value->is_number()) reader.fail(key, "must be a number");
    } else {
        return false;
    }
    return true;
}

/// Forward and backward passes in a step: host faults that a training loop repeats come in each of them.
int microSteps(const Scenario& scenario) { return scenario.parallel.pp > 1 ? scenario.parallel.microBatches : scenario.parallel.accumulate; }

/// Faults of the hosts of all ranks. False: not one of them.
bool readHostFault(const std::string& kind, ObjectReader& reader, const Scenario& scenario, Faults& faults) {
    const int micro = microSteps(scenario);
    if (kind == "jitter") {
        Jitter jitter;
        jitter.share = reader.positive("share", jitter.share);
        if (jitter.share > 1) reader.fail("share", "is a share of the steps: at most 1");
        jitter.ms = reader.positive("ms", jitter.ms * micro);
        if (scenario.worldSize() < 2) reader.fail("kind", "is 'jitter', which changes between ranks: it needs at least two");
        faults.jitter = jitter;
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

void needKind(const ObjectReader& reader, const Scenario& scenario, const std::string& fault, std::initializer_list<Kind> kinds) {
    if (std::find(kinds.begin(), kinds.end(), scenario.kind) == kinds.end())
        reader.fail("kind", "is '" + fault + "', which makes no sense for a job of the kind '" + kindName(scenario.kind) + "'");
}

bool mayRepeat(const std::string& kind) { return kind == "straggler" || kind == "slow_link" || kind == "slow_nic" || kind == "clock_offset"; }

void readFault(ObjectReader& reader, const Scenario& scenario, Faults& faults) {
    const std::string kind = reader.text("kind", "");
    if (kind.empty()) reader.fail("kind", "is missing");
    if (std::count(faults.kinds.begin(), faults.kinds.end(), kind) && !mayRepeat(kind)) reader.fail("kind", "is '" + kind + "' a second time");
    faults.kinds.push_back(kind);
    if (kind == "none") return;
    if (readVirtualFault(kind, reader, scenario)) {
        faults.virtualOnly.push_back(kind);
    } else if (readHostFault(kind, reader, scenario, faults)) {
        return;
    } else if (kind == "straggler") {
        Straggler straggler;
        straggler.rank = readRank(reader, scenario, 0);
        straggler.factor = reader.positive("factor", straggler.factor);
        faults.stragglers.push_back(straggler);
    } else if (kind == "small_buckets") {
        needKind(reader, scenario, kind, {Kind::ddp});
        const double kb = reader.positive("kb", kDefaultSmallBucketsKb);
        if (kb * 1024 < static_cast<double>(dtypeBytes(scenario.parallel.gradDtype))) reader.fail("kb", "is less than one gradient");
        faults.smallBucketsKb = kb;
    } else if (kind == "single_bucket") {
        needKind(reader, scenario, kind, {Kind::ddp});
        faults.singleBucket = true;
    } else if (kind == "no_overlap") {
        needKind(reader, scenario, kind, {Kind::ddp, Kind::fsdp});
        faults.noOverlap = true;
    } else if (kind == "no_prefetch") {
        needKind(reader, scenario, kind, {Kind::fsdp});
        faults.noPrefetch = true;
    } else if (kind == "saturated") {
        return;
    } else if (kind == "few_micro_batches") {
        needKind(reader, scenario, kind, {Kind::pp});
    } else if (kind == "kill") {
        Kill kill;
        kill.rank = readRank(reader, scenario, 0);
        kill.step = reader.integer("step", scenario.steps / 2, 0);
        if (kill.step >= scenario.steps) reader.fail("step", "is " + std::to_string(kill.step) + " of " + std::to_string(scenario.steps) + " steps");
        faults.kill = kill;
    } else if (std::find(kNotYetAvailable.begin(), kNotYetAvailable.end(), std::string_view(kind)) != kNotYetAvailable.end()) {
        reader.fail("kind", "is '" + kind + "': not available yet");
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
    if (faults.smallBucketsKb && faults.singleBucket) throw ScenarioError(origin + ": 'small_buckets' and 'single_bucket' exclude each other");
    return faults;
}

}  // namespace rankscope::reference
