// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/since_filter.h"

#include <algorithm>

namespace rankscope::capture {

bool SinceFilter::keeps(const FoldItem& item) {
    const bool isBefore = item.startNs < m_sinceNs;
    switch (item.key.kind) {
        case FoldKind::push:
            if (isBefore) m_folded[item.key.thread].push_back(item.startNs);
            return isBefore;
        case FoldKind::pop: {
            std::vector<int64_t>& open = m_folded[item.key.thread];
            if (!isBefore || open.empty()) return false;
            open.pop_back();
            return true;
        }
        case FoldKind::start:
            if (isBefore) m_starts.insert(item.rangeId);
            return isBefore;
        case FoldKind::end:
            return isBefore && m_starts.erase(item.rangeId) > 0;
        default:
            return isBefore;
    }
}

bool SinceFilter::isOpenInFold(uint32_t thread, int64_t startNs) const {
    const auto open = m_folded.find(thread);
    return open != m_folded.end() && std::ranges::any_of(open->second, [&](int64_t ns) {
               return ns >> kFoldUnitBits == startNs >> kFoldUnitBits;
           });
}

bool SinceFilter::keepsMark(const RecordView& view) {
    const auto record = view.as<NvtxRecord>();
    const bool isSince = record.timeNs >= m_sinceNs;
    std::vector<bool>& open = m_open[view.threadIndex];
    switch (view.type()) {
        case RecordType::nvtxPush:
            open.push_back(isSince || isOpenInFold(view.threadIndex, record.timeNs));
            return isSince;
        case RecordType::nvtxPop: {
            if (open.empty()) return false;
            const bool isTold = open.back() && isSince;
            open.pop_back();
            return isTold;
        }
        case RecordType::nvtxStart:
            if (isSince) m_starts.insert(record.rangeId);
            return isSince;
        case RecordType::nvtxEnd:
            return isSince && m_starts.erase(record.rangeId) > 0;
        default:
            return isSince;
    }
}

bool SinceFilter::keeps(const RecordView& view) {
    switch (view.type()) {
        case RecordType::openRanges: {
            const auto record = view.as<OpenRangesRecord>();
            std::vector<bool>& open = m_open[record.threadIndex];
            const uint32_t depth = std::min(record.depth, 64u);
            open.assign(depth, false);
            for (uint32_t i = 0; i < depth; ++i) open[depth - 1 - i] = (record.kept >> i & 1) != 0;
            return false;
        }
        case RecordType::callGap:
            return view.as<CallGapRecord>().untilNs < m_sinceNs;
        case RecordType::ncclCall:
            return view.as<NcclCallRecord>().startNs >= m_sinceNs;
        case RecordType::ncclGroup:
            return view.as<NcclGroupRecord>().startNs >= m_sinceNs;
        case RecordType::pluginColl:
        case RecordType::pluginP2p:
            return view.as<PluginCollRecord>().startNs >= m_sinceNs;
        case RecordType::pluginProxyOp:
            return view.as<PluginProxyOpRecord>().parentStartNs >= m_sinceNs;
        case RecordType::ncclPayload:
            return view.as<NcclPayloadRecord>().timeNs >= m_sinceNs;
        case RecordType::nvtxPush:
        case RecordType::nvtxPop:
        case RecordType::nvtxMark:
        case RecordType::nvtxStart:
        case RecordType::nvtxEnd:
            return keepsMark(view);
        default:
            return true;  // spans belong to the plugin's records, which are asked; what else there is, is not folded
    }
}

}  // namespace rankscope::capture
