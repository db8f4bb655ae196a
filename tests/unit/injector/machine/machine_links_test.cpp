// SPDX-License-Identifier: Apache-2.0
// What a machine says of its links: the texts of sysfs, also those no kernel writes, and NVML's answers, also when some
// are missing.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "injector/machine/device_links.h"
#include "injector/machine/host_ports.h"
#include "injector/machine/link_rates.h"
#include "tests/unit/injector/temporary_folder.h"

namespace rankscope::machine {
namespace {

namespace fs = std::filesystem;

TEST(LinkRates, InfinibandTellsWhatIsLeftAfterEncodingExceptInItsOldGenerations) {
    EXPECT_EQ(portBytesPerS("400 Gb/sec (4X NDR)", true), 50'000'000'000);
    EXPECT_EQ(portBytesPerS("200 Gb/sec (4X HDR)", true), 25'000'000'000);
    EXPECT_EQ(portBytesPerS("100 Gb/sec (4X EDR)", true), 12'500'000'000);
    EXPECT_EQ(portBytesPerS("25 Gb/sec (1X EDR)", true), 3'125'000'000);
    EXPECT_EQ(portBytesPerS("40 Gb/sec (4X FDR10)", true), 5'000'000'000);
    EXPECT_EQ(portBytesPerS("40 Gb/sec (4X QDR)", true), 4'000'000'000);
    EXPECT_EQ(portBytesPerS("2.5 Gb/sec (1X SDR)", true), 250'000'000);
    EXPECT_EQ(portBytesPerS("56 Gb/sec (4X FDR)", true), 56'000'000'000 / 8 * 64 / 66);
    EXPECT_EQ(portBytesPerS("800 Gb/sec (4X XDR)", true), 100'000'000'000);
    // Over Ethernet the driver names the speeds alike, and they are of data already.
    EXPECT_EQ(portBytesPerS("40 Gb/sec (4X QDR)", false), 5'000'000'000);
    EXPECT_EQ(portBytesPerS("10 Gb/sec (1X QDR)", false), 1'250'000'000);
    EXPECT_EQ(portBytesPerS("100 Gb/sec (4X EDR)", false), 12'500'000'000);
}

TEST(LinkRates, AnUnknownOrHostileTextIsNoRate) {
    for (const char* text :
         {"", "0 Gb/sec (4X SDR)", "-1", "Gb/sec", "400", "400 Mb/sec", "400Gb/sec", "1e9 Gb/sec",
          "99999999999999999999999999 Gb/sec (4X NDR)", "18446744073709551615 Gb/sec", "\xff\xff", "%s%n Gb/sec"})
        EXPECT_EQ(portBytesPerS(text, true), 0) << text;
    for (const char* text :
         {"", "-1", "0", "4294967295", "100000 Mb/s", "1e5", "abc", "99999999999999999999999999", "\xff"})
        EXPECT_EQ(ethernetBytesPerS(text), 0) << text;
    EXPECT_EQ(ethernetBytesPerS("100000"), 12'500'000'000);
    EXPECT_EQ(ethernetBytesPerS("10"), 1'250'000);
}

TEST(LinkRates, DeviceLinksCarryWhatTheDataSheetsSay) {
    EXPECT_EQ(nvlinkBytesPerS(25'781), 25'000'000'000);  // V100
    EXPECT_EQ(nvlinkBytesPerS(25'000), 25'000'000'000);  // A100
    EXPECT_EQ(nvlinkBytesPerS(26'562), 25'000'000'000);  // H100
    EXPECT_EQ(nvlinkBytesPerS(53'125), 50'000'000'000);  // B200
    EXPECT_EQ(nvlinkBytesPerS(0), 0);
    EXPECT_EQ(nvlinkBytesPerS(UINT32_MAX), 0);
    EXPECT_NEAR(static_cast<double>(pcieBytesPerS(3, 16)), 15.75e9, 0.01e9);
    EXPECT_NEAR(static_cast<double>(pcieBytesPerS(4, 16)), 31.5e9, 0.02e9);
    EXPECT_NEAR(static_cast<double>(pcieBytesPerS(5, 8)), 31.5e9, 0.02e9);
    EXPECT_EQ(pcieBytesPerS(1, 1), 250'000'000);
    for (const auto& [generation, lanes] :
         std::vector<std::pair<uint32_t, uint32_t>>{{0, 16}, {9, 16}, {5, 0}, {5, UINT32_MAX}, {UINT32_MAX, 16}})
        EXPECT_EQ(pcieBytesPerS(generation, lanes), 0);
}

class HostPorts : public testing::Test {
  protected:
    void write(const std::string& file, const std::string& text) {
        fs::create_directories((m_root / file).parent_path());
        std::ofstream(m_root / file) << text;
    }
    void adapter(const std::string& name, const std::string& state, const std::string& rate, const std::string& layer) {
        write("class/infiniband/" + name + "/ports/1/state", state + "\n");
        write("class/infiniband/" + name + "/ports/1/rate", rate + "\n");
        write("class/infiniband/" + name + "/ports/1/link_layer", layer + "\n");
    }
    /// A network interface on hardware of its own.
    void card(const std::string& name, const std::string& state, const std::string& speed) {
        interface(name, state, speed);
        fs::create_directories(m_root / "class/net" / name / "device");
    }
    void interface(const std::string& name, const std::string& state, const std::string& speed) {
        write("class/net/" + name + "/type", "1\n");
        write("class/net/" + name + "/operstate", state + "\n");
        if (!speed.empty()) write("class/net/" + name + "/speed", speed + "\n");
    }
    /// "kind name bytes_per_s" by name.
    std::vector<std::string> found() {
        LinkList links;
        addHostPorts(m_root.c_str(), links);
        std::vector<std::string> texts;
        for (const Link& link : links) {
            EXPECT_EQ(link.source, capture::LinkSource::sysfs);
            EXPECT_EQ(link.device, -1);
            EXPECT_EQ(link.count, 1u);
            texts.push_back((link.kind == capture::LinkKind::infiniband ? "infiniband " : "ethernet ") +
                            std::string(link.name) + " " + std::to_string(link.bytesPerS));
        }
        std::sort(texts.begin(), texts.end());
        return texts;
    }

    TemporaryFolder m_folder;
    const fs::path m_root = m_folder.path();
};

TEST_F(HostPorts, ThoseThatAreUpAreFound) {
    adapter("mlx5_0", "4: ACTIVE", "400 Gb/sec (4X NDR)", "InfiniBand");
    adapter("mlx5_1", "4: ACTIVE", "100 Gb/sec (4X EDR)", "Ethernet");
    adapter("mlx5_2", "1: DOWN", "10 Gb/sec (4X SDR)", "InfiniBand");
    adapter("mlx5_3", "2: INIT", "400 Gb/sec (4X NDR)", "InfiniBand");
    card("eth0", "up", "25000");
    card("eth1", "down", "-1");
    card("ens5", "up", "-1");
    EXPECT_EQ(found(), (std::vector<std::string>{"ethernet ens5 0", "ethernet eth0 3125000000",
                                                 "ethernet mlx5_1/1 12500000000", "infiniband mlx5_0/1 50000000000"}));
}

TEST_F(HostPorts, WhatIsNoHardwareOfItsOwnIsNone) {
    interface("lo", "unknown", "");
    interface("docker0", "up", "10000");
    interface("bond0", "up", "200000");
    card("ib0", "up", "400000");
    write("class/net/ib0/type", "32\n");
    card("ens1f0", "up", "100000");  // the same port as mlx5_1
    fs::create_directories(m_root / "class/net/ens1f0/device/infiniband/mlx5_1");
    card("ens1f0v3", "up", "100000");
    fs::create_directories(m_root / "class/net/ens1f0v3/device/physfn/net/ens1f0");
    adapter("mlx5_7", "4: ACTIVE", "400 Gb/sec (4X NDR)", "InfiniBand");
    fs::create_directories(m_root / "class/infiniband/mlx5_7/device/physfn/infiniband/mlx5_0");
    EXPECT_TRUE(found().empty());
}

TEST_F(HostPorts, AVirtualFunctionWhoseCardIsHiddenIsThePortThereIs) {
    card("net1", "up", "100000");
    fs::create_directories(m_root / "class/net/net1/device/physfn");
    EXPECT_EQ(found(), std::vector<std::string>{"ethernet net1 12500000000"});
}

TEST_F(HostPorts, FilesThatAreMissingOrMakeNoSenseAreUnknownOrLeftOut) {
    EXPECT_TRUE(found().empty());
    write("class/infiniband/nothing", "a file where a folder belongs");
    fs::create_directories(m_root / "class/infiniband/empty/ports/1");
    write("class/infiniband/norate/ports/1/state", "4: ACTIVE");
    fs::create_directories(m_root / "class/infiniband/norate/ports/1/rate");
    write("class/infiniband/endless/ports/1/state", "4: ACTIVE" + std::string(1 << 20, 'x'));
    write("class/infiniband/endless/ports/1/rate", std::string(1 << 20, '9'));
    card("huge", "up", std::string(1 << 20, '9'));
    card("fifo", "up", "");
    ASSERT_EQ(mkfifo((m_root / "class/net/fifo/speed").c_str(), 0600), 0);  // must not be waited for
    card(std::string(200, 'n'), "up", "1000");
    const std::string cut = "ethernet " + std::string(63, 'n') + " 125000000";
    EXPECT_EQ(found(), (std::vector<std::string>{"ethernet endless/1 0", "ethernet fifo 0", "ethernet huge 0", cut,
                                                 "ethernet norate/1 0"}));
}

TEST_F(HostPorts, MoreThanTheListHoldsAreLeftOut) {
    for (int i = 0; i < 300; ++i) card("eth" + std::to_string(i), "up", "1000");
    EXPECT_EQ(found().size(), LinkList::kMost);
}

TEST(HostPortsOfAVirtualRun, AreThoseItIsToldOfAndNeverTheMachines) {
    setenv("RANKSCOPE_SYSFS_ROOT", "/somewhere", 1);
    EXPECT_STREQ(sysfsRoot(true), "/somewhere");
    EXPECT_STREQ(sysfsRoot(false), "/sys");
    unsetenv("RANKSCOPE_SYSFS_ROOT");
    EXPECT_EQ(sysfsRoot(true), nullptr);
    EXPECT_STREQ(sysfsRoot(false), "/sys");
}

/// A device as NVML would tell of it.
struct FakeDevice {
    std::vector<uint32_t> linkStates;                      ///< by link; empty: no NVLinks at all
    uint32_t commonSpeed = 0, linkSpeed = 0, version = 0;  ///< 0: not supported
    uint32_t width = 0, generation = 0, maxGeneration = 0;
};
FakeDevice g_device;

Nvml fakeNvml() {
    Nvml nvml;
    nvml.linkState = [](NvmlDevice, uint32_t link, uint32_t* state) {
        if (link >= g_device.linkStates.size()) return 2;
        *state = g_device.linkStates[link];
        return 0;
    };
    nvml.linkVersion = [](NvmlDevice, uint32_t, uint32_t* version) {
        return g_device.version == 0 ? 3 : (*version = g_device.version, 0);
    };
    nvml.fieldValues = [](NvmlDevice, int, NvmlFieldValue* field) {
        const uint32_t speed = field->fieldId == 90                           ? g_device.commonSpeed
                               : field->fieldId == 164 && field->scopeId == 1 ? g_device.linkSpeed
                                                                              : 0;
        field->valueType = 1;
        field->value.unsignedInt = speed;
        field->status = speed == 0 ? 3 : 0;
        return 0;
    };
    nvml.pcieWidth = [](NvmlDevice, uint32_t* width) { return g_device.width == 0 ? 3 : (*width = g_device.width, 0); };
    nvml.pcieGeneration = [](NvmlDevice, uint32_t* generation) {
        return g_device.generation == 0 ? 3 : (*generation = g_device.generation, 0);
    };
    nvml.pcieMaxGeneration = [](NvmlDevice, uint32_t* generation) {
        return g_device.maxGeneration == 0 ? 3 : (*generation = g_device.maxGeneration, 0);
    };
    return nvml;
}

std::vector<Link> linksOf(FakeDevice device, const Nvml& nvml = fakeNvml()) {
    g_device = std::move(device);
    LinkList links;
    addDeviceLinks(nvml, nullptr, 5, links);
    return {links.begin(), links.end()};
}

TEST(DeviceLinks, ActiveNvlinksAreOneRowAndPcieAnother) {
    const auto links = linksOf({.linkStates = std::vector<uint32_t>(18, 1),
                                .commonSpeed = 26'562,
                                .version = 6,
                                .width = 16,
                                .generation = 1,
                                .maxGeneration = 5});
    ASSERT_EQ(links.size(), 2u);
    EXPECT_EQ(links[0].kind, capture::LinkKind::nvlink);
    EXPECT_EQ(links[0].device, 5);
    EXPECT_EQ(links[0].count, 18u);
    EXPECT_EQ(links[0].generation, 4u);
    EXPECT_EQ(links[0].bytesPerS, 450'000'000'000);
    EXPECT_STREQ(links[0].name, "NVLink");
    EXPECT_EQ(links[1].kind, capture::LinkKind::pcie);
    EXPECT_EQ(links[1].generation, 5u) << "what it reaches under load, not while idle";
    EXPECT_EQ(links[1].count, 16u);
}

TEST(DeviceLinks, OnlyLinksThatAreUpCount) {
    const auto links = linksOf({.linkStates = {0, 1, 2, 1, 1}, .linkSpeed = 25'000, .version = 4});
    ASSERT_EQ(links.size(), 1u);
    EXPECT_EQ(links[0].count, 3u);
    EXPECT_EQ(links[0].bytesPerS, 75'000'000'000) << "the speed of one link, where the common one is not told";
    EXPECT_EQ(links[0].generation, 3u);
    EXPECT_TRUE(linksOf({.linkStates = {0, 0}}).empty());
}

TEST(DeviceLinks, HopperIsOfVersionFourWhateverTheDriverCountsItAs) {
    EXPECT_EQ(linksOf({.linkStates = {1}, .commonSpeed = 26'562, .version = 7})[0].generation, 4u);
    EXPECT_EQ(linksOf({.linkStates = {1}, .commonSpeed = 53'125, .version = 7})[0].generation, 5u);
    EXPECT_EQ(linksOf({.linkStates = {1}, .commonSpeed = 53'125, .version = 99})[0].generation, 0u);
}

TEST(DeviceLinks, WhatIsNotToldIsUnknown) {
    const auto links = linksOf({.linkStates = {1, 1}, .width = 8});
    ASSERT_EQ(links.size(), 2u);
    EXPECT_EQ(links[0].bytesPerS, 0);
    EXPECT_EQ(links[0].generation, 0u);
    EXPECT_EQ(links[1].bytesPerS, 0);
    EXPECT_TRUE(linksOf({}).empty());
    EXPECT_TRUE(linksOf({.linkStates = {1}, .width = 16}, Nvml{}).empty()) << "no function found in the library";
}

TEST(DeviceLinks, ALibraryThatCannotBeginHasNone) {
    Nvml nvml = fakeNvml();
    LinkList links;
    addLinksOfAllDevices(nvml, links);
    nvml.init = [] { return 9; };  // the driver is not loaded
    addLinksOfAllDevices(nvml, links);
    EXPECT_EQ(links.size(), 0u);
    static int begun = 0;
    nvml.init = [] { return ++begun, 0; };
    nvml.shutdown = [] { return --begun, 0; };
    nvml.deviceCount = [](uint32_t* count) { return *count = UINT32_MAX, 0; };
    nvml.deviceByIndex = [](uint32_t index, NvmlDevice*) { return index == 1 ? 15 : 0; };  // one is lost
    g_device = {.width = 16, .maxGeneration = 4};
    addLinksOfAllDevices(nvml, links);
    EXPECT_EQ(links.size(), 63u);
    EXPECT_EQ(begun, 0);
}

}  // namespace
}  // namespace rankscope::machine
