// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/nvtx_pairing.h"

#include <map>

namespace rankscope::collector {

std::vector<store::NvtxRange> pairNvtx(const RawCapture& raw, const ThreadOfRing& threads, int64_t& unpaired) {
    using capture::RecordType;
    std::vector<store::NvtxRange> ranges;
    std::map<std::pair<uint32_t, capture::StringId>, std::vector<size_t>> stacks;  // by thread and domain
    std::unordered_map<uint32_t, int32_t> depths;  // open ranges of a thread, all domains
    std::unordered_map<uint64_t, size_t> started;
    const auto close = [&](size_t index, int64_t endNs) {
        ranges[index].durNs = std::max<int64_t>(0, endNs - ranges[index].startNs);
    };
    for (const auto& [ring, record] : raw.nvtx) {
        store::NvtxRange range;
        const auto thread = threads.find(ring);
        if (thread != threads.end()) range.threadId = thread->second;
        range.startNs = record.timeNs;
        if (record.domain != 0) range.domainId = raw.text(record.domain);
        range.nameId = raw.text(record.name);
        if (record.color != 0) range.color = record.color;
        if (record.category != 0) range.category = record.category;
        if (record.head.aux != 0) range.payload = static_cast<int64_t>(record.payload);
        switch (record.head.type) {
            case RecordType::nvtxPush:
                range.depth = depths[ring]++;
                stacks[{ring, record.domain}].push_back(ranges.size());
                ranges.push_back(range);
                break;
            case RecordType::nvtxPop: {
                auto& stack = stacks[{ring, record.domain}];
                if (stack.empty()) {
                    ++unpaired;
                    break;
                }
                close(stack.back(), record.timeNs);
                stack.pop_back();
                --depths[ring];
                break;
            }
            case RecordType::nvtxStart:
                range.kind = store::NvtxKind::startEnd;
                started[record.rangeId] = ranges.size();
                ranges.push_back(range);
                break;
            case RecordType::nvtxEnd: {
                const auto place = started.find(record.rangeId);
                if (place == started.end()) {
                    ++unpaired;
                    break;
                }
                close(place->second, record.timeNs);
                started.erase(place);
                break;
            }
            default:
                range.kind = store::NvtxKind::mark;
                range.durNs = 0;
                ranges.push_back(range);
                break;
        }
    }
    return ranges;
}

}  // namespace rankscope::collector
