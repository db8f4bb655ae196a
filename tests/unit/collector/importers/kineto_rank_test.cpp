// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "collector/importers/collective_vocabulary.h"
#include "collector/importers/import_error.h"
#include "collector/importers/kineto_file.h"
#include "collector/ingest/rank_preparation.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

using store::NcclKernel;
using store::Op;
using tests::annotationEvent;
using tests::kernelEvent;
using tests::launchEvent;

FileRank readEvents(const std::string& events, const ReadOptions& options = {}) {
    const tests::TraceFolder folder;
    std::vector<FileRank> ranks;
    readKinetoFile(folder.write("trace.json", R"({"distributedInfo": {"rank": 1, "world_size": 2}, "traceEvents": [)" +
                                                  events + "]}"),
                   options, [&](FileRank rank) { ranks.push_back(std::move(rank)); });
    EXPECT_EQ(ranks.size(), 1u);
    return std::move(ranks.at(0));
}

TEST(KinetoRank, KernelsKeepStreamDeviceCorrelationAndShape) {
    const RankRecording recording =
        readEvents(kernelEvent("gemm", "10.5", "3", 42, R"(, "grid": [32, 2, 1], "block": [128, 1, 1])")).recording;
    ASSERT_EQ(recording.kernels.size(), 1u);
    const store::Kernel& kernel = recording.kernels[0];
    EXPECT_EQ(recording.strings[kernel.nameId], "gemm");
    EXPECT_EQ(kernel.startNs, 10500);
    EXPECT_EQ(kernel.durNs, 3000);
    EXPECT_EQ(kernel.correlationId, 42u);
    EXPECT_EQ(kernel.gridBlocks, 64u);
    EXPECT_EQ(kernel.blockThreads, 128u);
    EXPECT_EQ(kernel.nccl, NcclKernel::no);
    EXPECT_EQ(recording.streams[static_cast<size_t>(kernel.streamId)].nativeId, 7);
}

TEST(KinetoRank, ACallWithoutANameThatAKernelBelongsToIsItsLaunch) {
    const auto call = [](const char* name, int correlation) {
        std::string event = launchEvent("1", correlation);
        return event.replace(event.find("cudaLaunchKernel"), std::string("cudaLaunchKernel").size(), name);
    };
    const RankRecording recording =
        readEvents(call("INVALID", 42) + "," + call("INVALID", 43) + "," + kernelEvent("gemm", "10.5", "3", 42, ""))
            .recording;
    ASSERT_EQ(recording.apiCalls.size(), 2u);
    EXPECT_EQ(recording.apiCalls[0].kind, store::ApiKind::launch);
    EXPECT_EQ(recording.apiCalls[1].kind, store::ApiKind::other);
}

TEST(KinetoRank, CopiesAndSetsTellKindAndBytes) {
    const RankRecording recording =
        readEvents(
            R"j({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7, "ts": 1, "dur": 1,
                       "args": {"device": 0, "context": 1, "stream": 7, "correlation": 1, "bytes": 832}},
                      {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": 3, "dur": 1,
                       "args": {"device": 0, "context": 1, "stream": 7, "correlation": 2, "bytes": 16}})j")
            .recording;
    ASSERT_EQ(recording.memcpys.size(), 1u);
    EXPECT_EQ(recording.memcpys[0].kind, 1);
    EXPECT_EQ(recording.memcpys[0].bytes, 832);
    EXPECT_EQ(recording.memcpys[0].srcMemory, 2);
    EXPECT_EQ(recording.memcpys[0].dstMemory, 3);
    ASSERT_EQ(recording.memsets.size(), 1u);
    EXPECT_EQ(recording.memsets[0].bytes, 16);
}

