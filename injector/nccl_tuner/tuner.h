// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "injector/nccl_tuner/chained_tuner.h"
#include "injector/nccl_tuner/tuner_table.h"

namespace rankscope::injector {

/// What the plugin knows of one communicator. NCCL creates it, asks it from the thread that enqueues, and destroys it.
/// What it answers depends on the rows and the question alone, so that all ranks of the communicator choose alike.
class Tuner {
  public:
    void open(int version, uint64_t commId, size_t ranks, size_t nodes, tuner_abi::Logger logger, void* nvlDomains,
              void* constants) noexcept;
    void choose(const TunerQuestion& question) noexcept;
    void changeChunk(int function, size_t bytes, int algorithm, int protocol, int channels,
                     size_t* chunkBytes) const noexcept {
        m_chained.changeChunk(function, bytes, algorithm, protocol, channels, chunkBytes);
    }
    void close() noexcept { m_chained.close(); }

  private:
    const TunerRow* match(const TunerQuestion& question) const noexcept;
    bool force(const TunerRow& row, const TunerQuestion& question) const noexcept;
    bool nameChoice(const TunerRow& row, const TunerQuestion& question) const noexcept;
    void tellOnce(const TunerRow& row, const TunerQuestion& question, bool forced) noexcept;

    tuner_abi::Logger m_logger = nullptr;
    const TunerTable* m_table = nullptr;
    int64_t m_ranks = 0, m_nodes = 0;
    uint16_t m_rows[kMaxTunerRows] = {};  ///< indices of the rows for communicators of this size
    size_t m_count = 0;
    std::atomic<uint8_t> m_told[kMaxTunerRows] = {};
    ChainedTuner m_chained;
};

}  // namespace rankscope::injector
