// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/engine/cluster.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "reference/vgpu/engine/nccl_world.h"

namespace rankscope::vgpu {
namespace {

using Json = nlohmann::json;

double number(const Json& object, const char* key, double fallback) {
    auto it = object.find(key);
    return it != object.end() && it->is_number() ? it->get<double>() : fallback;
}

int integer(const Json& object, const char* key, int fallback) {
    return static_cast<int>(number(object, key, fallback));
}

Json child(const Json& object, const char* key) {
    auto it = object.find(key);
    return it != object.end() && it->is_object() ? *it : Json::object();
}

LinkClass linkClass(const Json& cluster, const char* key, LinkClass fallback) {
    Json link = child(cluster, key);
    LinkClass result{number(link, "alpha_us", fallback.alphaUs), number(link, "gbps", fallback.gbps)};
    result.reached = std::clamp(number(link, "reached", 1), 0.01, 1.0);
    result.pcie = link.value("pcie", isPcieRate(result.gbps));
    result.besideCompute = std::clamp(number(link, "beside_compute", 1), 0.01, 1.0);
    return result;
}

/// The job's environment keeps NCCL on the fast way: what the fault's own variable (see rankscope-workload) does is
/// undone.
bool usesFastWay(bool overNodes) {
    const char* value = std::getenv(overNodes ? "NCCL_NET" : "NCCL_P2P_DISABLE");
    return value != nullptr && strcasecmp(value, overNodes ? "Socket" : "1") != 0;
}

/// nvmlClocksEventReasons of a planted reason.
uint64_t clocksEventsOf(const std::string& throttle) {
    if (throttle == "power") return 0x4;         // SwPowerCap
    if (throttle == "thermal") return 0x48;      // HwSlowdown, HwThermalSlowdown
    if (throttle == "power_brake") return 0x88;  // HwSlowdown, HwPowerBrakeSlowdown
    return 0;
}

void readFault(Cluster& cluster, const Json& fault) {
    std::string kind = fault.value("kind", "");
    const uint64_t clocksEvents = clocksEventsOf(fault.value("throttle", ""));
    if (kind == "straggler") {
        if (integer(fault, "from_step", 0) > 0) return;  // by the workload, which knows its steps
        cluster.slowCompute.push_back({integer(fault, "rank", 0), -1, number(fault, "factor", 1.5), clocksEvents});
    } else if (kind == "slow_node") {
        cluster.slowCompute.push_back({-1, integer(fault, "node", 0), number(fault, "factor", 1.5), clocksEvents});
    } else if (kind == "slow_link") {
        PlantedRate link{integer(fault, "rank", -1), integer(fault, "peer", -1),    -1,
                         number(fault, "gbps", 0),   number(fault, "factor", 0.25), number(fault, "errors_per_s", 0)};
        for (const char* key : {"pair", "ranks"}) {
            auto pair = fault.find(key);
            if (pair == fault.end() || !pair->is_array() || pair->size() != 2) continue;
            link.rank = (*pair)[0].get<int>();
            link.peer = (*pair)[1].get<int>();
        }
        cluster.slowLinks.push_back(link);
    } else if (kind == "slow_nic") {
        cluster.slowNics.push_back(
            {-1, -1, integer(fault, "node", 0), number(fault, "gbps", 0), number(fault, "factor", 0.25)});
    } else if (kind == "under_used_link") {
        if (usesFastWay(cluster.nodes > 1)) return;
        PlantedRate link{-1, -1, -1, number(fault, "gbps", 0), number(fault, "factor", 0.25)};
        (cluster.nodes > 1 ? cluster.slowNics : cluster.slowLinks).push_back(link);
    } else if (kind == "alloc_churn") {
        cluster.mallocUs = cluster.freeUs = number(fault, "us", 500);
    } else if (kind == "sm_contention") {
        cluster.smContention = number(fault, "factor", 1.3);
    } else if (kind == "clock_offset") {
        cluster.clockOffsets.push_back({integer(fault, "host", 1), number(fault, "us", 500), number(fault, "ppm", 0)});
    }
}

/// By default 8.0, whose kernels PyTorch brings along, where from 9.0 on it asks cuDNN for attention. The workloads
/// have always seen 9.0.
int computeCapability(const Json& root, const Json& description) {
    const std::string kind = root.value("kind", "framework");
    const std::string told = description.value("compute_capability", kind == "framework" ? "8.0" : "9.0");
    if (told.size() != 3 || told[1] != '.' || told[0] < '1' || told[0] > '9' || told[2] < '0' || told[2] > '9')
        throw std::runtime_error("cluster.compute_capability is a text like \"8.0\"");
    return (told[0] - '0') * 10 + told[2] - '0';
}

double slowed(double healthy, const PlantedRate& planted) {
    return std::min(healthy, planted.gbps > 0 ? planted.gbps : healthy * planted.factor);
}

}  // namespace

PcieLink slowestPcieLink(double gbps) {
    for (const PcieLink link : {PcieLink{3, 4}, PcieLink{3, 8}, PcieLink{3, 16}, PcieLink{4, 16}, PcieLink{5, 16}})
        if (link.gbps() >= gbps) return link;
    return {6, 16};
}

Cluster parseCluster(const std::string& text) {
    Json root = Json::parse(text);
    if (!root.is_object()) throw std::runtime_error("a scenario is a JSON object");
    Cluster cluster;
    cluster.fromScenario = true;
    Json description = child(root, "cluster");
    cluster.nodes = integer(description, "nodes", 2);
    cluster.ranksPerNode = integer(description, "ranks_per_node", 4);
    cluster.tflops = number(description, "tflops", cluster.tflops);
    cluster.hbmGbps = number(description, "hbm_gbps", cluster.hbmGbps);
    cluster.launchUs = std::max(0.001, number(description, "launch_us", cluster.launchUs));
    cluster.computeCapability = computeCapability(root, description);
    cluster.memoryGb = number(description, "memory_gb", cluster.memoryGb);
    cluster.pcieGbps = number(description, "pcie_gbps", cluster.pcieGbps);
    cluster.pageableGbps = number(description, "pageable_gbps", cluster.pageableGbps);
    cluster.mallocUs = number(description, "malloc_us", cluster.mallocUs);
    cluster.freeUs = number(description, "free_us", cluster.freeUs);
    cluster.operatorUs = std::max(0.0, number(description, "operator_us", cluster.operatorUs));
    cluster.prices = description.value("prices", "");
    cluster.intra = linkClass(description, "intra", cluster.intra);
    cluster.inter = linkClass(description, "inter", cluster.inter);
    cluster.nvls = description.value("nvls", false);
    cluster.seed = static_cast<uint64_t>(number(root, "seed", 7));
    cluster.world = static_cast<uint64_t>(number(root, "world", 0));
    drawLinks(cluster);
    cluster.noise = number(root, "noise", 0.02);
    cluster.noiseRun = number(root, "noise_run", 0);
    auto faults = root.find("faults");
    if (faults != root.end() && faults->is_array())
        for (const Json& fault : *faults) readFault(cluster, fault);
    return cluster;
}

Cluster readCluster(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error(path + ": cannot be read");
    std::stringstream text;
    text << file.rdbuf();
    try {
        return parseCluster(text.str());
    } catch (const std::exception& error) {
        throw std::runtime_error(path + ": " + error.what());
    }
}

double Cluster::channelBandwidthShare() const {
    return std::min(1.0, static_cast<double>(maxChannels) / kChannelsToFillALink);
}

double Cluster::rateBesideTransfers() const {
    return 1 / (1 + (smContention - 1) * std::min(1.0, static_cast<double>(maxChannels) / kMaxChannels));
}

double Cluster::computeFactor(int rank, int node) const {
    double factor = 1;
    for (const PlantedFactor& slow : slowCompute) {
        if (slow.rank >= 0 && slow.rank == rank) factor *= slow.factor;
        if (slow.node >= 0 && slow.node == node) factor *= slow.factor;
    }
    return factor;
}

PlantedFactor Cluster::throttle(int rank, int node) const {
    PlantedFactor throttled{rank, node, 1};
    for (const PlantedFactor& slow : slowCompute) {
        const bool isHit = slow.rank >= 0 ? slow.rank == rank : slow.node == node;
        if (!isHit || slow.clocksEvents == 0) continue;
        throttled.factor *= slow.factor;
        throttled.clocksEvents |= slow.clocksEvents;
    }
    return throttled;
}

double Cluster::linkErrorsPerS(int rank) const {
    double errorsPerS = 0;
    for (const PlantedRate& slow : slowLinks)
        if (slow.rank == rank || slow.peer == rank) errorsPerS += slow.errorsPerS;
    return errorsPerS;
}

double Cluster::portGbps(int rank) const {
    const double healthy = intra.reachedGbps();
    double gbps = healthy;
    for (const PlantedRate& slow : slowLinks)
        if (slow.peer < 0 && (slow.rank < 0 || slow.rank == rank)) gbps = std::min(gbps, slowed(healthy, slow));
    return gbps;
}

double Cluster::nicGbps(int rank, int node) const {
    const double healthy = inter.reachedGbps();
    double gbps = healthy;
    for (const PlantedRate& slow : slowLinks)
        if (slow.peer < 0 && slow.rank == rank) gbps = std::min(gbps, slowed(healthy, slow));
    for (const PlantedRate& slow : slowNics)
        if (slow.node < 0 || slow.node == node) gbps = std::min(gbps, slowed(healthy, slow));
    return gbps;
}

int Cluster::placement(int rank, const char* hostName, int launcherNode) const {
    if (hostName && *hostName) {
        const char* digits = hostName + std::strlen(hostName);
        while (digits > hostName && digits[-1] >= '0' && digits[-1] <= '9') digits--;
        const long number = *digits ? std::strtol(digits, nullptr, 10) : -1;
        if (number >= 0 && number < nodes) return static_cast<int>(number);
    }
    if (launcherNode >= 0 && launcherNode < nodes) return launcherNode;
    return fromScenario && ranksPerNode > 0 && rank >= 0 ? rank / ranksPerNode : 0;
}

int64_t Cluster::stamp(int node, int64_t ns, int64_t epochNs) const {
    int64_t result = ns;
    for (const ClockOffset& offset : clockOffsets)
        if (offset.host == node)
            result += static_cast<int64_t>(offset.us * 1000) +
                      static_cast<int64_t>(static_cast<double>(ns - epochNs) * offset.ppm / 1e6);
    return result;
}

uint64_t mixHash(uint64_t value) {  // splitmix64
    value += 0x9e3779b97f4a7c15ull;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
    return value ^ (value >> 31);
}

double normalNoise(uint64_t seed, uint64_t a, uint64_t b, uint64_t c) {
    uint64_t state = mixHash(mixHash(mixHash(mixHash(seed) ^ a) ^ b) ^ c);
    double sum = 0;  // Irwin-Hall: twelve uniforms have variance 1
    for (int i = 0; i < 12; i++) {
        state = mixHash(state);
        sum += static_cast<double>(state >> 11) * (1.0 / 9007199254740992.0);
    }
    return std::clamp(sum - 6.0, -3.0, 3.0);
}

}  // namespace rankscope::vgpu