TEST(KinetoRank, RocmCopiesTakeTheirSizeFromTheCall) {
    const RankRecording recording =
        readEvents(
            R"j({"ph": "X", "cat": "cuda_runtime", "name": "hipMemcpyWithStream", "pid": 1, "tid": 1, "ts": 1, "dur": 9,
                       "args": {"correlation": 117, "size": "2560", "kind": "1"}},
                      {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Host -> Device)", "pid": 2, "tid": 0, "ts": 2, "dur": 1,
                       "args": {"device": 2, "stream": 0, "correlation": 117, "kind": "HtoD"}})j")
            .recording;
    ASSERT_EQ(recording.memcpys.size(), 1u);
    EXPECT_EQ(recording.memcpys[0].bytes, 2560);
    EXPECT_EQ(recording.memcpys[0].kind, 1);
    EXPECT_FALSE(recording.memcpys[0].srcMemory) << "ROCm's Host is pinned or pageable";
    EXPECT_EQ(recording.apiCalls[0].kind, store::ApiKind::copy);
}

TEST(KinetoRank, SynchronizationsTellKindAndStream) {
    const RankRecording recording =
        readEvents(kernelEvent("k", "1", "1", 1) +
                   R"(,{"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7, "ts": 1, "dur": 9,
                       "args": {"cuda_sync_kind": "Stream Sync", "stream": 7, "correlation": 15, "device": 0, "context": 1}},
                      {"ph": "X", "cat": "cuda_sync", "name": "Context Sync", "pid": 0, "tid": 7, "ts": 1, "dur": 9,
                       "args": {"cuda_sync_kind": "Context Sync", "stream": -1, "correlation": 16, "device": 0, "context": 1}})")
            .recording;
    ASSERT_EQ(recording.synchronizations.size(), 2u);
    EXPECT_EQ(recording.synchronizations[0].kind, 3);
    EXPECT_EQ(recording.synchronizations[0].streamId, recording.kernels[0].streamId);
    EXPECT_EQ(recording.synchronizations[1].kind, 4);
    EXPECT_FALSE(recording.synchronizations[1].streamId);
}

std::string operationEvent(const char* category, const char* name, int startUs, int durUs, int tid = 100) {
    return R"(,{"ph": "X", "cat": ")" + std::string(category) + R"(", "name": ")" + name + R"(", "pid": 100, "tid": )" +
           std::to_string(tid) + R"(, "ts": )" + std::to_string(startUs) + R"(, "dur": )" + std::to_string(durUs) +
           R"(, "args": {"External id": 7, "Ev Idx": 3}})";
}

/// Names of the operations that were kept, with their depths.
std::string keptIn(const RankRecording& recording) {
    std::string text;
    for (const store::NvtxRange& range : recording.nvtx)
        if (range.domainId && recording.strings[*range.domainId] != "gpu_user_annotation")
            text += recording.strings[range.nameId] + ":" + std::to_string(range.depth) + " ";
    return text;
}

TEST(KinetoRank, OperationsOfLongStandstillsAreKeptInnermostAndWhatIsAroundThem) {
    const std::string device = kernelEvent("k", "1000", "1000", 1) + "," + kernelEvent("k", "7000", "1000", 2);
    const RankRecording recording =
        readEvents(device + operationEvent("cpu_op", "beside_the_kernel", 1100, 500) +
                   operationEvent("python_function", "main", 0, 8000) + operationEvent("cpu_op", "loader", 2000, 4000) +
                   operationEvent("Operator", "aten::stack", 2500, 3000) +
                   operationEvent("cpu_op", "aten::tiny", 2600, 5) +
                   operationEvent("cpu_op", "aten::other_thread", 3000, 900, 101))
            .recording;
    EXPECT_EQ(keptIn(recording), "main:0 loader:1 aten::stack:2 aten::other_thread:0 ");
    EXPECT_EQ(recording.meta.at("host_operations"), "recorded");
}

TEST(KinetoRank, EveryOperationIsKeptWhereThatIsAsked) {
    const std::string events =
        kernelEvent("k", "0", "1000", 1) + "," + kernelEvent("k", "1900", "1000", 2) +
        operationEvent("cpu_op", "aten::linear", 1000, 900) + operationEvent("cpu_op", "aten::mm", 1100, 100) +
        operationEvent("cpu_op", "aten::mm", 1300, 100) + operationEvent("python_function", "main", 0, 2900) +
        operationEvent("cpu_op", "aten::other_thread", 1200, 50, 101);
    EXPECT_EQ(keptIn(readEvents(events).recording), "");
    const RankRecording all = readEvents(events, {.allOperations = true}).recording;
    EXPECT_EQ(keptIn(all), "main:0 aten::linear:1 aten::mm:2 aten::mm:2 aten::other_thread:0 ");
    EXPECT_EQ(all.meta.at("host_operations"), "all");
}

