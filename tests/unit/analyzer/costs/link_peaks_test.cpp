// SPDX-License-Identifier: Apache-2.0
// Where the peaks of links come from: what was told, measured, said by the machine, or is on the data sheet, in this
// order and for each class by itself.
#include "analyzer/costs/link_peaks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "analyzer/costs/device_links.h"
#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/report/analyze.h"
#include "analyzer/report/renderers.h"
#include "collector/store/reader.h"
#include "tests/unit/analyzer/trace_fixture.h"

namespace rankscope::costs {
namespace {

constexpr int64_t kGb = 1'000'000'000;

/// Ranks of one device on hosts of `perHost`, nothing said of links.
facts::TraceFacts job(int ranks, int perHost, const std::string& device = "Some GPU") {
    facts::TraceFacts facts;
    for (int rank = 0; rank < ranks; ++rank) {
        facts::RankFacts row;
        row.rank = rank;
        row.hostId = rank / perHost;
        row.device = device;
        facts.hosts[row.hostId] = "node" + std::to_string(row.hostId);
        facts.ranks.push_back(row);
    }
    return facts;
}

store::MachineLink ofRank(int rank, const std::string& kind, int64_t count, int64_t generation, int64_t bytesPerS) {
    store::MachineLink link;
    link.rank = rank;
    link.kind = kind;
    link.count = count;
    link.generation = generation;
    link.bytesPerS = bytesPerS;
    link.source = "nvml";
    return link;
}

store::MachineLink ofHost(int64_t host, const std::string& kind, const std::string& name, int64_t bytesPerS) {
    store::MachineLink link;
    link.hostId = host;
    link.kind = kind;
    link.name = name;
    link.count = 1;
    link.bytesPerS = bytesPerS;
    link.source = "sysfs";
    return link;
}

TEST(LinkPeaks, EachClassComesFromTheBestSourceThatHasIt) {
    facts::TraceFacts facts = job(8, 4, "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(resolveLinkPeaks(facts).intra->kind, PeakKind::deviceTable);
    EXPECT_EQ(resolveLinkPeaks(facts).intra->bytesPerNs, 450);
    EXPECT_FALSE(resolveLinkPeaks(facts).inter);

    for (int rank = 0; rank < 8; ++rank) facts.machineLinks.push_back(ofRank(rank, "nvlink", 12, 4, 300 * kGb));
    for (int port = 0; port < 8; ++port)
        facts.machineLinks.push_back(ofHost(port / 4, "infiniband", "mlx5_" + std::to_string(port % 4), 50 * kGb));
    LinkPeaks peaks = resolveLinkPeaks(facts);
    EXPECT_EQ(peaks.intra->kind, PeakKind::machine);
    EXPECT_EQ(peaks.intra->bytesPerNs, 300);
    EXPECT_EQ(peaks.intra->source, "NVML: 12 links of NVLink 4");
    EXPECT_EQ(peaks.inter->bytesPerNs, 50);
    EXPECT_EQ(peaks.inter->source, "sysfs: 4 InfiniBand ports of 50 GB/s for 4 ranks");

    LinkSources given;
    given.measured = {{LinkClass{40, 0, PeakKind::measured, "a table"}, true}};
    peaks = resolveLinkPeaks(facts, given);
    EXPECT_EQ(peaks.intra->kind, PeakKind::machine);
    EXPECT_EQ(peaks.inter->kind, PeakKind::measured);
    EXPECT_EQ(peaks.inter->bytesPerNs, 40);

    facts.meta["links"] = "inter:gbps=45,alpha_us=18";
    peaks = resolveLinkPeaks(facts, given);
    EXPECT_EQ(peaks.intra->bytesPerNs, 300);
    EXPECT_EQ(peaks.inter->kind, PeakKind::told);
    EXPECT_EQ(peaks.inter->alphaNs, 18'000);

    given.told = {{"inter:gbps=47", "--links"}, {"intra:gbps=310;inter:gbps=46", "RANKSCOPE_LINKS"}};
    peaks = resolveLinkPeaks(facts, given);
    EXPECT_EQ(peaks.inter->bytesPerNs, 47);
    EXPECT_EQ(peaks.inter->source, "--links");
    EXPECT_EQ(peaks.intra->bytesPerNs, 310);
    EXPECT_EQ(peaks.intra->source, "RANKSCOPE_LINKS");
    EXPECT_TRUE(peaks.warnings.empty());
}

TEST(LinkPeaks, WhatTheRunKnowsCanBeForgotten) {
    facts::TraceFacts facts = job(2, 2);
    facts.machineLinks = {ofRank(0, "nvlink", 12, 4, 300 * kGb), ofRank(1, "nvlink", 12, 4, 300 * kGb),
                          ofHost(0, "infiniband", "mlx5_0/1", 50 * kGb), ofHost(1, "infiniband", "mlx5_0/1", 50 * kGb)};
    facts.meta["links"] = "inter:gbps=45,alpha_us=18";
    ASSERT_TRUE(resolveLinkPeaks(facts).intra && resolveLinkPeaks(facts).inter);
    LinkSources given;
    given.forgotten = true;
    EXPECT_FALSE(resolveLinkPeaks(facts, given).intra);
    EXPECT_FALSE(resolveLinkPeaks(facts, given).inter);
    given.measured = {{LinkClass{40, 0, PeakKind::measured, "a table"}, true}};
    EXPECT_EQ(resolveLinkPeaks(facts, given).inter->kind, PeakKind::measured);
}

TEST(LinkPeaks, SourcesThatContradictEachOtherAreNamedBoth) {
    facts::TraceFacts facts = job(2, 2);
    facts.machineLinks = {ofRank(0, "nvlink", 1, 3, 25 * kGb), ofRank(1, "nvlink", 1, 3, 25 * kGb)};
    facts.meta["links"] = "intra:gbps=200";
    const LinkPeaks peaks = resolveLinkPeaks(facts);
    EXPECT_EQ(peaks.intra->bytesPerNs, 200);
    ASSERT_EQ(peaks.warnings.size(), 1u);
    for (const char* part : {"200 GB/s", "--links", "25 GB/s", "NVML", "machine"})
        EXPECT_NE(peaks.warnings[0].find(part), std::string::npos) << peaks.warnings[0];
    LinkSources given;
    given.measured = {{LinkClass{20, 0, PeakKind::measured, "a table"}}};
    facts.machineLinks.clear();
    ASSERT_EQ(resolveLinkPeaks(facts, given).warnings.size(), 1u);
    EXPECT_NE(resolveLinkPeaks(facts, given).warnings[0].find("but a measurement says 20 GB/s"), std::string::npos)
        << resolveLinkPeaks(facts, given).warnings[0];
    facts.machineLinks = {ofRank(0, "nvlink", 1, 3, 25 * kGb), ofRank(1, "nvlink", 1, 3, 25 * kGb)};
    facts.meta["links"] = "intra:gbps=22";  // what NCCL reaches of it
    EXPECT_TRUE(resolveLinkPeaks(facts).warnings.empty());
    facts.meta["links"] = "intra:gbps=fast";
    EXPECT_EQ(resolveLinkPeaks(facts).intra->kind, PeakKind::machine);
    ASSERT_EQ(resolveLinkPeaks(facts).warnings.size(), 1u);
    EXPECT_NE(resolveLinkPeaks(facts).warnings[0].find("'fast' is no number"), std::string::npos);
}

TEST(LinkPeaks, TheSlowestRankAndHostOfAMixedMachineCount) {
    facts::TraceFacts facts = job(4, 2);
    facts.machineLinks = {ofRank(0, "nvlink", 12, 3, 300 * kGb),         ofRank(0, "pcie", 16, 4, 31'500'000'000),
                          ofRank(1, "nvlink", 12, 3, 300 * kGb),         ofRank(2, "nvlink", 4, 3, 100 * kGb),
                          ofRank(3, "pcie", 16, 4, 31'500'000'000),      ofHost(0, "infiniband", "mlx5_0/1", 50 * kGb),
                          ofHost(0, "infiniband", "mlx5_1/1", 50 * kGb), ofHost(0, "infiniband", "mlx5_2/1", 50 * kGb),
                          ofHost(0, "ethernet", "eth0", 12'500'000'000), ofHost(1, "ethernet", "eth0", 12'500'000'000)};
    const LinkPeaks peaks = resolveLinkPeaks(facts);
    EXPECT_NEAR(peaks.intra->bytesPerNs, 24, 0.01);  // the PCIe of rank 3, as NCCL counts it
    EXPECT_NE(peaks.intra->source.find("the slowest: rank 3; 300 GB/s elsewhere"), std::string::npos)
        << peaks.intra->source;
    EXPECT_DOUBLE_EQ(peaks.inter->bytesPerNs, 6.25);  // two ranks share the interface of the second host
    EXPECT_NE(peaks.inter->source.find("host node1; 50 GB/s elsewhere"), std::string::npos)
        << peaks.inter->source;  // three ports, but no rank uses more than one
}

TEST(LinkPeaks, BridgesThatJoinTwoBoardsAreNoPortOfALargerGroup) {
    const auto peakOf = [](const std::string& device, int ranks) {
        facts::TraceFacts facts = job(ranks, ranks, device);
        for (int rank = 0; rank < ranks; ++rank) {
            facts.machineLinks.push_back(ofRank(rank, "nvlink", 12, 3, 300 * kGb));
            facts.machineLinks.push_back(ofRank(rank, "pcie", 16, 4, 31'500'000'000));
        }
        return resolveLinkPeaks(facts).intra->bytesPerNs;
    };
    EXPECT_EQ(peakOf("NVIDIA A100 80GB PCIe", 2), 300);
    EXPECT_NEAR(peakOf("NVIDIA A100 80GB PCIe", 4), 24, 0.01);
    EXPECT_EQ(peakOf("NVIDIA H200 NVL", 4), 300);
    EXPECT_NEAR(peakOf("NVIDIA H200 NVL", 8), 24, 0.01);
    EXPECT_EQ(peakOf("NVIDIA A100-SXM4-80GB", 8), 300);
}

TEST(LinkPeaks, TheCeilingAndItsKindAreOneAnswer) {
    facts::Communicator inside, across;
    across.nodes = 2;
    across.smallestNode = 4;
    LinkPeaks peaks;
    EXPECT_FALSE(peaks.busCeiling(across));
    peaks.intra = LinkClass{100, 0, PeakKind::atLeast, "reached"};
    peaks.inter = LinkClass{50, 0, PeakKind::machine, "sysfs"};
    EXPECT_EQ(peaks.busCeiling(inside), 100);
    EXPECT_TRUE(peaks.atLeast(inside));
    EXPECT_EQ(peaks.busCeiling(across),
              200);  // what the ports carry at least does not hold up four cards of a known rate
    EXPECT_EQ(peaks.ceiling(across)->link->kind, PeakKind::machine);
    EXPECT_FALSE(peaks.atLeast(across));
    peaks.intra->kind = PeakKind::told;
    peaks.inter->kind = PeakKind::atLeast;
    EXPECT_EQ(peaks.busCeiling(across), 100);  // the port limits, whatever more the cards may carry
    EXPECT_EQ(peaks.ceiling(across)->link->kind, PeakKind::told);
    EXPECT_FALSE(peaks.atLeast(across));
    peaks.intra->kind = PeakKind::atLeast;
    EXPECT_TRUE(peaks.atLeast(across));
    peaks.intra->bytesPerNs = 30;
    EXPECT_EQ(peaks.busCeiling(across), 50);  // a port carries at least what the card does that it feeds
}

TEST(LinkPeaks, TheCeilingFollowsTheWayTheBytesTake) {
    const LinkPeaks peaks = parseLinkPeaks("intra:gbps=200;inter:gbps=40");
    facts::Communicator group;
    group.size = 8;
    group.nodes = 2;
    group.smallestNode = 4;
    EXPECT_EQ(peaks.busCeiling(group, store::Op::allReduce), 160);  // four cards a node
    EXPECT_EQ(peaks.busCeiling(group, store::Op::allToAll), 70);    // 4 of 7 parts leave by the rank's own card
    EXPECT_EQ(peaks.busCeiling(group, store::Op::send), 40);
    EXPECT_EQ(peaks.busCeiling(pairOfRanks(true), store::Op::send), 40);
    EXPECT_EQ(peaks.busCeiling(pairOfRanks(false), store::Op::send), 200);
    EXPECT_EQ(parseLinkPeaks("intra:gbps=24;inter:gbps=40").busCeiling(pairOfRanks(true), store::Op::send),
              24);  // a message between nodes leaves by the port
    EXPECT_FALSE(parseLinkPeaks("intra:gbps=200").busCeiling(group, store::Op::allReduce));
    EXPECT_FALSE(parseLinkPeaks("intra:gbps=-3;inter:gbps=x;;:;gbps=4").intra);
}

TEST(LinkPeaks, RowsThatSayNothingAreLeftOut) {
    facts::TraceFacts facts = job(2, 1);
    store::MachineLink silent = ofHost(0, "infiniband", "mlx5_0/1", 0);
    silent.bytesPerS.reset();
    facts.machineLinks = {silent, ofHost(1, "infiniband", "mlx5_0/1", -5), ofHost(0, "ethernet", "eth0", INT64_MAX),
                          ofRank(0, "nvlink", 0, 0, 0), ofRank(1, "carrier pigeon", 1, 1, kGb)};
    EXPECT_FALSE(resolveLinkPeaks(facts).intra);
    EXPECT_FALSE(resolveLinkPeaks(facts).inter);
}

TEST(LinkPeaks, DevicesAreFoundByTheNamesThatDriversGive) {
    const std::pair<const char*, double> known[] = {{"NVIDIA H100 80GB HBM3", 450},
                                                    {"NVIDIA H100 PCIe", 48},
                                                    {"NVIDIA H100 NVL", 48},
                                                    {"NVIDIA H200", 450},
                                                    {"NVIDIA GH200 480GB", 450},
                                                    {"NVIDIA B200", 900},
                                                    {"NVIDIA GB200", 900},
                                                    {"NVIDIA A100-SXM4-80GB", 300},
                                                    {"NVIDIA A100-PG509-200", 300},
                                                    {"NVIDIA A100-PCIE-40GB", 24},
                                                    {"NVIDIA A100 80GB PCIe", 24},
                                                    {"NVIDIA A10", 24},
                                                    {"NVIDIA A10G", 24},
                                                    {"NVIDIA L40S", 24},
                                                    {"NVIDIA L4", 24},
                                                    {"Tesla V100-SXM2-32GB", 150},
                                                    {"Tesla V100-PCIE-16GB", 12},
                                                    {"Tesla T4", 12},
                                                    {"AMD Instinct MI300X", 448},
                                                    {"AMD Instinct MI250X", 200},
                                                    {"AMD Instinct MI250", 150},
                                                    {"AMD Instinct MI250X / MI250", 200}};
    for (const auto& [name, gbps] : known) {
        const auto link = deviceLinkOf(name);
        ASSERT_TRUE(link) << name;
        EXPECT_EQ(link->bytesPerNs, gbps) << name;
        EXPECT_FALSE(link->source.empty()) << name;
    }
    for (const char* name :
         {"Rankscope Virtual GPU", "AMD Radeon Graphics", "NVIDIA A100-SXM4-80GB MIG 1g.10gb", "NVIDIA XA100B", ""})
        EXPECT_FALSE(deviceLinkOf(name)) << name;
}

TEST(LinkPeaks, ABoardWithoutPeerAccessIsKnownByItsNameWhoeverTellsTheRate) {
    facts::TraceFacts facts = job(2, 2, "NVIDIA GeForce RTX 4090");
    LinkSources told;
    told.told = {{"intra:gbps=31.5", "--links"}};
    EXPECT_EQ(resolveLinkPeaks(facts, told).intra->medium, LinkMedium::hostMemory);
    facts.machineLinks = {ofRank(0, "pcie", 16, 4, 31'500'000'000), ofRank(1, "pcie", 16, 4, 31'500'000'000)};
    const LinkPeaks machine = resolveLinkPeaks(facts);
    EXPECT_EQ(machine.intra->kind, PeakKind::machine);
    EXPECT_EQ(machine.intra->medium, LinkMedium::hostMemory);
    facts.machineLinks = {ofRank(0, "nvlink", 4, 3, 56 * kGb), ofRank(1, "nvlink", 4, 3, 56 * kGb)};
    facts.ranks[0].device = facts.ranks[1].device = "NVIDIA GeForce RTX 3090";
    EXPECT_EQ(resolveLinkPeaks(facts).intra->medium, LinkMedium::nvlink);  // by their bridge
}

TEST(LinkPeaks, AnUnknownDeviceIsSaid) {
    facts::TraceFacts facts = job(2, 2, "NVIDIA A100-SXM4-80GB");
    facts.ranks[1].device = "NVIDIA Z999";
    const LinkPeaks peaks = resolveLinkPeaks(facts);
    EXPECT_FALSE(peaks.intra);  // the other one may be the slower
    EXPECT_EQ(peaks.unknownDevices, std::vector<std::string>{"NVIDIA Z999"});
    EXPECT_NE(linkPeaksText(peaks, 1).find("no data sheet is known for NVIDIA Z999"), std::string::npos);
    EXPECT_NE(linkPeaksText(peaks, 1).find("rankscope analyze"), std::string::npos);
    facts.ranks[1].device = "NVIDIA A100-PCIE-40GB";
    EXPECT_EQ(resolveLinkPeaks(facts).intra->bytesPerNs, 24);
    EXPECT_NE(resolveLinkPeaks(facts).intra->source.find("the slowest of 2 kinds"), std::string::npos);
}

TEST(LinkPeaks, NoMeasurementIsBeyondWhatTheMachineHas) {
    facts::TraceFacts facts = job(2, 2);
    facts.machineLinks = {ofRank(0, "nvlink", 8, 3, 200 * kGb), ofRank(1, "nvlink", 8, 3, 200 * kGb)};
    const auto measured = [](double rate, double most = 1) {
        return LinkSources::Measured{{rate, 0, PeakKind::measured, "fast.txt line 12"}, false, most};
    };
    LinkSources given;
    given.measured = {measured(210)};
    EXPECT_EQ(resolveLinkPeaks(facts, given).intra->bytesPerNs, 210);
    EXPECT_TRUE(resolveLinkPeaks(facts, given).warnings.empty());
    given.measured = {measured(230)};
    LinkPeaks peaks = resolveLinkPeaks(facts, given);
    EXPECT_EQ(peaks.intra->kind, PeakKind::machine);
    ASSERT_EQ(peaks.warnings.size(), 1u);
    for (const char* part : {"230 GB/s", "fast.txt line 12", "200 GB/s", "NVML"})
        EXPECT_NE(peaks.warnings[0].find(part), std::string::npos) << peaks.warnings[0];
    ASSERT_EQ(peaks.intraOthers.size(), 1u) << "it counts once the job refutes what the machine says";
    EXPECT_EQ(peaks.intraOthers[0].bytesPerNs, 230);
    given.measured = {measured(230, 1.4)};  // where the switch reduces
    EXPECT_EQ(resolveLinkPeaks(facts, given).intra->bytesPerNs, 230);
    // The fastest that can be counts, and not what cannot.
    given.measured = {measured(150), measured(8'750, 1.4), measured(180)};
    peaks = resolveLinkPeaks(facts, given);
    EXPECT_EQ(peaks.intra->bytesPerNs, 180);
    EXPECT_EQ(peaks.warnings.size(), 1u);
}

/// 16 lanes of PCIe 5 are 48 GB/s as NCCL counts them, a rate that NVLinks have as well.
TEST(LinkPeaks, Pcie5IsPricedAsPcieWhereTheDeviceOrTheMachineSaysSo) {
    const facts::TraceFacts byDevice = job(8, 8, "NVIDIA H100 PCIe");
    facts::TraceFacts byMachine = job(8, 8, "Some GPU");
    for (int rank = 0; rank < 8; ++rank) byMachine.machineLinks.push_back(ofRank(rank, "pcie", 16, 5, 63 * kGb));
    LinkSources toldAsWell;
    toldAsWell.told = {{"intra:gbps=48", "--links"}};
    facts::Communicator group;
    group.size = 8;
    const auto llShare = [](const LinkModel& link) {
        return bandwidthShare(link, store::Op::allReduce, {store::Algorithm::ring, store::Protocol::ll}, kAnySize);
    };
    const auto llHops = [](const LinkModel& link) {
        return latencyHops(link, store::Op::allReduce, 8, {store::Algorithm::ring, store::Protocol::ll}).middle();
    };
    const LinkModel nvlink{.bytesPerNs = 48, .nearMedium = LinkMedium::nvlink};
    for (const LinkPeaks& peaks :
         {resolveLinkPeaks(byDevice), resolveLinkPeaks(byMachine), resolveLinkPeaks(byMachine, toldAsWell)}) {
        ASSERT_TRUE(peaks.intra);
        EXPECT_NEAR(peaks.intra->bytesPerNs, 48, 0.1) << peaks.source;
        const LinkModel link = *linkModel(peaks, group, store::Op::allReduce);
        // NCCL's table: half of the link by LL, where NVLink's polling leaves 0.3, and hops of 1 in 5.7 us.
        EXPECT_DOUBLE_EQ(llShare(link).high, 0.5) << peaks.source;
        EXPECT_DOUBLE_EQ(llHops(link), (6.6 + 14 * 1.0) / 5.7) << peaks.source;
        EXPECT_LT(llShare(nvlink).high, llShare(link).high);
    }
    // Over nodes a ring's hops inside of them are PCIe's as well.
    facts::TraceFacts nodes = job(8, 4, "NVIDIA H100 PCIe");
    nodes.machineLinks = {ofHost(0, "infiniband", "mlx5_0", 50 * kGb), ofHost(1, "infiniband", "mlx5_0", 50 * kGb)};
    group.nodes = 2;
    group.smallestNode = 4;
    EXPECT_EQ(linkModel(resolveLinkPeaks(nodes), group, store::Op::allReduce)->nearMedium, LinkMedium::pcie);
}

/// Nobody says what 48 GB/s are that a user tells: no PCIe port has that rate by its line.
TEST(LinkPeaks, ARateAloneIsReadAsAMedium) {
    facts::Communicator group;
    group.size = 8;
    const auto llShare = [&](const char* told) {
        const LinkModel link = *linkModel(parseLinkPeaks(told), group, store::Op::allReduce);
        return bandwidthShare(link, store::Op::allReduce, {store::Algorithm::ring, store::Protocol::ll}, kAnySize).high;
    };
    EXPECT_DOUBLE_EQ(llShare("intra:gbps=31.5"), 0.5);
    EXPECT_DOUBLE_EQ(llShare("intra:gbps=63"), 0.5);
    EXPECT_DOUBLE_EQ(llShare("intra:gbps=48"), 0.4);
    EXPECT_DOUBLE_EQ(llShare("intra:gbps=450"), 0.4);
}

TEST(LinkPeaks, AnAnalysisSaysAndKeepsWhatItTook) {
    test::TemporaryFolder folder;
    test::TraceFixture fixture(2, 1);
    for (int step = 0; step < 6; ++step)
        for (int rank = 0; rank < 2; ++rank) {
            fixture.kernel(rank, step * test::kMs, test::kMs / 2, "gemm", 64);
            fixture.step(rank, step, step * test::kMs, test::kMs);
        }
    fixture.links("intra:gbps=200,alpha_us=6;inter:gbps=40").write(folder.path() / "trace.db");
    report::AnalyzeOptions options;
    options.links.told = {{"inter:gbps=10", "--links"}};
    const report::Report report = report::analyze(folder.path() / "trace.db", options);
    const auto json = nlohmann::json::parse(report::renderJson(report));
    EXPECT_EQ(
        json["link_peaks"]["inter"],
        (nlohmann::json{
            {"gbps", 10.0}, {"alpha_us", nullptr}, {"kind", "told"}, {"medium", nullptr}, {"source", "--links"}}));
    EXPECT_EQ(json["link_peaks"]["intra"]["alpha_us"], 6.0);
    EXPECT_NE(json["link_peak_source"].get<std::string>().find("--links"), std::string::npos);
    const auto warned = std::any_of(json["loss"].begin(), json["loss"].end(), [](const auto& loss) {
        return loss["kind"] == "link_peaks" && loss["severity"] == "warning";
    });
    EXPECT_TRUE(warned) << json["loss"].dump();  // 10 now, 40 then
    const std::string line =
        "inside a node 200 GB/s, start-up 6 us (told: --links of the run); between nodes 10 GB/s (told: --links)";
    for (const std::string& text :
         {report::renderText(report), report::renderMarkdown(report), report::renderHtml(report)})
        EXPECT_NE(text.find(line), std::string::npos) << text.substr(0, 2000);
    store::TraceReader trace(folder.path() / "trace.db");
    EXPECT_EQ(nlohmann::json::parse(trace.meta("link_peaks", ""))["inter"]["gbps"], 10.0);
    EXPECT_EQ(trace.meta("links", ""), "intra:gbps=200,alpha_us=6;inter:gbps=40");
}

}  // namespace
}  // namespace rankscope::costs
