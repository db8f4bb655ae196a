// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "injector/capture_format/kernel_summary.h"
#include "injector/capture_format/records.h"
#include "injector/light/kernel_names.h"
#include "injector/record/ended_kernel.h"
#include "injector/record/mutex.h"

namespace rankscope::injector {

/// Gathers kernels until the step in which they began is over, and makes a KernelSummaryRecord of it, with what it
/// takes to read that in front. Bounded in memory and bytes: see kStepBytes. Thread-safe; never on the hot path. All
/// zero at first, so that a process that never uses it has no pages of it.
class KernelSummaries {
  public:
    /// Takes whole records, `count` of them.
    struct Target {
        void (*write)(void* to, const void* records, size_t bytes, uint32_t count, int64_t lastNs) noexcept;
        void* to;
    };

    /// Of one summary with its block's head, and what keys and names may take for each summary besides, which is saved
    /// up: together 2 kB a step. Before the first, names may take kFirstNameBytes: once, some hundred names.
    static constexpr size_t kStepBytes = 1728;
    static constexpr size_t kNameBytesPerStep = 256;
    static constexpr size_t kFirstNameBytes = 64u << 10;

    constexpr KernelSummaries() = default;
    KernelSummaries(const KernelSummaries&) = delete;
    KernelSummaries& operator=(const KernelSummaries&) = delete;

    void begin(const Target& target) noexcept;
    bool isOn() const noexcept { return m_isOn.load(std::memory_order_acquire); }

    void take(const EndedKernel* kernels, size_t count) noexcept;
    /// One thread at a time; waits for no lock. Ascending: what is earlier than the one before is passed over.
    void stepBegins(int64_t ns) noexcept;
    /// All steps that begin until then were told. As stepBegins().
    void hostIsAt(int64_t ns) noexcept { m_hostNs.store(ns, std::memory_order_relaxed); }
    /// Tells the steps whose kernels have all come, as far as can be known: the device has begun with the third one
    /// behind.
    void settle() noexcept;
    /// Tells everything.
    void finish() noexcept;

    void afterForkInChild() noexcept;

  private:
    static constexpr uint32_t kNone = UINT32_MAX;
    static constexpr uint32_t kKernels = 1u << 18;  // some seconds of a busy device
    static constexpr uint32_t kSteps = 1024;
    static constexpr uint32_t kPending = 1u << 14;  // steps of a process between two looks at its rings
    static constexpr uint32_t kKeys = 4096;
    static constexpr uint32_t kKeyPlaces = 2 * kKeys;
    static constexpr uint32_t kGroups = 1u << 15;
    static constexpr size_t kMostItems = 512;  // the smallest item has three bytes
    /// Of a job that marks no steps.
    static constexpr int64_t kUnmarkedNs = 1'000'000'000;

    struct Kernel {
        int64_t startNs;
        int64_t durNs;
        uint32_t name;  // KernelNames, 0: it has no number
        uint32_t gridBlocks;
        uint16_t blockThreads;
        uint16_t stream;
        uint32_t next;  // of its step, or of the free ones
    };
    struct Step {
        int64_t startNs;
        uint32_t first;
    };
    struct Key {
        uint32_t name;
        uint32_t gridBlocks;
        uint16_t blockThreads;
        uint16_t stream;
        uint32_t usedIn;  // the last summary with it
    };
    /// The kernels of one key in m_order.
    struct Group {
        uint32_t begin;
        uint32_t count;
        int64_t totalNs;
    };
    /// Time in which kernels run, as far as it was told: of those that ran on, up to when.
    struct Coverage {
        int64_t untilNs = 0;
        int64_t sumNs = 0;
        void begin(int64_t startNs, int64_t endNs) noexcept;
        void add(int64_t startNs, int64_t kernelEndNs, int64_t endNs) noexcept;
    };

    Step& step(uint32_t index) noexcept { return m_steps[(m_firstStep + index) % kSteps]; }
    Step& lastStep() noexcept { return step(m_stepCount - 1); }
    void takePending() noexcept;
    void takeOne(const EndedKernel& ended) noexcept;
    void openStep(int64_t ns) noexcept;
    void cutUnmarked(int64_t untilNs) noexcept;
    uint32_t takeRoom() noexcept;
    void settleLocked() noexcept;
    void tellFirst(int64_t endNs) noexcept;
    uint32_t gather(const Step& step) noexcept;
    void cover(uint32_t count, capture::KernelSummaryRecord& record) noexcept;
    uint32_t groupKernels(uint32_t count, capture::KernelSummaryRecord& record) noexcept;
    size_t choose(uint32_t groups, capture::KernelSummaryRecord& record) noexcept;
    capture::KernelItem itemOf(const Group& group) const noexcept;
    uint32_t numberOf(const Kernel& kernel) noexcept;
    uint32_t define(const Kernel& kernel) noexcept;
    void placeKeys() noexcept;
    void append(capture::KernelSummaryRecord& record, size_t items) noexcept;
    void flush() noexcept;

    std::atomic<bool> m_isOn{false};
    Target m_target{};
    std::atomic<uint32_t> m_pendingBegin{0}, m_pendingEnd{0};
    int64_t m_pending[kPending] = {};
    std::atomic<int64_t> m_hostNs{0};

    Mutex m_mutex;  // of all below; the target's comes behind it
    bool m_isMarked = false;
    uint32_t m_device = 0;   // + 1; 0: none yet
    int64_t m_oldestNs = 0;  // of the kernels' starts
    int64_t m_newestNs = 0;
    int64_t m_newestEndNs = 0;
    int64_t m_toldUntilNs = 0;
    uint32_t m_used = 0;  // of m_kernels, ever
    uint32_t m_free = 0;  // + 1; 0: none
    uint32_t m_firstStep = 0, m_stepCount = 0;
    uint32_t m_lateCount = 0;
    int64_t m_lateNs = 0;
    size_t m_nameBytes = 0;  // that keys and names may take
    uint32_t m_summary = 0;
    uint32_t m_keyCount = 0;
    Coverage m_compute, m_nccl, m_busy;
    Step m_steps[kSteps] = {};
    uint16_t m_keyPlaces[kKeyPlaces] = {};
    Key m_keys[kKeys + 1] = {};  // by number
    bool m_isNameTold[KernelNames::kNames + 1] = {};
    Group m_groups[kGroups] = {};
    capture::KernelItem m_items[kMostItems] = {};
    uint32_t m_order[kKernels] = {};
    Kernel m_kernels[kKernels] = {};
    KernelNames m_names;
    size_t m_outBytes = 0;
    uint32_t m_outRecords = 0;
    alignas(8) uint8_t m_out[kFirstNameBytes + kStepBytes] = {};
};

}  // namespace rankscope::injector
