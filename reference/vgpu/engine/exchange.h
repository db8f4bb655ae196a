// SPDX-License-Identifier: Apache-2.0
// How the bytes of collectives and messages travel between processes: through slots in the arena, apart from virtual
// time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/vgpu/engine/arena.h"
#include "reference/vgpu/engine/reductions.h"

namespace rankscope::vgpu {

struct ByteRange {
    size_t offset, bytes;
};

/// The parts of a buffer of `bytes` that move: all of it with RANKSCOPE_VGPU_DATA=full or up to 64 KiB, else the first
/// and the last few KiB. `members`: with many ranks the windows of per-rank chunks shrink, so that a collective of P
/// ranks does not cost P² KiB.
std::vector<ByteRange> movedWindows(size_t bytes, size_t members = 1);

/// A data movement between ranks as one rank sees it.
struct ExchangeSpec {
    TransferKind kind = TransferKind::allReduce;
    uint32_t comm = 0, rank = 0, size = 1;
    uint64_t key = 0;
    uint64_t fingerprint = 0;  ///< what the members must agree on, else they never meet
    const void* send = nullptr;
    void* recv = nullptr;
    size_t chunkBytes = 0;  ///< per-rank chunk; the whole buffer where there are no chunks
    uint32_t root = 0, peer = 0;
    bool isSend = false;  ///< p2p
    Reduction reduction;
    void (*zero)(void* memory, size_t bytes) = nullptr;  ///< for what does not move of what arrives; null: it stays
};

class ExchangeTask {
  public:
    ExchangeTask(Arena& arena, const ExchangeSpec& spec) : m_arena(arena), m_spec(spec) {}
    /// Posts what this rank gives, takes what it gets. False while others have not posted yet: then the process's
    /// dataBell rings once they have.
    bool attempt();

  private:
    void ringReaders(uint64_t* slots);
    bool askForBell(Exchange& exchange);
    bool posts() const;
    bool reads() const;
    uint32_t posters() const;
    uint32_t readers() const;
    Exchange& find();
    uint64_t allocateSlot(size_t bytes);
    void post(Exchange& exchange);
    void reduce(Exchange& exchange);
    void read(Exchange& exchange);
    void release(Exchange& exchange);
    bool chunkedSend() const;
    uint64_t* slotsOf(const Exchange& exchange) const { return reinterpret_cast<uint64_t*>(at(exchange.slots)); }
    std::atomic_ref<uint32_t> bellFlag(uint64_t* slots, uint32_t rank) const;
    std::vector<ByteRange> windowsOf() const;
    void scatter(std::byte* to, const std::byte* from, const std::vector<ByteRange>& windows) const;
    std::byte* at(uint64_t offset) const { return reinterpret_cast<std::byte*>(&m_arena) + offset; }

    Arena& m_arena;
    ExchangeSpec m_spec;
    Exchange* m_exchange = nullptr;  ///< from the first attempt on, while this task still has something to do with it
    bool m_posted = false;
};

}  // namespace rankscope::vgpu
