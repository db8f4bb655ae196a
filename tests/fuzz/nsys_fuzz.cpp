// SPDX-License-Identifier: Apache-2.0
// Rows of an export of Nsight Systems: a small whole one with some values changed.
#include "collector/importers/import_error.h"
#include "collector/importers/readers.h"
#include "tests/fuzz/row_edits.h"

using namespace rankscope;

namespace {

// Two kernels with their launches, a range and a call of NCCL with its payload; tables and columns of schema 3.x.
std::filesystem::path wholeReport() {
    const auto file = fuzz::folder() / "whole.sqlite";
    store::Database(file.string(), store::OpenMode::create)
        .execute(
            "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
            "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel_v7000'), (3, 'ncclAllReduce');"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT, "
            "correlationId INT, globalPid INT, demangledName INT, shortName INT, gridX INT, gridY INT, gridZ INT, "
            "blockX INT, blockY INT, blockZ INT, graphNodeId INT);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 1100, 0, 1, 7, 1, 281483566645248, 1, 1, 8, 2, 1, "
            "128, 1, 1, NULL), (1200, 1300, 0, 1, 7, 2, 281483566645248, 1, 1, 8, 2, 1, 128, 1, 1, NULL);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId "
            "INT);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (950, 960, 281483566645748, 1, 2), (1150, 1160, "
            "281483566645748, 2, 2);"
            "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, globalTid INT, domainId INT, text TEXT, "
            "textId INT, color INT, category INT, binaryData TEXT);"
            "INSERT INTO NVTX_EVENTS VALUES (900, 1400, 59, 281483566645748, 0, 'step', NULL, NULL, NULL, NULL), (940, "
            "945, 59, 281483566645748, 1, NULL, 3, NULL, NULL, x'010000000000000003000000000000001400000000000000"
            "3400000000000000070000000000000000100000000000000000000000');"
            "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INT, schemaId INT, idx INT, type INT, name TEXT, "
            "offset INT);"
            "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 2, 0, 18, 'NCCL communicator ID', NULL), (1, 2, 1, 5, "
            "'No. of ranks', 8), (1, 2, 2, 5, 'Rank', 12), (1, 3, 0, 18, 'NCCL communicator ID', NULL), (1, 3, 1, 22, "
            "'Message size [bytes]', 8), (1, 3, 2, 5, 'Peer rank', 16);"
            "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT, systemClockNs INT);"
            "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1779782330000000000, 5000);"
            "CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT, totalMemory INT, smCount INT, computeMajor INT, "
            "computeMinor INT, cuDevice INT);"
            "INSERT INTO TARGET_INFO_GPU VALUES (7, 'NVIDIA H100 80GB HBM3', 80000000000, 132, 9, 0, 0)");
    return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    static const fuzz::RowEdits edits(wholeReport());
    const auto file = fuzz::folder() / "report.sqlite";
    edits.apply({data, bytes}, file);
    try {
        collector::kNsysReader.read(file, {}, [](const collector::FileRank&) {});
    } catch (const collector::ImportError&) {
    } catch (const store::Error&) {
    }
    return 0;
}
