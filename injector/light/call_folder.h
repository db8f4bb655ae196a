// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "injector/capture_format/fold_encoder.h"
#include "injector/capture_format/records.h"
#include "injector/light/call_sampler.h"
#include "injector/light/step_marks.h"
#include "injector/light/step_pace.h"

namespace rankscope::injector {

/// Joins what the hooks, NCCL's profiler plugin and its proxy say of one call, and turns calls and step marks into
/// FoldRecords, in the order in which they came. A call waits for its time on the device; at most kCalls wait. Static
/// memory, consumer only.
class CallFolder {
  public:
    /// `factorE9`: what a step may take of the median, times 1e9.
    struct SlowSteps {
        uint64_t* counter = nullptr;  ///< read by other processes; null: nobody wants to know
        int64_t factorE9 = 0;
    };
    /// Whoever wants to know when the steps of the process begin; `call` may be null.
    struct StepBegins {
        void (*call)(void* to, int64_t ns) noexcept = nullptr;
        void* to = nullptr;
    };
    /// Of a call whose communicator is known no more.
    using CountLoss = void (*)(void* to, capture::LossKind kind, uint64_t count, int64_t timeNs) noexcept;
    using Write = void (*)(void* to, const void* records, size_t bytes, uint32_t count, int64_t lastNs) noexcept;

    constexpr CallFolder() = default;
    CallFolder(const CallFolder&) = delete;
    CallFolder& operator=(const CallFolder&) = delete;

    /// `write` takes each FoldRecord when it is full, and at flush(), and CallGapRecords.
    /// `countLoss` is called with `lossesTo`.
    void begin(Write write, void* to, const SlowSteps& slowSteps, const StepBegins& stepBegins, CountLoss countLoss,
               void* lossesTo) noexcept;

    /// A record of a ring. What is no call, mark, communicator or text is passed over.
    void take(uint32_t thread, const uint8_t* record) noexcept;
    /// What began before `ns` waits for nothing more but for its time on the device, and before `inAnyCaseNs` for
    /// nothing.
    void settleUntil(int64_t ns, int64_t inAnyCaseNs) noexcept;
    /// What begins at `ns` or later is told in another place, too: no gap is told across that.
    void noteEdge(int64_t ns) noexcept;
    /// Writes what was folded so far.
    void flush() noexcept;

    const StepMarks& marks() const noexcept { return m_marks; }

    void clear() noexcept;

  private:
    static constexpr uint32_t kCalls = 8192;         // several steps of what the host may run ahead of its device
    static constexpr uint32_t kPlaces = 2 * kCalls;  // half of them are free, so that few calls share one
    static constexpr uint32_t kEarly = 64;           // one for each thread that is inside a call, as a rule
    static constexpr uint32_t kAhead = 2048;         // operations that end while all rings are read once
    static constexpr uint32_t kAheadPlaces = 2 * kAhead;
    static constexpr uint32_t kThreads = 512;  // as many as there are rings (RingFile::kMaxRings)
    static constexpr uint32_t kCommunicators = 4096;
    static constexpr uint32_t kGaps = 512;  // kinds of call in steps that are left out, one after the other
    /// The network may tell of a call after the device has: so long it is waited for.
    static constexpr int64_t kSettleNs = 500'000'000;

    struct Waiting {
        capture::FoldItem item;
        int64_t endNs = 0;          // of the call on the host
        int64_t pluginStartNs = 0;  // what the proxy names it by
        uint32_t pluginSeq = 0;
    };
    struct CommunicatorHash {
        uint64_t hash = 0;
        uint32_t index = 0;
    };
    /// What the plugin told before the hook: it is called inside.
    struct Early {
        capture::PluginCollRecord record{};
        bool used = false;
    };

    /// What device and network told of an operation whose own record is in a ring that is read later: rings are read
    /// one after the other, and NCCL's proxy has another one than the thread that called.
    struct Ahead {
        uint64_t commHash = 0;
        uint32_t seq = 0;
        bool used = false;
        int64_t parentStartNs = 0;  // 0: the network told nothing
        capture::FoldItem told;
    };

    Waiting& at(uint64_t position) noexcept { return m_waiting[position % kCalls]; }
    Waiting& append() noexcept;
    void takeCall(uint32_t thread, const capture::NcclCallRecord& record) noexcept;
    void takePlugin(const capture::PluginCollRecord& record) noexcept;
    void takeChannel(const capture::PluginChannelRecord& record) noexcept;
    void takeProxyOp(const capture::PluginProxyOpRecord& record) noexcept;
    void takeMark(uint32_t thread, const capture::NvtxRecord& record) noexcept;
    void noteStep(uint32_t thread, int64_t ns) noexcept;
    void attach(uint64_t position, const capture::PluginCollRecord& record) noexcept;
    uint64_t hashOf(const capture::NcclCallRecord& record) noexcept;
    Waiting* find(uint64_t commHash, uint32_t seq) noexcept;
    Ahead* findAhead(uint64_t commHash, uint32_t seq) noexcept;
    Ahead& aheadOf(uint64_t commHash, uint32_t seq) noexcept;
    static void addSpan(const capture::PluginChannelRecord& record, capture::FoldItem& item) noexcept;
    static void addSend(const capture::PluginProxyOpRecord& record, capture::FoldItem& item) noexcept;
    bool isWhole(const Waiting& waiting) const noexcept;
    bool isSettled(const Waiting& waiting) const noexcept;
    void settle() noexcept;
    void emitFirst() noexcept;
    void emit(Waiting& waiting) noexcept;
    void leaveOut(const capture::FoldItem& item) noexcept;
    void flushGaps() noexcept;
    void flushFold() noexcept;

    Write m_write = nullptr;
    void* m_to = nullptr;
    CountLoss m_countLoss = nullptr;
    void* m_lossesTo = nullptr;
    uint64_t m_first = 0;  // positions of waiting calls and marks: [m_first, m_end)
    uint64_t m_end = 0;
    uint64_t m_bare = 0;  // no call before it may still get the plugin's word
    int64_t m_newestNs = 0;
    uint32_t m_lastGroup[kThreads] = {};             // by thread
    CommunicatorHash m_hashes[kCommunicators] = {};  // by index: a later one takes the place of one 4096 before it
    uint64_t m_places[kPlaces] = {};                 // position + 1 by the plugin's name of the call
    uint32_t m_nextAhead = 0;
    uint32_t m_aheadPlaces[kAheadPlaces] = {};  // index + 1 in m_ahead, by the plugin's name of the call
    Ahead m_ahead[kAhead] = {};
    uint32_t m_nextEarly = 0;
    Early m_early[kEarly] = {};
    Waiting m_waiting[kCalls] = {};
    StepMarks m_marks;
    StepPace m_pace;
    CallSampler m_sampler;
    int64_t m_edgeNs = 0;
    bool m_gapsAreBefore = false;  // the edge
    uint32_t m_gapCount = 0;
    capture::CallGapRecord m_gaps[kGaps] = {};
    SlowSteps m_slowSteps;
    StepBegins m_stepBegins;
    capture::FoldEncoder m_encoder;
};

}  // namespace rankscope::injector
