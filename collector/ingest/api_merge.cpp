// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/api_merge.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>

#include "collector/ingest/api_kind.h"
#include "collector/ingest/cupti_call_names.h"

namespace rankscope::collector {
namespace {

using store::ApiCall;
using store::ApiKind;

constexpr uint32_t kDriverDomain = 1;

/// Names and kinds of calls by number, looked up once each.
class CallNames {
  public:
    explicit CallNames(LocalStrings& strings) : m_strings(strings) {}

    std::pair<int32_t, ApiKind> ofCupti(uint32_t domain, uint32_t id) {
        return known({domain, id},
                     [&] { return domain == kDriverDomain ? cuptiDriverCallName(id) : cuptiRuntimeCallName(id); });
    }
    std::pair<int32_t, ApiKind> ofHook(uint16_t api) {
        return known({0, api}, [&] { return std::string(hookedCallName(static_cast<capture::CudaApi>(api))); });
    }

  private:
    template <typename MakeName>
    std::pair<int32_t, ApiKind> known(std::pair<uint32_t, uint32_t> key, MakeName makeName) {
        const auto place = m_known.find(key);
        if (place != m_known.end()) return place->second;
        const std::string name = makeName();
        return m_known[key] = {m_strings.intern(name), apiKindOf(name)};
    }

