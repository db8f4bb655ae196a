// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/nccl_tuner/tuner_abi.h"

namespace rankscope::injector {

/// What NCCL asks about one collective, in the terms of every version: v2 has no table and takes a name instead.
struct TunerQuestion {
    int function = 0;
    size_t bytes = 0;
    int pipeOps = 1;
    int registered = 0;
    float** table = nullptr;  ///< null with v2
    int algorithms = 0, protocols = 0;
    int* channels = nullptr;
    int collNet = 0, nvls = 0;                      ///< v2 only
    int *algorithm = nullptr, *protocol = nullptr;  ///< v2 only

    /// Entry of the table; null where NCCL has no such combination.
    float* entry(int atAlgorithm, int atProtocol) const noexcept {
        if (table == nullptr || atAlgorithm >= algorithms || atProtocol >= protocols) return nullptr;
        float* at = reinterpret_cast<float*>(table) + atAlgorithm * protocols + atProtocol;
        return *at >= 0 ? at : nullptr;
    }
};

/// The tuner NCCL would have loaded but for us, in the newest version that it speaks and this NCCL (`version`) asks
/// for: the one the user named in NCCL_TUNER_PLUGIN, else libnccl-tuner.so, else the tuner inside the network plugin.
/// It is asked where no row of ours matches.
class ChainedTuner {
  public:
    /// Loads it on the first call. Does nothing, for good, when there is none or its `init` fails.
    void open(int version, uint64_t commId, size_t ranks, size_t nodes, tuner_abi::Logger logger, void* nvlDomains,
              void* constants) noexcept;
    void ask(const TunerQuestion& question) const noexcept;
    void changeChunk(int function, size_t bytes, int algorithm, int protocol, int channels,
                     size_t* chunkBytes) const noexcept;
    void close() noexcept;

  private:
    void askV2(const TunerQuestion& question) const noexcept;

    int m_version = 0;  ///< 0: none
    void* m_context = nullptr;
};

}  // namespace rankscope::injector