TEST(KinetoRank, MemoryIsACounterWhereThatIsAsked) {
    const auto memory = [](const char* ts, int type, int device, const char* allocated, const char* reserved) {
        return R"(,{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 100, "tid": 100, "ts": )" +
               std::string(ts) + R"(, "args": {"Total Reserved": )" + reserved + R"(, "Total Allocated": )" +
               allocated + R"(, "Bytes": 512, "Addr": 140000000000000, "Device Id": )" + std::to_string(device) +
               R"(, "Device Type": )" + std::to_string(type) + "}}";
    };
    const std::string events =
        kernelEvent("k", "0", "1000", 1) + memory("10", 1, 0, "1024", "4096") + memory("20.5", 1, 0, "512", "4096") +
        memory("30", 0, -1, "64", "0") + memory("40", 1, 0, "\"x\"", "null") +
        R"(,{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "mark", "ts": 50, "args": {}})" +
        R"(,{"ph": "i", "cat": "kernel", "s": "t", "name": "k", "ts": 50, "args": {}})";
    const FileRank some = readEvents(events);
    EXPECT_TRUE(some.recording.counters.empty());
    EXPECT_EQ(some.recording.kernels.size(), 1u) << "an instant is no kernel";
    ASSERT_FALSE(some.losses.all().empty());
    EXPECT_NE(some.losses.all().back().message.find("--all-operations"), std::string::npos);
    const RankRecording all = readEvents(events, {.allOperations = true}).recording;
    std::string told;
    for (const store::Counter& counter : all.counters)
        told += all.strings[counter.nameId] + " " + std::to_string(counter.timeNs) + " " +
                std::to_string(counter.value) + "; ";
    EXPECT_EQ(told,
              "memory allocated on device 0 [bytes] 10000 1024; memory reserved on device 0 [bytes] 10000 4096; "
              "memory allocated on device 0 [bytes] 20500 512; memory reserved on device 0 [bytes] 20500 4096; "
              "memory allocated on the CPU [bytes] 30000 64; ");
}

TEST(KinetoRank, DevicesOfOtherVendorsAreToldAsSuch) {
    const auto told = [](const char* category, const char* call) {
        const FileRank file =
            readEvents(kernelEvent("gemm", "10", "3", 42) + R"(,{"ph": "X", "cat": ")" + category + R"(", "name": ")" +
                       call + R"(", "pid": 9, "tid": 9, "ts": 1, "dur": 2, "args": {"correlation": 42}})");
        EXPECT_EQ(file.recording.apiCalls.size(), 1u) << category;
        EXPECT_EQ(file.recording.apiCalls.at(0).kind, store::ApiKind::launch) << call;
        return file.losses.all().empty() ? std::string() : file.losses.all()[0].message;
    };
    EXPECT_EQ(told("cuda_runtime", "cudaLaunchKernel"), "");
    EXPECT_NE(told("cuda_runtime", "hipExtModuleLaunchKernel").find("AMD's"), std::string::npos);
    EXPECT_NE(told("hip_runtime", "hipLaunchKernel").find("AMD's"), std::string::npos);
    EXPECT_NE(told("xpu_runtime", "urEnqueueKernelLaunch").find("Intel's (XPU)"), std::string::npos);
    EXPECT_NE(told("mtia_runtime", "mtiaLaunchKernel").find("MTIA"), std::string::npos);
    EXPECT_NE(told("privateuse1_runtime", "LaunchKernel").find("another vendor's"), std::string::npos);
}

TEST(KinetoRank, WithoutLongStandstillsNoOperationIsKept) {
    const std::string device = kernelEvent("k", "0", "1000", 1) + "," + kernelEvent("k", "1900", "1000", 2);
    EXPECT_EQ(keptIn(readEvents(device + operationEvent("cpu_op", "aten::mm", 1000, 900)).recording), "");
}

