// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/engine/exchange.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace rankscope::vgpu {
namespace {

constexpr size_t kWindowBytes = 4096;
// What is no larger moves whole: programs read such values back, for example the objects that frameworks pickle.
constexpr size_t kWholeBytes = 64 << 10;
constexpr size_t kSlotBytes =
    sizeof(uint64_t) + sizeof(uint32_t);  // of a member: where its contribution is, and whether it waits

bool movesEverything() {
    static const bool full = [] {
        const char* mode = std::getenv("RANKSCOPE_VGPU_DATA");
        return mode && std::strcmp(mode, "full") == 0;
    }();
    return full;
}

size_t totalBytes(const std::vector<ByteRange>& windows) {
    size_t bytes = 0;
    for (const ByteRange& window : windows) bytes += window.bytes;
    return bytes;
}

void gatherWindows(std::byte* to, const std::byte* from, const std::vector<ByteRange>& windows) {
    for (const ByteRange& window : windows) {
        std::memcpy(to, from + window.offset, window.bytes);
        to += window.bytes;
    }
}

void scatterWindows(std::byte* to, const std::byte* from, const std::vector<ByteRange>& windows) {
    for (const ByteRange& window : windows) {
        std::memmove(to + window.offset, from, window.bytes);
        from += window.bytes;
    }
}

// Slots are powers of two with a free list each; freed ones carry the next of their list in their first bytes.
int sizeClass(size_t bytes) {
    return std::max(6, static_cast<int>(std::bit_width(std::max<size_t>(bytes, 1) - 1)));
}

uint64_t allocate(Arena& arena, size_t bytes) {
    int order = sizeClass(bytes);
    auto* base = reinterpret_cast<std::byte*>(&arena);
    if (uint64_t offset = arena.dataFree[order]) {
        std::memcpy(&arena.dataFree[order], base + offset, sizeof(uint64_t));
        return offset;
    }
    uint64_t size = uint64_t{1} << order;
    if (arena.dataUsed + size > kDataBytes) {
        std::fprintf(stderr, "rankscope virtual GPUs: the data of unfinished collectives exceeds 64 GiB\n");
        std::abort();
    }
    uint64_t offset = sizeof(Arena) + arena.dataUsed;
    arena.dataUsed += size;
    return offset;
}

void release(Arena& arena, uint64_t offset, size_t bytes) {
    int order = sizeClass(bytes);
    auto* base = reinterpret_cast<std::byte*>(&arena);
    std::memcpy(base + offset, &arena.dataFree[order], sizeof(uint64_t));
    arena.dataFree[order] = offset;
}

}  // namespace

std::vector<ByteRange> movedWindows(size_t bytes, size_t members) {
    size_t window = members <= 8 ? kWindowBytes : std::max<size_t>(256, kWindowBytes * 8 / members / 64 * 64);
    const size_t whole = kWholeBytes / kWindowBytes * window;
    if (movesEverything() || bytes <= whole) return {{0, bytes}};
    size_t tail = (bytes - window) / 64 * 64;  // keeps elements whole
    return {{0, window}, {tail, bytes - tail}};
}

bool ExchangeTask::posts() const {
    switch (m_spec.kind) {
        case TransferKind::broadcast:
        case TransferKind::scatter:
            return m_spec.rank == m_spec.root;
        case TransferKind::p2p:
            return m_spec.isSend;
        default:
            return true;
    }
}

bool ExchangeTask::reads() const {
    switch (m_spec.kind) {
        case TransferKind::reduce:
        case TransferKind::gather:
            return m_spec.rank == m_spec.root;
        case TransferKind::p2p:
            return !m_spec.isSend;
        default:
            return true;
    }
}

uint32_t ExchangeTask::posters() const {
    bool one = m_spec.kind == TransferKind::broadcast || m_spec.kind == TransferKind::scatter ||
               m_spec.kind == TransferKind::p2p;
    return one ? 1 : m_spec.size;
}

uint32_t ExchangeTask::readers() const {
    bool one =
        m_spec.kind == TransferKind::reduce || m_spec.kind == TransferKind::gather || m_spec.kind == TransferKind::p2p;
    return one ? 1 : m_spec.size;
}

std::vector<ByteRange> ExchangeTask::windowsOf() const {
    bool perRank = chunkedSend() || m_spec.kind == TransferKind::allGather || m_spec.kind == TransferKind::gather;
    return movedWindows(m_spec.chunkBytes, perRank ? m_spec.size : 1);
}

