// SPDX-License-Identifier: Apache-2.0
// The tables that NCCL looks up, one per version of its interface. They differ in what init and getCollInfo are handed.
#include <cstdlib>
#include <new>

#include "injector/export.h"
#include "injector/nccl_tuner/tuner.h"

/// Tells our own library from a user's tuner plugin.
RANKSCOPE_EXPORT const char rankscopeTuner[] = "rankscope tuner";

namespace rankscope::injector {
namespace {

using namespace tuner_abi;

/// Null without memory: the communicator then works as if there were no plugin.
Tuner* newTuner() noexcept {
    void* memory = std::calloc(1, sizeof(Tuner));
    return memory == nullptr ? nullptr : new (memory) Tuner;
}

int open(int version, void** context, uint64_t commId, size_t ranks, size_t nodes, Logger logger, void* nvlDomains,
         void* constants) noexcept {
    Tuner* tuner = newTuner();
    if (tuner != nullptr) tuner->open(version, commId, ranks, nodes, logger, nvlDomains, constants);
    *context = tuner;
    return kSuccess;
}

template <int Version>
int initOld(size_t ranks, size_t nodes, Logger logger, void** context) noexcept {
    return open(Version, context, 0, ranks, nodes, logger, nullptr, nullptr);
}

template <int Version>
int init(void** context, uint64_t commId, size_t ranks, size_t nodes, Logger logger, void* nvlDomains,
         void* constants) noexcept {
    return open(Version, context, commId, ranks, nodes, logger, nvlDomains, constants);
}

int choose(void* context, const TunerQuestion& question) noexcept {
    if (context != nullptr) static_cast<Tuner*>(context)->choose(question);
    return kSuccess;
}

TunerQuestion question(int function, size_t bytes, int pipeOps, float** table, int algorithms, int protocols,
                       int registered, int* channels) noexcept {
    TunerQuestion q;
    q.function = function;
    q.bytes = bytes;
    q.pipeOps = pipeOps;
    q.registered = registered;
    q.table = table;
    q.algorithms = algorithms;
    q.protocols = protocols;
    q.channels = channels;
    return q;
}

int getCollInfo(void* context, int function, size_t bytes, int pipeOps, float** table, int algorithms, int protocols,
                int registered, int* channels) noexcept {
    if (table == nullptr) return kSuccess;
    return choose(context, question(function, bytes, pipeOps, table, algorithms, protocols, registered, channels));
}

int getCollInfoV3(void* context, int function, size_t bytes, int pipeOps, float** table, int algorithms, int protocols,
                  int* channels) noexcept {
    return getCollInfo(context, function, bytes, pipeOps, table, algorithms, protocols, 0, channels);
}

int getCollInfoV2(void* context, int function, size_t bytes, int collNet, int nvls, int pipeOps, int* algorithm,
                  int* protocol, int* channels) noexcept {
    TunerQuestion q = question(function, bytes, pipeOps, nullptr, 0, 0, 0, channels);
    q.collNet = collNet;
    q.nvls = nvls;
    q.algorithm = algorithm;
    q.protocol = protocol;
    return choose(context, q);
}

int getChunkSize(void* context, int function, size_t bytes, int algorithm, int protocol, int channels,
                 size_t* chunkBytes) noexcept {
    if (context != nullptr)
        static_cast<const Tuner*>(context)->changeChunk(function, bytes, algorithm, protocol, channels, chunkBytes);
    return kSuccess;
}

int finalize(void* context) noexcept {
    if (context == nullptr) return kSuccess;
    static_cast<Tuner*>(context)->close();
    std::free(context);
    return kSuccess;
}

}  // namespace

extern "C" {
RANKSCOPE_EXPORT const TunerV2 ncclTunerPlugin_v2;
RANKSCOPE_EXPORT const TunerV3 ncclTunerPlugin_v3;
RANKSCOPE_EXPORT const TunerV4 ncclTunerPlugin_v4;
RANKSCOPE_EXPORT const TunerV5 ncclTunerPlugin_v5;
RANKSCOPE_EXPORT const TunerV6 ncclTunerPlugin_v6;
RANKSCOPE_EXPORT const TunerV7 ncclTunerPlugin_v7;
const TunerV2 ncclTunerPlugin_v2 = {"Rankscope", initOld<2>, getCollInfoV2, finalize};
const TunerV3 ncclTunerPlugin_v3 = {"Rankscope", initOld<3>, getCollInfoV3, finalize};
const TunerV4 ncclTunerPlugin_v4 = {"Rankscope", initOld<4>, getCollInfo, finalize};
const TunerV5 ncclTunerPlugin_v5 = {"Rankscope", init<5>, getCollInfo, finalize};
const TunerV6 ncclTunerPlugin_v6 = {"Rankscope", init<6>, getCollInfo, finalize, getChunkSize};
const TunerV7 ncclTunerPlugin_v7 = {"Rankscope", init<7>, getCollInfo, finalize, getChunkSize};
}

}  // namespace rankscope::injector