TEST(KinetoRank, AnOperationFarOverItsUsualTimeIsKeptWithThat) {
    std::string events = kernelEvent("k", "0", "100000", 1);
    for (int i = 0; i < 5; ++i) events += operationEvent("cpu_op", "aten::view", 1000 + 100 * i, 9);
    events += operationEvent("cpu_op", "aten::view", 50000, 29000) + operationEvent("cpu_op", "aten::mm", 10000, 29000);
    const RankRecording recording = readEvents(events).recording;
    ASSERT_EQ(keptIn(recording), "aten::view:0 ") << "one aten::mm alone has no usual time";
    for (const store::NvtxRange& range : recording.nvtx) {
        EXPECT_EQ(range.durNs, 29'000'000);
        EXPECT_EQ(range.payload, 9'000);
    }
}

TEST(KinetoRank, ACallThatWaitsIsNoPauseOfTheOperationAroundIt) {
    std::string events = kernelEvent("k", "0", "100000", 1);
    for (int i = 0; i < 5; ++i) events += operationEvent("cpu_op", "aten::item", 1000 + 100 * i, 9);
    events += operationEvent("cpu_op", "aten::item", 50000, 29000);
    events +=
        R"(,{"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 100, "tid": 100, "ts": 50001, "dur": 28990, "args": {"correlation": 9}})";
    EXPECT_EQ(keptIn(readEvents(events).recording), "");
}