bool ExchangeTask::chunkedSend() const {
    return m_spec.kind == TransferKind::reduceScatter || m_spec.kind == TransferKind::allToAll ||
           m_spec.kind == TransferKind::scatter;
}

Exchange& ExchangeTask::find() {
    bool p2p = m_spec.kind == TransferKind::p2p;
    uint32_t src = p2p ? (m_spec.isSend ? m_spec.rank : m_spec.peer) : 0;
    uint32_t dst = p2p ? (m_spec.isSend ? m_spec.peer : m_spec.rank) : 0;
    uint32_t& head = m_arena.openExchanges[m_spec.comm][bucketOf(m_spec.key, src, dst)];
    for (uint32_t e = head; e != kNone; e = m_arena.exchanges[e].next) {
        Exchange& exchange = m_arena.exchanges[e];
        const bool agrees = exchange.fingerprint == m_spec.fingerprint && exchange.p2p == p2p;
        if (exchange.key == m_spec.key && agrees && exchange.src == src && exchange.dst == dst) return exchange;
    }
    uint32_t index = m_arena.freeExchange;
    if (index != kNone)
        m_arena.freeExchange = m_arena.exchanges[index].next;
    else if (m_arena.exchangeCount < kMaxExchanges)
        index = m_arena.exchangeCount++;
    else
        refuseMore("collectives and messages that wait for their members", kMaxExchanges);
    Exchange& exchange = m_arena.exchanges[index];
    new (&exchange) Exchange{};
    exchange.inUse = 1;
    exchange.comm = m_spec.comm;
    exchange.key = m_spec.key;
    exchange.fingerprint = m_spec.fingerprint;
    exchange.p2p = p2p;
    exchange.src = src;
    exchange.dst = dst;
    exchange.expectedPosts = posters();
    exchange.readersLeft = readers();
    exchange.slots = allocate(m_arena, m_spec.size * kSlotBytes);
    std::memset(at(exchange.slots), 0, m_spec.size * kSlotBytes);
    exchange.next = head;
    head = index;
    return exchange;
}

bool ExchangeTask::attempt() {
    if (!m_exchange) {
        SharedLock lock(m_arena.dataLock);
        m_exchange = &find();
    }
    Exchange& exchange = *m_exchange;
    if (posts() && !m_posted) {
        m_posted = true;
        post(exchange);
        if (exchange.posts.fetch_add(1, std::memory_order_acq_rel) + 1 == exchange.expectedPosts) {
            if (m_spec.kind == TransferKind::allReduce || m_spec.kind == TransferKind::reduce) reduce(exchange);
            uint64_t* slots = slotsOf(exchange);
            exchange.ready.store(1);
            ringReaders(slots);
        }
    }
    if (!reads()) return true;
    if (!exchange.ready.load(std::memory_order_acquire) && !askForBell(exchange)) return false;
    read(exchange);
    if (exchange.readersLeft.fetch_sub(1, std::memory_order_acq_rel) == 1) release(exchange);
    return true;
}

std::atomic_ref<uint32_t> ExchangeTask::bellFlag(uint64_t* slots, uint32_t rank) const {
    return std::atomic_ref<uint32_t>(reinterpret_cast<uint32_t*>(slots + m_spec.size)[rank]);
}

/// True if the exchange has become ready meanwhile. Flag and state are written and read in opposite orders here and by
/// who makes it ready.
bool ExchangeTask::askForBell(Exchange& exchange) {
    if (bellFlag(slotsOf(exchange), m_spec.rank).exchange(1)) return false;
    return exchange.ready.load() != 0;
}

/// The slots may become another exchange's meanwhile: then all readers have been here, and a bell that rings in vain
/// does no harm.
void ExchangeTask::ringReaders(uint64_t* slots) {
    const Member* members = m_arena.members + m_arena.comms[m_spec.comm].firstMember;
    auto ring = [&](uint32_t rank) {
        if (!bellFlag(slots, rank).load()) return;
        Process& reader = m_arena.processes[members[rank].process];
        reader.dataBell.fetch_add(1);
        // A process that runs looks by itself before it issues more or waits.
        if (reader.hostSleepers.load() && reader.dataSleepers.load()) futexWake(reader.dataBell);
    };
    if (m_spec.kind == TransferKind::p2p) return ring(m_spec.peer);
    for (uint32_t rank = 0; rank < m_spec.size; rank++)
        if (rank != m_spec.rank) ring(rank);
}

uint64_t ExchangeTask::allocateSlot(size_t bytes) {
    SharedLock lock(m_arena.dataLock);
    return allocate(m_arena, bytes);
}

