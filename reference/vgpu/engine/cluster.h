// SPDX-License-Identifier: Apache-2.0
// The machine a virtual job runs on: rates, latencies and planted device or link faults, read from the scenario file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rankscope::vgpu {

/// Channels (thread blocks) of a collective at most, and how many it takes to fill a link.
inline constexpr int kMaxChannels = 16, kChannelsToFillALink = 8;

/// Returns true for a rate that a scenario gives a PCIe port: PCIe 4.0 has 31.5 GB/s, the NVLinks of GeForce boards 50
/// and more, and PCIe 5.0's 63 or 64 lie between theirs.
inline bool isPcieRate(double gbps) {
    return gbps < 40 || (gbps > 62 && gbps <= 64);
}

struct LinkClass {
    double alphaUs;      ///< a ring's hop by Simple
    double gbps;         ///< 1e9 bytes/s, one direction, per rank
    double reached = 1;  ///< the share of it that NCCL gets
    /// What is left of the rate while a rank at its end computes. Copies over PCIe take 1.5 to 1.8 times as long then.
    double besideCompute = 1;
    bool pcie = false;  ///< inside a node: no NVLink; unless a scenario says otherwise by isPcieRate()
    double reachedGbps() const { return reached * gbps; }
};

struct PcieLink {
    uint32_t generation, lanes;
    /// 1e9 bytes/s by its maker: 8 GT/s a lane of generation 3 in 128 of 130 bits, twice as many in each further one.
    double gbps() const { return 8.0 * (1 << (generation - 3)) * 128 / 130 / 8 * lanes; }
};
/// The slowest of the usual ones that does so much: what a machine with such a link has.
PcieLink slowestPcieLink(double gbps);

/// A factor that applies to one rank or one node; -1 = not limited to one.
struct PlantedFactor {
    int rank, node;
    double factor;
    uint64_t clocksEvents = 0;  ///< bits by which NVML tells that the device is throttled; 0: it tells of nothing
};

struct PlantedRate {
    int rank, peer, node;
    double gbps;            ///< absolute rate, or 0
    double factor;          ///< else: share of the healthy rate
    double errorsPerS = 0;  ///< of NVLink, as NVML counts them on both ends
};

struct ClockOffset {
    int host;
    double us, ppm;
};

struct Cluster {
    bool fromScenario = false;
    int nodes = 1;
    int ranksPerNode = 8;
    double tflops = 300, hbmGbps = 2000, launchUs = 6, memoryGb = 80, pcieGbps = 50, pageableGbps = 12;
    int computeCapability = 80;         ///< major * 10 + minor
    double mallocUs = 60, freeUs = 30;  ///< host time of cudaMalloc and cudaFree, on top of their wait for the device
    /// Host time of a framework's operator beside its launches. Break-downs that people publish of PyTorch's eager
    /// calls put 5 to 25 us in front of a kernel, 1 to 3 of them for the launch: this is the fast end.
    double operatorUs = 5;
    std::string prices;  ///< file of measured prices, empty: none
    LinkClass intra{6, 200}, inter{18, 40};
    bool nvls = false;
    int maxChannels = kMaxChannels;  ///< NCCL_MAX_CTAS or NCCL_MAX_NCHANNELS
    uint64_t seed = 7;
    uint64_t world = 0;  ///< 0: collectives take what the model says; else how they differ is drawn (nccl_world.h)
    double noise = 0, noiseRun = 0;
    double smContention = 1;
    std::vector<PlantedFactor> slowCompute;
    std::vector<PlantedRate> slowLinks, slowNics;
    std::vector<ClockOffset> clockOffsets;

    /// Share of the link that many channels can fill; and the rate of compute beside a collective, which takes that
    /// many multiprocessors.
    double channelBandwidthShare() const;
    double rateBesideTransfers() const;
    int64_t launchNs() const { return static_cast<int64_t>(launchUs * 1000); }
    double computeFactor(int rank, int node) const;
    /// How many times slower the device's clocks are by what NVML tells of it, and the bits of the reasons.
    PlantedFactor throttle(int rank, int node) const;
    double linkErrorsPerS(int rank) const;
    double portGbps(int rank) const;
    double nicGbps(int rank, int node) const;
    /// The node a rank runs on: the number its virtual host's name ends with ("node1"), else what the launcher says
    /// (`launcherNode`, negative: nothing), else as if ranks were dealt out in blocks.
    int placement(int rank, const char* hostName, int launcherNode) const;
    int64_t stamp(int node, int64_t ns, int64_t epochNs) const;
};

/// Reads a scenario file; throws std::runtime_error that names the file and the cause.
Cluster readCluster(const std::string& path);
/// Same from text.
Cluster parseCluster(const std::string& text);

/// About normal, mean 0, deviation 1, within ±3; the same on every machine (no libm).
double normalNoise(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);
uint64_t mixHash(uint64_t value);

}  // namespace rankscope::vgpu