TEST(KinetoRank, AKernelThatTellsItsCollectiveIsACall) {
    const RankRecording recording =
        readEvents(
            kernelEvent(
                "ncclDevKernel_Generic(x)", "10", "5", 9,
                R"(, "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "dtype": "BFloat16",
                                   "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]")"))
            .recording;
    ASSERT_EQ(recording.ncclCalls.size(), 1u);
    const store::NcclCall& call = recording.ncclCalls[0];
    EXPECT_EQ(call.op, Op::allReduce);
    EXPECT_EQ(call.bytes, 2000);
    EXPECT_EQ(call.count, 1000);
    EXPECT_EQ(call.dataType, store::DataType::bf16);
    EXPECT_EQ(call.evidence, store::evidence::kImported);
    EXPECT_EQ(call.algorithm, store::Algorithm::unknown);
    EXPECT_EQ(recording.kernels[0].nccl, NcclKernel::byCall);
    ASSERT_TRUE(call.communicatorId);
    const LocalCommunicator& communicator = recording.communicators[static_cast<size_t>(*call.communicatorId)];
    EXPECT_EQ(communicator.identity, "process_group");
    EXPECT_EQ(communicator.name, "default_pg");
    EXPECT_EQ(communicator.nRanks, 2);
    EXPECT_EQ(communicator.commRank, 1);
}

TEST(KinetoRank, ACollectiveIsFoundByTheOperatorAroundItsLaunch) {
    // RCCL: the kernel tells nothing, record_param_comms around the launch does.
    const RankRecording recording =
        readEvents(
            R"({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 100, "tid": 100, "ts": 10, "dur": 50, "args": {"External id": 47,
                       "Collective name": "_allgather_base", "dtype": "Float", "In msg nelems": 100, "Out msg nelems": 200, "Group size": 2,
                       "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}},)" +
            launchEvent("20", 5) + "," + kernelEvent("ncclDevKernel_Generic(x)", "70", "5", 5))
            .recording;
    ASSERT_EQ(recording.ncclCalls.size(), 1u);
    EXPECT_EQ(recording.ncclCalls[0].op, Op::allGather);
    EXPECT_EQ(recording.ncclCalls[0].bytes, 800);
    EXPECT_EQ(recording.ncclCalls[0].startNs, 10000) << "the call on the host, not the kernel";
    EXPECT_EQ(recording.ncclCalls[0].durNs, 50000);
    EXPECT_EQ(recording.kernels[0].nccl, NcclKernel::byCall);
}

TEST(KinetoRank, AnAnnotationTellsWhatASendRecvKernelCarried) {
    const RankRecording recording =
        readEvents(
            annotationEvent("nccl:all_to_all", "10", "50", R"("Input Dims": [[8, 1024]], "Input type": ["float"])") +
            "," + launchEvent("20", 5) + "," +
            kernelEvent("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)", "70", "5", 5))
            .recording;
    ASSERT_EQ(recording.ncclCalls.size(), 1u);
    EXPECT_EQ(recording.ncclCalls[0].op, Op::allToAll);
    EXPECT_EQ(recording.ncclCalls[0].bytes, 8 * 1024 * 4);
    EXPECT_EQ(recording.ncclCalls[0].evidence, store::evidence::kImported);
    EXPECT_FALSE(recording.ncclCalls[0].communicatorId);
}

TEST(KinetoRank, ALaunchOutsideTheAnnotationOrOnAnotherThreadIsNotItsOwn) {
    for (const std::string& launch : {launchEvent("61", 5), launchEvent("20", 5, 101)}) {
        const RankRecording recording = readEvents(annotationEvent("nccl:all_to_all", "10", "50") + "," + launch + "," +
                                                   kernelEvent("ncclKernel_SendRecv_RING_SIMPLE(x)", "70", "5", 5))
                                            .recording;
        ASSERT_EQ(recording.ncclCalls.size(), 1u);
        EXPECT_EQ(recording.ncclCalls[0].op, Op::unknown);
    }
}

TEST(KinetoRank, ANameAloneGivesTheOperationButNoAlgorithm) {
    RankRecording recording =
        readEvents(kernelEvent("ncclKernel_AllReduce_RING_LL_Sum_float(x)", "1", "5", 5)).recording;
    ASSERT_EQ(recording.ncclCalls.size(), 1u);
    const store::NcclCall& call = recording.ncclCalls[0];
    EXPECT_EQ(call.op, Op::allReduce);
    EXPECT_EQ(call.evidence, store::evidence::kInferred);
    EXPECT_EQ(call.algorithm, store::Algorithm::unknown);
    EXPECT_EQ(call.protocol, store::Protocol::unknown);
    EXPECT_FALSE(call.bytes);
    EXPECT_EQ(recording.kernels[0].nccl, NcclKernel::byName);
    prepare(recording);
    EXPECT_EQ(recording.kernels[0].nccl, NcclKernel::byName) << "a call made up from the name proves nothing";
}

// A kernel on stream 7 whose collective is told, of the group of that name.
std::string toldOf(const std::string& group, const std::string& ts, int correlation) {
    return kernelEvent(
        "ncclDevKernel_AllReduce(x)", ts, "5", correlation,
        R"(, "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2,
                          "dtype": "BFloat16", "Process Group Name": ")" +
            group + R"(", "Process Group Ranks": "[0, 1]")");
}

TEST(KinetoRank, WhatWasLaunchedBeforeTheRecordingIsOfTheGroupOfItsStream) {
    const std::string untold = kernelEvent("ncclDevKernel_Broadcast_RING_LL(x)", "1", "5", 5);
    const RankRecording recording =
        readEvents(untold + "," + toldOf("0", "10", 9) + "," + toldOf("0", "20", 10)).recording;
    ASSERT_EQ(recording.ncclCalls.size(), 3u);
    EXPECT_EQ(recording.ncclCalls[0].op, Op::broadcast);
    ASSERT_TRUE(recording.ncclCalls[0].communicatorId);
    EXPECT_EQ(recording.ncclCalls[0].communicatorId, recording.ncclCalls[1].communicatorId);
    EXPECT_EQ(recording.ncclCalls[0].evidence & store::evidence::kInferred, store::evidence::kInferred);
    EXPECT_EQ(recording.ncclCalls[1].evidence, store::evidence::kImported);
}

TEST(KinetoRank, AStreamOfTwoGroupsTellsNone) {
    const std::string untold = kernelEvent("ncclDevKernel_Broadcast_RING_LL(x)", "1", "5", 5);
    const RankRecording recording =
        readEvents(untold + "," + toldOf("0", "10", 9) + "," + toldOf("1", "20", 10)).recording;
    ASSERT_EQ(recording.ncclCalls.size(), 3u);
    EXPECT_FALSE(recording.ncclCalls[0].communicatorId);
}

TEST(KinetoRank, CommunicationOfOtherLibrariesIsMarkedButNoNcclCall) {
    const RankRecording recording =
        readEvents(kernelEvent("void dpsk::ep::internode::dispatch<true>(int)", "1", "5", 5) + "," +
                   kernelEvent("ampere_sgemm_128x64", "9", "5", 6))
            .recording;
    EXPECT_EQ(recording.kernels[0].nccl, NcclKernel::byName);
    EXPECT_EQ(recording.kernels[1].nccl, NcclKernel::no);
    EXPECT_TRUE(recording.ncclCalls.empty());
}

TEST(KinetoRank, SendsTellTheirPeerInTheGroup) {
    const RankRecording recording =
        readEvents(
            kernelEvent(
                "ncclDevKernel_SendRecv(x)", "10", "5", 9,
                R"(, "Collective name": "send", "In msg nelems": 10, "dtype": "Float", "Group size": 2, "Src Rank": 1, "Dst Rank": 5,
                                   "Process Group Name": "pp", "Process Group Ranks": "[1, 5]")"))
            .recording;
    ASSERT_EQ(recording.ncclCalls.size(), 1u);
    EXPECT_EQ(recording.ncclCalls[0].op, Op::send);
    EXPECT_EQ(recording.ncclCalls[0].peer, 1);
    EXPECT_EQ(recording.ncclCalls[0].bytes, 40);
}

TEST(KinetoRank, AnnotationsNestAndThoseOnTheDeviceStandApart) {
    const RankRecording recording =
        readEvents(
            annotationEvent("ProfilerStep#3", "1", "100") + "," + annotationEvent("forward", "2", "50") + "," +
            annotationEvent("loss", "60", "5") + "," +
            R"({"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#3", "pid": 0, "tid": 7, "ts": 2, "dur": 9})")
            .recording;
    ASSERT_EQ(recording.nvtx.size(), 4u);
    EXPECT_EQ(recording.nvtx[0].depth, 0);
    EXPECT_EQ(recording.nvtx[1].depth, 1);
    EXPECT_EQ(recording.nvtx[2].depth, 1);
    EXPECT_FALSE(recording.nvtx[0].domainId);
    ASSERT_TRUE(recording.nvtx[3].domainId);
    EXPECT_FALSE(recording.nvtx[3].threadId);
}

TEST(KinetoRank, ATraceWithoutKernelsSaysSoAndOneWithoutAnythingIsRefused) {
    const FileRank cpuOnly = readEvents(annotationEvent("gloo:all_reduce", "1", "9"));
    ASSERT_EQ(cpuOnly.losses.all().size(), 1u);
    EXPECT_EQ(cpuOnly.losses.all()[0].kind, "source_absent");
    EXPECT_THROW(
        readEvents(R"({"ph": "X", "cat": "backward-compute", "name": "x", "pid": 0, "tid": 0, "ts": 1, "dur": 1})"),
        ImportError);
    EXPECT_THROW(readEvents("1, 2, 3"), ImportError);
}

TEST(CollectiveVocabulary, BytesCountAsNcclTestsCountThem) {
    const auto type = store::DataType::f32;
    EXPECT_EQ(collectiveBytes(Op::allReduce, type, 100, 100, 8), 400);
    EXPECT_EQ(collectiveBytes(Op::allGather, type, 100, 800, 8), 3200);
    EXPECT_EQ(collectiveBytes(Op::reduceScatter, type, 800, 100, 8), 3200);
    EXPECT_EQ(collectiveBytes(Op::allToAll, type, 800, 800, 8), 3200);
    EXPECT_EQ(collectiveBytes(Op::recv, type, std::nullopt, 10, 2), 40);
    EXPECT_EQ(collectiveBytes(Op::allReduce, store::DataType::unknown, 100, 100, 8), std::nullopt);
    EXPECT_EQ(collectiveBytes(Op::allReduce, type, INT64_MAX, 1, 8), std::nullopt);
}

}  // namespace
}  // namespace rankscope::collector
