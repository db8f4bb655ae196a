// SPDX-License-Identifier: Apache-2.0
#include "injector/machine/port_counters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/unit/injector/temporary_folder.h"

namespace rankscope::machine {
namespace {

namespace fs = std::filesystem;

class PortCountersTest : public testing::Test {
  protected:
    void write(const std::string& file, const std::string& text) {
        fs::create_directories((m_root / file).parent_path());
        std::ofstream(m_root / file) << text << '\n';
    }
    std::vector<PortCounters> found() {
        auto ports = readPortCounters(m_root.c_str());
        std::ranges::sort(ports, {}, &PortCounters::name);
        return ports;
    }

    TemporaryFolder m_folder;
    const fs::path m_root = m_folder.path();
};

TEST_F(PortCountersTest, ThoseOfAdaptersAndOfCardsAreSummedByKind) {
    const std::string port = "class/infiniband/mlx5_0/ports/1/";
    write(port + "state", "4: ACTIVE");
    write(port + "rate", "400 Gb/sec (4X NDR)");
    write(port + "link_layer", "InfiniBand");
    for (const auto& [name, text] : {std::pair{"port_xmit_data", "25"},
                                     {"port_rcv_data", "50"},
                                     {"symbol_error", "3"},
                                     {"port_rcv_errors", "4"},
                                     {"port_xmit_discards", "5"},
                                     {"link_downed", "1"},
                                     {"link_error_recovery", "1"}})
        write(port + "counters/" + name, text);
    write("class/net/eth0/type", "1");
    write("class/net/eth0/operstate", "up");
    write("class/net/eth0/statistics/tx_bytes", "7");
    write("class/net/eth0/statistics/rx_dropped", "9");
    fs::create_directories(m_root / "class/net/eth0/device");
    const auto ports = found();
    ASSERT_EQ(ports.size(), 2u);
    EXPECT_EQ(ports[0].name, "eth0");
    EXPECT_EQ(ports[0].sentBytes, 7);
    EXPECT_FALSE(ports[0].receivedBytes);
    EXPECT_EQ(ports[0].discards, 9);
    EXPECT_FALSE(ports[0].errors);
    EXPECT_EQ(ports[1].name, "mlx5_0/1");
    EXPECT_EQ(ports[1].sentBytes, 100) << "counted in words of four bytes";
    EXPECT_EQ(ports[1].receivedBytes, 200);
    EXPECT_EQ(ports[1].errors, 7);
    EXPECT_EQ(ports[1].discards, 5);
    EXPECT_EQ(ports[1].linkDowns, 2);
}

TEST_F(PortCountersTest, WhatIsNoNumberIsUnknown) {
    write("class/net/eth0/type", "1");
    write("class/net/eth0/operstate", "up");
    fs::create_directories(m_root / "class/net/eth0/device");
    EXPECT_TRUE(found().empty()) << "counts nothing";
    for (const char* text : {"", "-1", "1 2", "99999999999999999999", "0x10", "\xff"}) {
        write("class/net/eth0/statistics/tx_bytes", text);
        EXPECT_TRUE(found().empty()) << text;
    }
    const std::string port = "class/infiniband/mlx5_0/ports/1/";
    write(port + "state", "4: ACTIVE");
    write(port + "counters/port_xmit_data", "9223372036854775807");
    ASSERT_EQ(found().size(), 1u);
    EXPECT_EQ(found()[0].sentBytes, INT64_MAX) << "more than there is room for";
}

}  // namespace
}  // namespace rankscope::machine
