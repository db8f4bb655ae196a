// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/scenario.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reference/workloads/framework_job_json.h"
#include "reference/workloads/scenario_check.h"
#include "reference/workloads/scenario_claims.h"
#include "reference/workloads/scenario_faults.h"
#include "reference/workloads/scenario_json.h"

namespace rankscope::reference {

using nlohmann::json;

const char* kindName(Kind kind) {
    switch (kind) {
        case Kind::framework:
            return "framework";
        case Kind::ddp:
            return "ddp";
        case Kind::zero1:
            return "zero1";
        case Kind::zero2:
            return "zero2";
        case Kind::fsdp:
            return "fsdp";
        case Kind::hsdp:
            return "hsdp";
        case Kind::tp:
            return "tp";
        case Kind::tpSp:
            return "tp+sp";
        case Kind::pp:
            return "pp";
        case Kind::ep:
            return "ep";
        case Kind::threeD:
            return "3d";
    }
    return "unknown";
}

bool cutsModel(Kind kind) {
    return kind >= Kind::tp;
}

const char* dtypeName(Dtype dtype) {
    switch (dtype) {
        case Dtype::bf16:
            return "bf16";
        case Dtype::fp16:
            return "fp16";
        case Dtype::fp32:
            return "fp32";
    }
    return "unknown";
}

int64_t dtypeBytes(Dtype dtype) {
    return dtype == Dtype::fp32 ? 4 : 2;
}

namespace {

json parseJson(const std::string& text, const std::string& origin) {
    // What is made of it calls itself for each level; scenarios have some six.
    constexpr int kDeepest = 64;
    try {
        return json::parse(text, [&](int depth, json::parse_event_t, json&) {
            if (depth > kDeepest) throw ScenarioError(origin + ": nested more deeply than any scenario");
            return true;
        });
    } catch (const json::exception& error) {
        throw ScenarioError(origin + ": not valid JSON: " + error.what());
    }
}

Kind readKind(ObjectReader& reader) {
    const std::string name = reader.text("kind", "fsdp");
    if (name == "tp_sp" || name == "sp") return Kind::tpSp;
    for (const Kind kind : {Kind::framework, Kind::ddp, Kind::zero1, Kind::zero2, Kind::fsdp, Kind::hsdp, Kind::tp,
                            Kind::tpSp, Kind::pp, Kind::ep, Kind::threeD})
        if (name == kindName(kind)) return kind;
    reader.fail("kind", "is '" + name + "': use ddp, zero1, zero2, fsdp, hsdp, tp, tp+sp, pp, ep, 3d or framework");
}

Link readLink(ObjectReader reader, const Link& fallback) {
    Link link;
    link.alphaUs = reader.notNegative("alpha_us", fallback.alphaUs);
    link.gbps = reader.positive("gbps", fallback.gbps);
    // Read by the virtual GPUs alone.
    if (reader.positive("reached", 1) > 1) reader.fail("reached", "is a share of the rate: at most 1");
    if (reader.positive("beside_compute", 1) > 1) reader.fail("beside_compute", "is a share of the rate: at most 1");
    reader.boolean("pcie", false);
    reader.rejectUnknownKeys();
    return link;
}

Cluster readCluster(ObjectReader reader) {
    Cluster cluster;
    cluster.nodes = reader.integer("nodes", cluster.nodes, 1);
    cluster.ranksPerNode = reader.integer("ranks_per_node", cluster.ranksPerNode, 1);
    cluster.tflops = reader.positive("tflops", cluster.tflops);
    cluster.hbmGbps = reader.positive("hbm_gbps", cluster.hbmGbps);
    cluster.launchUs = reader.notNegative("launch_us", cluster.launchUs);
    cluster.intra = readLink(reader.object("intra"), cluster.intra);
    cluster.inter = readLink(reader.object("inter"), cluster.inter);
    // Read by the virtual GPUs alone.
    reader.boolean("nvls", false);
    reader.text("compute_capability", "");
    for (const char* key : {"memory_gb", "pcie_gbps", "pageable_gbps"}) reader.positive(key, 1);
    for (const char* key : {"malloc_us", "free_us", "operator_us"}) reader.notNegative(key, 1);
    reader.text("prices", "");
    reader.rejectUnknownKeys();
    return cluster;
}

/// Read by the virtual GPUs alone.
void checkWorld(ObjectReader& reader) {
    const json* world = reader.find("world");
    if (!world || (world->is_string() && *world == "ideal")) return;
    if (!world->is_number_integer() || *world < 0 || *world > kLastWorld)
        reader.fail("world", "must be \"ideal\" or the number of a world, up to 1000000000");
}

Model readModel(ObjectReader reader) {
    Model model;
    model.layers = reader.integer("layers", model.layers, 1);
    model.hidden = reader.longInteger("hidden", model.hidden, 1);
    model.seq = reader.longInteger("seq", model.seq, 1);
    model.microBatch = reader.longInteger("micro_batch", model.microBatch, 1);
    if (model.hidden > 1 << 20) reader.fail("hidden", "must be at most 1048576");
    if (model.seq > 1 << 24 || model.microBatch > 1 << 16)
        reader.fail("seq", "and 'micro_batch' must be at most 16777216 and 65536");
    model.dtype = reader.dtype("dtype", model.dtype);
    model.experts = reader.integer("experts", model.experts, 0);
    reader.rejectUnknownKeys();
    return model;
}

Parallel readParallel(ObjectReader reader) {
    Parallel parallel;
    parallel.dp = reader.integer("dp", parallel.dp, 1);
    parallel.tp = reader.integer("tp", parallel.tp, 1);
    parallel.pp = reader.integer("pp", parallel.pp, 1);
    parallel.ep = reader.integer("ep", parallel.ep, 1);
    const std::string schedule = reader.text("schedule", "1f1b");
    if (schedule == "gpipe")
        parallel.schedule = Schedule::gpipe;
    else if (schedule == "interleaved")
        parallel.schedule = Schedule::interleaved;
    else if (schedule != "1f1b")
        reader.fail("schedule", "is '" + schedule + "': use gpipe, 1f1b or interleaved");
    parallel.virtualStages = reader.integer("virtual_stages", parallel.virtualStages, 1);
    parallel.microBatches = reader.integer("micro_batches", parallel.microBatches, 1);
    parallel.bucketMb = reader.positive("bucket_mb", parallel.bucketMb);
    parallel.overlap = reader.boolean("overlap", parallel.overlap);
    parallel.prefetch = reader.boolean("prefetch", parallel.prefetch);
    parallel.accumulate = reader.integer("accumulate", parallel.accumulate, 1);
    if (parallel.accumulate > 64) reader.fail("accumulate", "must be at most 64");
    parallel.noSync = reader.boolean("no_sync", parallel.noSync);
    parallel.gradDtype = reader.dtype("grad_dtype", parallel.gradDtype);
    reader.rejectUnknownKeys();
    return parallel;
}

/// RFC 7386: what is null in `fixed` goes. Nothing is left to expect or to allow afterwards.
json repaired(json document, const json& fixed) {
    for (const char* key : {"fixed", "expect", "allow"}) document.erase(key);
    document.merge_patch(fixed);
    return document;
}

void checkRepair(const json& document, const json& fixed, const ObjectReader& reader, const std::string& origin) {
    if (!fixed.is_object()) reader.fail("fixed", "must be a JSON object");
    if (fixed.contains("fixed")) reader.fail("fixed.fixed", "has no place there: a repair has no repair");
    parseScenario(repaired(document, fixed).dump(), origin + " with its 'fixed' overrides");
}

}  // namespace

Scenario parseScenario(const std::string& text, const std::string& origin) {
    const json document = parseJson(text, origin);
    ObjectReader reader(document, origin, "");
    Scenario scenario;
    scenario.kind = readKind(reader);
    scenario.name = reader.text("name", kindName(scenario.kind));
    // Folders of runs and of scores are called by it.
    const std::string allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+";
    if (scenario.name.empty() || scenario.name.size() > 200 || scenario.name.front() == '.' ||
        scenario.name.find_first_not_of(allowed) != std::string::npos)
        reader.fail("name",
                    "must be at most 200 letters, digits, '-', '_', '+' and '.', and begin with another than '.'");
    scenario.description = reader.text("description", "");
    scenario.steps = reader.integer("steps", scenario.steps, 1);
    scenario.seed = reader.longInteger("seed", scenario.seed, 0);
    scenario.noise = reader.notNegative("noise", scenario.noise);
    scenario.noiseRun = reader.notNegative("noise_run", scenario.noiseRun);
    checkWorld(reader);
    scenario.cluster = readCluster(reader.object("cluster"));
    if (scenario.kind == Kind::framework) {
        scenario.framework = readFrameworkJob(reader.object("framework"));
    } else {
        scenario.model = readModel(reader.object("model"));
        scenario.parallel = readParallel(reader.object("parallel"));
        // Experts without a number: one for each rank that they are spread over.
        if (scenario.parallel.ep > 1 && scenario.model.experts == 0) scenario.model.experts = scenario.parallel.ep;
        checkCombination(scenario, origin);
    }
    if (const json* faults = reader.find("faults")) scenario.faults = readFaults(*faults, scenario, origin);
    applySettings(scenario.faults, scenario.parallel);
    for (const char* key : {"expect", "allow"})
        if (const json* list = reader.find(key))
            for (Claim& claim : readClaims(*list, key, scenario.worldSize(), origin))
                scenario.claims.push_back(std::move(claim));
    if (const json* ways = reader.find("follow"); ways && !ways->is_object())  // read by the score alone
        reader.fail("follow",
                    "must be an object, such as {\"ddp.bucket_cap_mb\": {\"parallel\": {\"bucket_mb\": \"$\"}}}");
    if (const json* fixed = reader.find("fixed")) checkRepair(document, *fixed, reader, origin);
    reader.rejectUnknownKeys();
    return scenario;
}

Scenario loadScenario(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) throw ScenarioError(path + ": cannot be read");
    return parseScenario(text.str(), path);
}

