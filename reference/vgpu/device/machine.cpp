// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/machine.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace rankscope::vgpu {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMostNvlinks = 18;
constexpr double kSlowestSingleLinkGbps = 20;

void writeFile(const fs::path& file, const std::string& line) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << line << '\n';
}

/// As the kernel prints a rate: no digits that are not needed.
std::string rateText(double gigabitsPerS) {
    char text[64];
    std::snprintf(text, sizeof text, "%.10g Gb/sec (4X virtual)", gigabitsPerS);
    return text;
}

// Before the job's first call: whoever looks at the machine then must find it.
[[gnu::constructor]] void standUp() {
    const char* root = std::getenv("RANKSCOPE_SYSFS_ROOT");
    if (!root || !*root || linksAreHidden()) return;
    try {
        writeSysfs(describedCluster(), root);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "rankscope virtual GPUs: RANKSCOPE_SYSFS_ROOT: %s\n", error.what());
    }
}

}  // namespace

bool linksAreHidden() {
    const char* links = std::getenv("RANKSCOPE_VGPU_LINKS");
    return links && std::string_view(links) == "hidden";
}

Nvlinks nvlinksOf(const Cluster& cluster) {
    if (cluster.intra.pcie) return {};
    // As many links as give each a whole number of MB/s, so that together they carry what the cluster says.
    const auto total = static_cast<uint32_t>(std::llround(cluster.intra.gbps * 1000));
    for (uint32_t count = kMostNvlinks; count > 1; count--)
        if (total % count == 0 && total / count >= kSlowestSingleLinkGbps * 1000) return {count, total / count};
    return {1, total};
}

PcieLink pcieLinkOf(const Cluster& cluster) {
    return slowestPcieLink(nvlinksOf(cluster).count ? cluster.pcieGbps : cluster.intra.gbps);
}

void writeSysfs(const Cluster& cluster, const std::string& root) {
    if (fs::exists(root)) return;
    const fs::path part = root + "." + std::to_string(getpid());
    for (int nic = 0; nic < cluster.ranksPerNode; nic++) {
        const fs::path port = part / "class/infiniband" / ("virtual_" + std::to_string(nic)) / "ports/1";
        writeFile(port / "state", "4: ACTIVE");
        writeFile(port / "link_layer", "InfiniBand");
        writeFile(port / "rate", rateText(cluster.inter.gbps * 8));
    }
    // The loopback interface, which every machine has, is no hardware.
    writeFile(part / "class/net/lo/operstate", "unknown");
    std::error_code isThere;
    fs::rename(part, root, isThere);
    if (isThere) fs::remove_all(part);
}

const Cluster& describedCluster() {
    static const Cluster cluster = [] {
        const char* path = std::getenv("RANKSCOPE_SCENARIO");
        try {
            if (path && *path) return readCluster(path);
        } catch (const std::exception&) {
        }
        return Cluster{};
    }();
    return cluster;
}

}  // namespace rankscope::vgpu
