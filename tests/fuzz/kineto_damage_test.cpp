// SPDX-License-Identifier: Apache-2.0
// A small trace with every byte damaged, one way after the other: the importer never crashes, hangs or invents, and
// what it could not read is told.
#include <gtest/gtest.h>

#include <string>

#include "collector/importers/import_error.h"
#include "collector/importers/kineto_file.h"
#include "tests/unit/collector/importers/trace_files.h"

namespace rankscope::collector {
namespace {

using tests::kernelEvent;

constexpr size_t kKernels = 4;

std::string smallTrace() {
    std::string events;
    for (size_t i = 0; i < kKernels; ++i) {
        events += kernelEvent("ncclKernel_AllReduce_RING_LL_Sum_float(x)", std::to_string(100 + i * 50) + ".125", "20",
                              static_cast<int>(i), R"(, "grid": [8, 1, 1])") +
                  ",\n";
    }
    return R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2, "pg_config": [{"pg_name": "0", "ranks": [0, 1]}]},
  "traceEvents": [)" +
           events +
           tests::annotationEvent("nccl:all_reduce \\u00fc", "90", "20",
                                  R"("Input Dims": [[2, 3]], "Input type": ["float"])") +
           ",\n" + tests::launchEvent("95", 0) + "],\n  \"baseTimeNanoseconds\": 1700000000000000000}\n";
}

/// Kernels read; 0 when the file was refused. Each kernel that was read is one that was written.
size_t importedKernels(const tests::TraceFolder& folder, const std::string& text, bool& complete) {
    complete = false;
    try {
        size_t kernels = 0;
        readKinetoFile(folder.write("damaged.json", text), {}, [&](const FileRank& file) {
            complete = file.losses.all().empty();
            kernels = file.recording.kernels.size();
        });
        return kernels;
    } catch (const ImportError&) {
        return 0;
    }
}

TEST(KinetoDamage, AFileCutAtAnyByteGivesWhatStandsInFrontOfTheCut) {
    const tests::TraceFolder folder;
    const std::string whole = smallTrace();
    bool complete = false;
    ASSERT_EQ(importedKernels(folder, whole, complete), kKernels);
    ASSERT_TRUE(complete);
    const size_t documentEnd = whole.rfind('}');
    size_t before = 0;
    for (size_t cut = 0; cut < whole.size(); ++cut) {
        const size_t kernels = importedKernels(folder, whole.substr(0, cut), complete);
        ASSERT_GE(kernels, before) << "a longer file gave less at " << cut;
        ASSERT_LE(kernels, kKernels);
        ASSERT_EQ(complete, cut > documentEnd) << "cut at " << cut;
        before = kernels;
    }
    EXPECT_EQ(before, kKernels);
}

TEST(KinetoDamage, AnyByteChangedNeverCrashesAndCostsLittle) {
    const tests::TraceFolder folder;
    const std::string whole = smallTrace();
    const size_t firstEvent = whole.find("{\"ph\"");
    const size_t lastKernelEnd = whole.find("nccl:all_reduce");
    bool complete = false;
    for (size_t at = 0; at < whole.size(); ++at) {
        for (const unsigned flip : {0x02u, 0x20u, 0xffu}) {
            std::string damaged = whole;
            damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ flip);
            const size_t kernels = importedKernels(folder, damaged, complete);
            ASSERT_LE(kernels, kKernels) << "byte " << at;
            // Damage inside one event, but for its edges, costs that event and no other.
            if (at > firstEvent + 1 && at < lastKernelEnd && whole[at] != '{' && whole[at] != '}' && whole[at] != ',') {
                ASSERT_GE(kernels + 1, kKernels) << "byte " << at << " ^ " << flip;
            }
        }
    }
}

TEST(KinetoDamage, StructuralBytesPutAnywhereNeverCrash) {
    const tests::TraceFolder folder;
    const std::string whole = smallTrace();
    bool complete = false;
    for (size_t at = 0; at < whole.size(); at += 2) {
        for (const char insert : {'"', '{', '}', '[', ']', ',', '\\', '\0'}) {
            std::string damaged = whole;
            damaged.insert(at, 1, insert);
            ASSERT_LE(importedKernels(folder, damaged, complete), kKernels + 1) << "byte " << at;
        }
    }
}

TEST(KinetoDamage, AGzipStreamCutAtAnyByteNeverCrashes) {
    const tests::TraceFolder folder;
    std::ifstream in(folder.writeGzip("whole.json.gz", smallTrace()), std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(in)), {});
    bool complete = false;
    for (size_t cut = 0; cut < whole.size(); ++cut) {
        ASSERT_LE(importedKernels(folder, whole.substr(0, cut), complete), kKernels);
        ASSERT_FALSE(complete) << "cut at " << cut;
    }
    for (size_t at = 0; at < whole.size(); ++at) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(~damaged[at]);
        ASSERT_LE(importedKernels(folder, damaged, complete), kKernels);
    }
}

}  // namespace
}  // namespace rankscope::collector