std::string fixedScenarioText(const std::string& text, const std::string& origin) {
    parseScenario(text, origin);  // complains about the scenario itself first, then about its overrides
    const json document = parseJson(text, origin);
    if (!document.contains("fixed")) throw ScenarioError(origin + ": has no 'fixed' overrides");
    return repaired(document, document["fixed"]).dump(2) + "\n";
}

std::string linksText(const Cluster& cluster) {
    const auto link = [](const char* name, const Link& values) {
        char text[96];
        snprintf(text, sizeof text, "%s:gbps=%.10g,alpha_us=%.10g", name, values.gbps, values.alphaUs);
        return std::string(text);
    };
    return link("intra", cluster.intra) + ";" + link("inter", cluster.inter);
}

std::string summaryText(const Scenario& scenario) {
    json summary;
    summary["name"] = scenario.name;
    summary["description"] = scenario.description;
    summary["kind"] = kindName(scenario.kind);
    summary["world_size"] = scenario.worldSize();
    summary["nodes"] = scenario.cluster.nodes;
    summary["ranks_per_node"] = scenario.cluster.ranksPerNode;
    summary["links"] = linksText(scenario.cluster);
    summary["steps"] = scenario.steps;
    summary["faults"] = scenario.faults.kinds;
    if (scenario.kind == Kind::framework) summary["framework"] = summaryOf(scenario.framework);
    summary["claims"] = json::array();
    for (const Claim& claim : scenario.claims) summary["claims"].push_back({{"key", claim.key}, {"id", claim.id}});
    return summary.dump() + "\n";
}

}  // namespace rankscope::reference