void ExchangeTask::post(Exchange& exchange) {
    std::vector<ByteRange> windows = windowsOf();
    size_t each = totalBytes(windows);
    size_t chunks = chunkedSend() ? m_spec.size : 1;
    // The receiver of a message may ask for up to 7 bytes more (agreedLength of nccl_ops.cpp): they are zeros.
    const size_t whole = (each * chunks + 7) / 8 * 8;
    uint64_t slot = allocateSlot(whole);
    std::memset(at(slot) + each * chunks, 0, whole - each * chunks);
    for (size_t chunk = 0; chunk < chunks; chunk++)
        gatherWindows(at(slot) + chunk * each, static_cast<const std::byte*>(m_spec.send) + chunk * m_spec.chunkBytes,
                      windows);
    uint32_t member = m_spec.kind == TransferKind::p2p ? 0 : m_spec.rank;
    slotsOf(exchange)[member] = slot;
}

void ExchangeTask::reduce(Exchange& exchange) {
    size_t bytes = totalBytes(windowsOf());
    const uint64_t* slots = slotsOf(exchange);
    std::vector<const std::byte*> inputs;
    for (uint32_t member = 0; member < m_spec.size; member++) inputs.push_back(at(slots[member]));
    exchange.result = allocateSlot(bytes);
    reduceElements(m_spec.reduction, inputs.data(), inputs.size(), at(exchange.result), bytes);
}

/// Between the windows all members get zeros, so that what they make of them is equal: what one of them had there
/// before, the others had not.
void ExchangeTask::scatter(std::byte* to, const std::byte* from, const std::vector<ByteRange>& windows) const {
    scatterWindows(to, from, windows);
    if (!m_spec.zero || windows.size() < 2) return;
    const size_t begin = windows[0].offset + windows[0].bytes;
    m_spec.zero(to + begin, windows[1].offset - begin);
}

void ExchangeTask::read(Exchange& exchange) {
    std::vector<ByteRange> windows = windowsOf();
    size_t each = totalBytes(windows);
    const uint64_t* slots = slotsOf(exchange);
    auto* out = static_cast<std::byte*>(m_spec.recv);
    switch (m_spec.kind) {
        case TransferKind::allReduce:
        case TransferKind::reduce:
            return scatter(out, at(exchange.result), windows);
        case TransferKind::broadcast:
            return scatter(out, at(slots[m_spec.root]), windows);
        case TransferKind::p2p:
            return scatter(out, at(slots[0]), windows);
        case TransferKind::scatter:
            return scatter(out, at(slots[m_spec.root]) + m_spec.rank * each, windows);
        case TransferKind::allGather:
        case TransferKind::gather:
            for (uint32_t member = 0; member < m_spec.size; member++)
                scatter(out + member * m_spec.chunkBytes, at(slots[member]), windows);
            return;
        case TransferKind::allToAll:
            for (uint32_t member = 0; member < m_spec.size; member++)
                scatter(out + member * m_spec.chunkBytes, at(slots[member]) + m_spec.rank * each, windows);
            return;
        case TransferKind::reduceScatter: {
            std::vector<const std::byte*> inputs;
            for (uint32_t member = 0; member < m_spec.size; member++)
                inputs.push_back(at(slots[member]) + m_spec.rank * each);
            std::vector<std::byte> result(each);
            reduceElements(m_spec.reduction, inputs.data(), inputs.size(), result.data(), each);
            return scatter(out, result.data(), windows);
        }
    }
}

void ExchangeTask::release(Exchange& exchange) {
    SharedLock lock(m_arena.dataLock);
    auto index = static_cast<uint32_t>(&exchange - m_arena.exchanges);
    size_t each = totalBytes(windowsOf());
    const uint64_t* slots = slotsOf(exchange);
    for (uint32_t member = 0; member < m_spec.size; member++)
        if (slots[member]) vgpu::release(m_arena, slots[member], each * (chunkedSend() ? m_spec.size : 1));
    if (exchange.result) vgpu::release(m_arena, exchange.result, each);
    vgpu::release(m_arena, exchange.slots, m_spec.size * kSlotBytes);
    for (uint32_t* link = &m_arena.openExchanges[m_spec.comm][bucketOf(exchange.key, exchange.src, exchange.dst)];
         *link != kNone; link = &m_arena.exchanges[*link].next) {
        if (*link != index) continue;
        *link = exchange.next;
        break;
    }
    exchange.inUse = 0;
    exchange.next = m_arena.freeExchange;
    m_arena.freeExchange = index;
}

}  // namespace rankscope::vgpu
