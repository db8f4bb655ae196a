// SPDX-License-Identifier: Apache-2.0
#include "injector/light/kernel_summaries.h"

#include <algorithm>
#include <cstring>

#include "injector/capture_format/record_traits.h"

namespace rankscope::injector {

using capture::cellsFor;
using capture::kCellBytes;
using capture::KernelItem;
using capture::KernelKeyRecord;
using capture::KernelSummaryRecord;
using capture::RecordType;

namespace {

/// The items of one record.
constexpr size_t kItemBytes = KernelSummaries::kStepBytes - sizeof(capture::BlockHeader) - sizeof(KernelSummaryRecord);
static_assert((kItemBytes + sizeof(KernelSummaryRecord)) % kCellBytes == 0);

/// Of what makes a key: where to look for it.
template <typename Key>
uint64_t placeOf(const Key& key) noexcept {
    return (key.name * 0x9e3779b97f4a7c15ull ^ key.gridBlocks * 0xe7037ed1a0b428dbull ^
            (uint64_t{key.blockThreads} << 16 | key.stream) * 0xa0761d6478bd642full) >>
           32;
}

template <typename Key, typename Other>
bool isSameKey(const Key& one, const Other& other) noexcept {
    return one.name == other.name && one.gridBlocks == other.gridBlocks && one.blockThreads == other.blockThreads &&
           one.stream == other.stream;
}

size_t nameRecordBytes(size_t bytes) noexcept {
    const size_t kept = bytes < capture::kMaxTextBytes ? bytes : capture::kMaxTextBytes;
    return cellsFor(sizeof(capture::StringRecord) + kept) * kCellBytes;
}

}  // namespace

void KernelSummaries::Coverage::begin(int64_t startNs, int64_t endNs) noexcept {
    sumNs = untilNs > startNs ? std::min(untilNs, endNs) - startNs : 0;
}

void KernelSummaries::Coverage::add(int64_t startNs, int64_t kernelEndNs, int64_t endNs) noexcept {
    const int64_t fromNs = std::max(startNs, untilNs);
    const int64_t toNs = std::min(kernelEndNs, endNs);
    if (toNs > fromNs) sumNs += toNs - fromNs;
    untilNs = std::max(untilNs, kernelEndNs);
}

void KernelSummaries::begin(const Target& target) noexcept {
    Lock lock(m_mutex);
    m_target = target;
    m_nameBytes = kFirstNameBytes;
    m_isOn.store(true, std::memory_order_release);
}

void KernelSummaries::stepBegins(int64_t ns) noexcept {
    const uint32_t end = m_pendingEnd.load(std::memory_order_relaxed);
    if (end - m_pendingBegin.load(std::memory_order_acquire) == kPending) return;  // this step is told with the last
    m_pending[end % kPending] = ns;
    m_pendingEnd.store(end + 1, std::memory_order_release);
}

void KernelSummaries::takePending() noexcept {
    uint32_t begin = m_pendingBegin.load(std::memory_order_relaxed);
    for (const uint32_t end = m_pendingEnd.load(std::memory_order_acquire); begin != end; ++begin) {
        m_isMarked = true;
        openStep(m_pending[begin % kPending]);
    }
    m_pendingBegin.store(begin, std::memory_order_release);
}

void KernelSummaries::openStep(int64_t ns) noexcept {
    // What ran before the first mark is told like a step: its kernels may come behind the mark, and are not late.
    if (m_stepCount == 0 && m_summary == 0 && ns > 0) openStep(0);
    if (m_stepCount != 0 && ns <= lastStep().startNs) return;
    if (m_stepCount == kSteps) tellFirst(step(1).startNs);
    Step* const before = m_stepCount == 0 ? nullptr : &lastStep();
    ++m_stepCount;
    Step& opened = lastStep();
    opened = {ns, kNone};
    if (before == nullptr) return;
    for (uint32_t* at = &before->first; *at != kNone;) {
        Kernel& kernel = m_kernels[*at];
        if (kernel.startNs < ns) {
            at = &kernel.next;
            continue;
        }
        const uint32_t moved = *at;
        *at = kernel.next;
        kernel.next = opened.first;
        opened.first = moved;
    }
}

/// Where the job has marked no step, seconds are told, as far as no mark can come any more.
void KernelSummaries::cutUnmarked(int64_t untilNs) noexcept {
    while (!m_isMarked && m_stepCount != 0) {
        const int64_t sinceNs = std::max(lastStep().startNs, m_oldestNs);
        const int64_t nextNs = sinceNs - sinceNs % kUnmarkedNs + kUnmarkedNs;
        if (nextNs > untilNs || nextNs > m_newestNs) return;
        openStep(nextNs);
    }
}

/// A place for a kernel: of those that were told, where no other is left.
uint32_t KernelSummaries::takeRoom() noexcept {
    if (m_free == 0 && m_used == kKernels) {
        cutUnmarked(m_newestNs);
        settleLocked();
    }
    while (m_free == 0 && m_used == kKernels) {
        if (m_stepCount == 1) openStep(m_newestNs + 1);  // a step of more kernels than there is room for: in parts
        if (m_stepCount == 1) break;
        tellFirst(step(1).startNs);
    }
    if (m_free == 0) return m_used < kKernels ? m_used++ : kNone;
    const uint32_t place = m_free - 1;
    m_free = m_kernels[place].next;
    return place;
}

void KernelSummaries::take(const EndedKernel* kernels, size_t count) noexcept {
    Lock lock(m_mutex);
    takePending();
    for (size_t i = 0; i < count; ++i) takeOne(kernels[i]);
}

void KernelSummaries::takeOne(const EndedKernel& ended) noexcept {
    const int64_t durNs = ended.endNs > ended.startNs ? ended.endNs - ended.startNs : 0;
    if (m_device == 0) m_device = ended.device + 1u;
    if (m_device != ended.device + 1u) m_device = capture::kSeveralDevices + 1u;
    if (m_stepCount == 0) openStep(0);
    const uint32_t place = takeRoom();
    if (place == kNone || ended.startNs < step(0).startNs) {
        ++m_lateCount;
        m_lateNs += durNs;
        if (place == kNone) return;
        m_kernels[place].next = m_free;
        m_free = place + 1;
        return;
    }
    if (m_oldestNs == 0 || ended.startNs < m_oldestNs) m_oldestNs = ended.startNs;
    m_newestNs = std::max(m_newestNs, ended.startNs);
    m_newestEndNs = std::max(m_newestEndNs, ended.endNs);
    uint32_t low = 0;
    for (uint32_t high = m_stepCount; high - low > 1;) {
        const uint32_t middle = low + (high - low) / 2;
        (step(middle).startNs <= ended.startNs ? low : high) = middle;
    }
    Step& owner = step(low);
    m_kernels[place] = {ended.startNs, durNs,      m_names.numberOf(ended.name), ended.gridBlocks, ended.blockThreads,
                        ended.stream,  owner.first};
    owner.first = place;
}

void KernelSummaries::settle() noexcept {
    if (!isOn()) return;
    Lock lock(m_mutex);
    takePending();
    settleLocked();
    flush();
}

void KernelSummaries::settleLocked() noexcept {
    cutUnmarked(m_hostNs.load(std::memory_order_relaxed) - kUnmarkedNs);
    constexpr uint32_t kBehind = 3;  // what is behind the step and the next two has begun
    while (m_stepCount > kBehind && m_newestNs >= step(kBehind).startNs) tellFirst(step(1).startNs);
}

void KernelSummaries::finish() noexcept {
    if (!isOn()) return;
    Lock lock(m_mutex);
    takePending();
    cutUnmarked(m_newestNs);
    while (m_stepCount != 0) tellFirst(m_stepCount > 1 ? step(1).startNs : std::max(m_newestEndNs, step(0).startNs));
    flush();
}

/// Places of the step's kernels in m_order; returns how many.
uint32_t KernelSummaries::gather(const Step& step) noexcept {
    uint32_t count = 0;
    for (uint32_t at = step.first; at != kNone; at = m_kernels[at].next) m_order[count++] = at;
    return count;
}

void KernelSummaries::cover(uint32_t count, KernelSummaryRecord& record) noexcept {
    std::sort(m_order, m_order + count,
              [this](uint32_t a, uint32_t b) { return m_kernels[a].startNs < m_kernels[b].startNs; });
    if (record.startNs == 0) record.startNs = m_kernels[m_order[0]].startNs;  // of the first one nobody told the begin
    for (Coverage* coverage : {&m_compute, &m_nccl, &m_busy}) coverage->begin(record.startNs, record.endNs);
    for (uint32_t i = 0; i < count; ++i) {
        const Kernel& kernel = m_kernels[m_order[i]];
        const int64_t endNs = kernel.startNs + kernel.durNs;
        const bool isNccl = kernel.name != 0 && m_names.isNccl(kernel.name);
        (isNccl ? m_nccl : m_compute).add(kernel.startNs, endNs, record.endNs);
        m_busy.add(kernel.startNs, endNs, record.endNs);
    }
    record.computeNs = m_compute.sumNs;
    record.ncclNs = m_nccl.sumNs;
    record.busyNs = m_busy.sumNs;
}

/// Groups, those that take most time first; returns how many. What is in none is counted among the others.
uint32_t KernelSummaries::groupKernels(uint32_t count, KernelSummaryRecord& record) noexcept {
    std::sort(m_order, m_order + count, [this](uint32_t a, uint32_t b) {
        const Kernel& one = m_kernels[a];
        const Kernel& other = m_kernels[b];
        if (one.name != other.name) return one.name < other.name;
        if (one.gridBlocks != other.gridBlocks) return one.gridBlocks < other.gridBlocks;
        if (one.blockThreads != other.blockThreads) return one.blockThreads < other.blockThreads;
        if (one.stream != other.stream) return one.stream < other.stream;
        return one.durNs < other.durNs;
    });
    uint32_t groups = 0;
    for (uint32_t begin = 0, end = 0; begin < count; begin = end) {
        Group group{begin, 0, 0};
        for (; end < count && isSameKey(m_kernels[m_order[begin]], m_kernels[m_order[end]]); ++end)
            group.totalNs += m_kernels[m_order[end]].durNs;
        group.count = end - begin;
        if (m_kernels[m_order[begin]].name != 0 && groups < kGroups) {
            m_groups[groups++] = group;
            continue;
        }
        ++record.otherKinds;
        record.otherCount += group.count;
        record.otherNs += group.totalNs;
    }
    std::sort(m_groups, m_groups + groups, [](const Group& a, const Group& b) {
        return a.totalNs != b.totalNs ? a.totalNs > b.totalNs : a.begin < b.begin;
    });
    return groups;
}

KernelItem KernelSummaries::itemOf(const Group& group) const noexcept {
    const auto durationAt = [&](uint32_t place) { return m_kernels[m_order[group.begin + place]].durNs; };
    const uint32_t last = group.count - 1;
    KernelItem item;
    item.count = group.count;
    item.totalNs = group.totalNs;
    item.tenthNs = durationAt(last / 10);
    item.medianNs = (durationAt(last / 2) + durationAt((last + 1) / 2)) / 2;
    item.ninthNs = durationAt(last - last / 10);
    item.longestNs = durationAt(last);
    return item;
}

void KernelSummaries::placeKeys() noexcept {
    std::memset(m_keyPlaces, 0, sizeof m_keyPlaces);
    for (uint32_t number = 1; number <= m_keyCount; ++number) {
        uint64_t at = placeOf(m_keys[number]);
        while (m_keyPlaces[at % kKeyPlaces] != 0) ++at;
        m_keyPlaces[at % kKeyPlaces] = static_cast<uint16_t>(number);
    }
}

/// 0: it has none, and may not get one.
uint32_t KernelSummaries::numberOf(const Kernel& kernel) noexcept {
    for (uint64_t at = placeOf(kernel); m_keyPlaces[at % kKeyPlaces] != 0; ++at)
        if (const uint32_t number = m_keyPlaces[at % kKeyPlaces]; isSameKey(m_keys[number], kernel)) return number;
    return define(kernel);
}

/// Writes the name, unless that was done, and the key; with all numbers in use it takes that of the key which was used
/// longest ago.
uint32_t KernelSummaries::define(const Kernel& kernel) noexcept {
    const size_t nameBytes = m_isNameTold[kernel.name] ? 0 : nameRecordBytes(m_names.bytes(kernel.name));
    const size_t bytes = nameBytes + sizeof(KernelKeyRecord);
    if (bytes > m_nameBytes) return 0;
    uint32_t number = m_keyCount + 1;
    if (m_keyCount == kKeys) {
        number = 1;
        for (uint32_t other = 2; other <= kKeys; ++other)
            if (m_keys[other].usedIn < m_keys[number].usedIn) number = other;
        if (m_keys[number].usedIn == m_summary) return 0;
    } else {
        ++m_keyCount;
    }
    m_nameBytes -= bytes;
    m_keys[number] = {kernel.name, kernel.gridBlocks, kernel.blockThreads, kernel.stream, m_summary};
    placeKeys();
    uint8_t* into = m_out + m_outBytes;
    std::memset(into, 0, bytes);
    if (nameBytes != 0) {
        const size_t length = m_names.bytes(kernel.name);
        const size_t kept = length < capture::kMaxTextBytes ? length : capture::kMaxTextBytes;
        capture::StringRecord record{};
        record.head = {RecordType::string, static_cast<uint8_t>(nameBytes / kCellBytes), static_cast<uint16_t>(kept)};
        record.fullBytes = static_cast<uint32_t>(length);
        record.id = m_names.id(kernel.name);
        std::memcpy(into, &record, sizeof record);
        std::memcpy(into + sizeof record, m_names.text(kernel.name), kept);
        m_isNameTold[kernel.name] = true;
        ++m_outRecords;
    }
    KernelKeyRecord record{};
    record.head = {RecordType::kernelKey, 1, kernel.stream};
    record.number = number;
    record.name = m_names.id(kernel.name);
    record.gridBlocks = kernel.gridBlocks;
    record.blockThreads = kernel.blockThreads;
    record.flags = m_names.isNccl(kernel.name) ? 1 : 0;
    std::memcpy(into + nameBytes, &record, sizeof record);
    ++m_outRecords;
    m_outBytes += bytes;
    return number;
}

/// As many items as there is room for, into m_items by number; returns how many. The others are counted.
size_t KernelSummaries::choose(uint32_t groups, KernelSummaryRecord& record) noexcept {
    size_t items = 0, bytes = 0;
    for (uint32_t i = 0; i < groups; ++i) {
        const Group& group = m_groups[i];
        KernelItem item = itemOf(group);
        uint8_t scratch[capture::kMostKernelItemBytes];
        static_assert(kKeys < 1u << 14, "the difference of two numbers takes two bytes at most, and here one");
        item.number = 1;
        const size_t needed = capture::putKernelItem(scratch, 0, item) + 1;
        if (items < kMostItems && bytes + needed <= kItemBytes)
            item.number = numberOf(m_kernels[m_order[group.begin]]);
        else
            item.number = 0;
        if (item.number == 0) {
            ++record.otherKinds;
            record.otherCount += group.count;
            record.otherNs += group.totalNs;
            continue;
        }
        m_keys[item.number].usedIn = m_summary;
        bytes += needed;
        m_items[items++] = item;
    }
    std::sort(m_items, m_items + items, [](const KernelItem& a, const KernelItem& b) { return a.number < b.number; });
    return items;
}

void KernelSummaries::append(KernelSummaryRecord& record, size_t items) noexcept {
    uint8_t* const into = m_out + m_outBytes;
    std::memset(into, 0, kStepBytes);
    size_t used = 0;
    for (size_t i = 0; i < items; ++i)
        used += capture::putKernelItem(into + sizeof record + used, i == 0 ? 0 : m_items[i - 1].number, m_items[i]);
    const size_t cells = cellsFor(sizeof record + used);
    record.head = {RecordType::kernelSummary, static_cast<uint8_t>(cells), static_cast<uint16_t>(m_device - 1)};
    record.bytes = static_cast<uint32_t>(used);
    record.items = static_cast<uint32_t>(items);
    std::memcpy(into, &record, sizeof record);
    m_outBytes += cells * kCellBytes;
    ++m_outRecords;
}

void KernelSummaries::flush() noexcept {
    if (m_outBytes != 0) m_target.write(m_target.to, m_out, m_outBytes, m_outRecords, m_toldUntilNs);
    m_outBytes = 0;
    m_outRecords = 0;
}

/// The first step ends at `endNs`.
void KernelSummaries::tellFirst(int64_t endNs) noexcept {
    const uint32_t count = gather(step(0));
    // Before the first kernel, or the first mark, there is nothing to tell.
    if (count != 0 || (step(0).startNs != 0 && m_device != 0)) {
        // What a summary takes at most: kFirstNameBytes of keys and names, and kStepBytes.
        if (m_outBytes != 0 && m_outBytes + m_nameBytes + kStepBytes + kNameBytesPerStep > sizeof m_out) flush();
        m_nameBytes = std::min(m_nameBytes + kNameBytesPerStep, kFirstNameBytes);
        ++m_summary;
        KernelSummaryRecord record{};
        record.startNs = step(0).startNs;
        record.endNs = endNs;
        record.otherCount = record.lateCount = m_lateCount;
        record.otherNs = m_lateNs;
        m_lateCount = 0;
        m_lateNs = 0;
        cover(count, record);
        append(record, choose(groupKernels(count, record), record));
        m_toldUntilNs = endNs;
    }
    for (uint32_t i = 0; i < count; ++i) {
        m_kernels[m_order[i]].next = m_free;
        m_free = m_order[i] + 1;
    }
    m_firstStep = (m_firstStep + 1) % kSteps;
    --m_stepCount;
}

void KernelSummaries::afterForkInChild() noexcept {
    if (!isOn()) return;
    m_isOn.store(false);
    m_pendingBegin.store(0);
    m_pendingEnd.store(0);
    m_mutex.renew();
    m_isMarked = false;
    m_device = m_used = m_free = m_firstStep = m_stepCount = m_lateCount = m_summary = m_keyCount = 0;
    m_oldestNs = m_newestNs = m_newestEndNs = m_toldUntilNs = m_lateNs = 0;
    m_hostNs.store(0);
    m_compute = m_nccl = m_busy = {};
    m_nameBytes = 0;
    std::memset(m_keyPlaces, 0, sizeof m_keyPlaces);
    std::memset(m_isNameTold, 0, sizeof m_isNameTold);
    m_names.clear();
    m_outBytes = 0;
    m_outRecords = 0;
}

}  // namespace rankscope::injector