    LocalStrings& m_strings;
    std::map<std::pair<uint32_t, uint32_t>, std::pair<int32_t, ApiKind>> m_known;
};

std::vector<ApiCall> cuptiCalls(const RawCapture& raw, CallNames& names,
                                std::unordered_map<int64_t, int32_t>& threadOfTid, RankRecording& recording) {
    std::vector<uint32_t> runtimeIds;
    for (const auto& record : raw.cuptiApis) {
        if (record.domain != kDriverDomain) runtimeIds.push_back(record.correlationId);
    }
    std::sort(runtimeIds.begin(), runtimeIds.end());
    std::vector<ApiCall> calls;
    calls.reserve(raw.cuptiApis.size());
    for (const auto& record : raw.cuptiApis) {
        const bool driver = record.domain == kDriverDomain;
        if (driver && std::binary_search(runtimeIds.begin(), runtimeIds.end(), record.correlationId)) continue;
        const auto [thread, isNew] =
            threadOfTid.try_emplace(record.tid, static_cast<int32_t>(recording.threads.size()));
        if (isNew) recording.threads.push_back({record.tid, {}});
        const auto [nameId, kind] = names.ofCupti(record.domain, record.head.aux);
        calls.push_back({0,
                         0,
                         thread->second,
                         record.startNs,
                         capture::durationNs(record),
                         nameId,
                         kind,
                         driver ? store::ApiSource::cuptiDriver : store::ApiSource::cuptiRuntime,
                         record.correlationId,
                         {}});
    }
    return calls;
}

std::vector<ApiCall> hookedCalls(const RawCapture& raw, const ThreadOfRing& threads, CallNames& names) {
    std::vector<ApiCall> calls;
    calls.reserve(raw.apiCalls.size());
    for (const auto& [ring, record] : raw.apiCalls) {
        const auto thread = threads.find(ring);
        if (thread == threads.end()) continue;
        const auto [nameId, kind] = names.ofHook(record.head.aux);
        calls.push_back({0,
                         0,
                         thread->second,
                         record.startNs,
                         record.endNs - record.startNs,
                         nameId,
                         kind,
                         store::ApiSource::hook,
                         {},
                         static_cast<int64_t>(record.argument)});
    }
    return calls;
}

void sortByThread(std::vector<ApiCall>& calls) {
    const auto less = [](const ApiCall& a, const ApiCall& b) {
        return std::tie(a.threadId, a.startNs) < std::tie(b.threadId, b.startNs);
    };
    if (!std::is_sorted(calls.begin(), calls.end(), less)) std::stable_sort(calls.begin(), calls.end(), less);
}

/// Walks both lists thread by thread. A hooked call takes the call of its kind that it shares most time with: its own
/// is inside of it, but for what the stamps of CUPTI and of the hooks differ by (some 0.1 us, seen on an H100).
void fold(std::vector<ApiCall>& seenByCupti, const std::vector<ApiCall>& hooked, std::vector<ApiCall>& unseen) {
    const auto endOf = [](const ApiCall& call) { return call.startNs + call.durNs; };
    size_t next = 0;
    for (const ApiCall& hook : hooked) {
        const auto isOver = [&](const ApiCall& call) {
            return std::tuple(call.threadId, endOf(call)) < std::tuple(hook.threadId, hook.startNs);
        };
        while (next < seenByCupti.size() && isOver(seenByCupti[next])) ++next;
        size_t found = seenByCupti.size();
        int64_t mostNs = -1;
        for (size_t i = next; i < seenByCupti.size(); ++i) {
            const ApiCall& call = seenByCupti[i];
            if (call.threadId != hook.threadId || call.startNs > endOf(hook)) break;
            const int64_t sharedNs = std::min(endOf(call), endOf(hook)) - std::max(call.startNs, hook.startNs);
            if (call.kind != hook.kind || sharedNs <= mostNs) continue;
            // Calls that only touch are two calls, but for one that took no time (virtual clocks).
            if (sharedNs == 0 && (call.startNs < hook.startNs || endOf(call) > endOf(hook))) continue;
            mostNs = sharedNs;
            found = i;
        }
        if (found < seenByCupti.size()) {
            seenByCupti[found].argument = hook.argument;
            next = found + 1;
        } else {
            unseen.push_back(hook);
        }
    }
}

/// What a call allocated, as its AllocationRecord says: pushed on the call's thread when it had ended.
struct Allocated {
    int32_t thread;
    int64_t timeNs;
    uint64_t bytes, address;
};

std::vector<Allocated> allocatedOf(const RawCapture& raw, const ThreadOfRing& threads) {
    std::vector<Allocated> allocated;
    for (const auto& [ring, record] : raw.allocations) {
        const auto thread = threads.find(ring);
        if (thread == threads.end() || record.bytes == 0)
            continue;  // of a call that frees: the call itself has the address
        allocated.push_back({thread->second, record.timeNs, record.bytes, record.address});
    }
    std::ranges::stable_sort(allocated, {}, [](const Allocated& a) { return std::tuple(a.thread, a.timeNs); });
    return allocated;
}

/// What happens to an address: it is given out, or given back by the allocation row `row`.
struct AddressUse {
    int64_t timeNs;
    bool frees;
    uint64_t address;
    int64_t bytes;
    size_t row;
};

/// A call that frees names an address; its bytes are those that the address was given out with.
void addFreedBytes(std::vector<AddressUse> uses, std::vector<store::Allocation>& rows) {
    std::ranges::stable_sort(uses, {}, [](const AddressUse& use) { return std::tuple(use.timeNs, use.frees); });
    std::unordered_map<uint64_t, int64_t> given;
    for (const AddressUse& use : uses) {
        if (!use.frees) {
            given[use.address] = use.bytes;
        } else if (const auto found = given.find(use.address); found != given.end()) {
            rows[use.row].bytes = found->second;
            given.erase(found);
        }
    }
}

void addAllocations(const RawCapture& raw, const ThreadOfRing& threads, const std::vector<ApiCall>& hooked,
                    RankRecording& recording) {
    const std::vector<Allocated> allocated = allocatedOf(raw, threads);
    std::vector<AddressUse> uses;
    size_t next = 0;
    for (size_t i = 0; i < hooked.size(); ++i) {
        const ApiCall& call = hooked[i];
        if (call.kind != ApiKind::allocate && call.kind != ApiKind::free) continue;
        const bool frees = call.kind == ApiKind::free;
        const size_t index = recording.allocations.size();
        store::Allocation row{0, 0, call.threadId, call.startNs, call.durNs, frees, {}, call.nameId};
        if (frees) {
            uses.push_back({call.startNs, true, static_cast<uint64_t>(call.argument.value_or(0)), 0, index});
            recording.allocations.push_back(row);
            continue;
        }
        row.bytes = call.argument;
        while (next < allocated.size() &&
               std::tuple(allocated[next].thread, allocated[next].timeNs) < std::tuple(call.threadId, call.startNs))
            ++next;
        // The record comes behind its call and in front of the thread's next one.
        const bool hasNext = i + 1 < hooked.size() && hooked[i + 1].threadId == call.threadId;
        const int64_t untilNs = hasNext ? std::max(call.startNs + call.durNs, hooked[i + 1].startNs - 1) : INT64_MAX;
        if (next < allocated.size() && allocated[next].thread == call.threadId && allocated[next].timeNs <= untilNs) {
            const Allocated& is = allocated[next++];
            row.bytes = static_cast<int64_t>(is.bytes);
            if (is.address == 0)
                recording.failedAllocations.push_back({0, 0, is.timeNs, *row.bytes, recording.strings[call.nameId]});
            else
                uses.push_back({is.timeNs, false, is.address, *row.bytes, index});
            if (is.address == 0) row.bytes = 0;
        }
        recording.allocations.push_back(row);
    }
    addFreedBytes(std::move(uses), recording.allocations);
}

}  // namespace

void mergeApiCalls(const RawCapture& raw, const ThreadOfRing& threads,
                   std::unordered_map<int64_t, int32_t>& threadOfTid, RankRecording& recording) {
    CallNames names(recording.strings);
    std::vector<ApiCall> seenByCupti = cuptiCalls(raw, names, threadOfTid, recording);
    std::vector<ApiCall> hooked = hookedCalls(raw, threads, names);
    sortByThread(seenByCupti);
    sortByThread(hooked);
    addAllocations(raw, threads, hooked, recording);
    std::vector<ApiCall> unseen;
    fold(seenByCupti, hooked, unseen);
    recording.apiCalls = std::move(seenByCupti);
    recording.apiCalls.insert(recording.apiCalls.end(), unseen.begin(), unseen.end());
}

}  // namespace rankscope::collector
