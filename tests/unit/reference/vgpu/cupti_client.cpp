// SPDX-License-Identifier: Apache-2.0
// A plain CUPTI client, loaded by CUDA_INJECTION64_PATH: writes every record as a line of text to $VGPU_DUMP.<rank>.
// Process and thread ids are left out: they are all that may differ between two runs.
#include <cupti.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr unsigned long long kEpochNs = 1767225600000000000ull;

FILE* output() {
    static FILE* file = [] {
        const char* rank = std::getenv("RANK");
        return std::fopen((std::string(std::getenv("VGPU_DUMP")) + "." + (rank ? rank : "none")).c_str(), "w");
    }();
    return file;
}

void requested(uint8_t** buffer, size_t* bytes, size_t* maxRecords) {
    *bytes = 1 << 16;  // small, so that buffers change hands often
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *bytes));
    *maxRecords = 0;
}

void print(const CUpti_Activity* record) {
    switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
            auto* k = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
            std::fprintf(output(), "kernel %llu %llu %u %u %u %llu %s\n",
                         static_cast<unsigned long long>(k->start) - kEpochNs,
                         static_cast<unsigned long long>(k->end - k->start), k->streamId, k->correlationId, k->graphId,
                         static_cast<unsigned long long>(k->graphNodeId), k->name);
            break;
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY: {
            auto* m = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
            std::fprintf(output(), "memcpy %llu %llu %u %u %llu %d %d\n",
                         static_cast<unsigned long long>(m->start) - kEpochNs,
                         static_cast<unsigned long long>(m->end - m->start), m->streamId, m->correlationId,
                         static_cast<unsigned long long>(m->bytes), m->srcKind, m->dstKind);
            break;
        }
        case CUPTI_ACTIVITY_KIND_MEMSET: {
            auto* m = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
            std::fprintf(output(), "memset %llu %llu %llu\n", static_cast<unsigned long long>(m->start) - kEpochNs,
                         static_cast<unsigned long long>(m->end - m->start), static_cast<unsigned long long>(m->bytes));
            break;
        }
        case CUPTI_ACTIVITY_KIND_RUNTIME:
        case CUPTI_ACTIVITY_KIND_DRIVER: {
            auto* a = reinterpret_cast<const CUpti_ActivityAPI*>(record);
            std::fprintf(output(), "api %llu %llu %d %u %u\n", static_cast<unsigned long long>(a->start) - kEpochNs,
                         static_cast<unsigned long long>(a->end - a->start), static_cast<int>(a->kind), a->cbid,
                         a->correlationId);
            break;
        }
        case CUPTI_ACTIVITY_KIND_MEMORY2: {
            auto* m = reinterpret_cast<const CUpti_ActivityMemory4*>(record);
            std::fprintf(output(), "memory %d %d %llu %u\n", static_cast<int>(m->memoryOperationType),
                         static_cast<int>(m->memoryKind), static_cast<unsigned long long>(m->bytes), m->correlationId);
            break;
        }
        default:
            std::fprintf(output(), "kind %d\n", static_cast<int>(record->kind));
    }
}

void completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t validBytes) {
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, validBytes, &record) == CUPTI_SUCCESS) print(record);
    std::fflush(output());
    std::free(buffer);
}

}  // namespace

extern "C" int InitializeInjection() {
    cuptiActivityRegisterCallbacks(requested, completed);
    for (CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                    CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
                                    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_MEMORY2})
        cuptiActivityEnable(kind);
    std::atexit([] { cuptiActivityFlushAll(1); });
    return 1;
}
