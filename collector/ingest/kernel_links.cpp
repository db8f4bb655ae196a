// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/kernel_links.h"

#include <algorithm>

#include "collector/ingest/communication_kernels.h"

namespace rankscope::collector {

KernelLinks::KernelLinks(const RawCapture& raw, const RankRecording& recording) : m_recording(recording) {
    for (const auto& record : raw.externalCorrelations)
        m_correlationsOfExternal.emplace_back(record.externalId, record.correlationId);
    std::sort(m_correlationsOfExternal.begin(), m_correlationsOfExternal.end());
    const bool needed = !raw.externalCorrelations.empty() || !raw.ncclPayloads.empty();
    for (size_t i = 0; needed && i < recording.kernels.size(); ++i) {
        if (recording.kernels[i].correlationId)
            m_kernelOfCorrelation.emplace_back(*recording.kernels[i].correlationId, static_cast<int64_t>(i));
    }
    std::sort(m_kernelOfCorrelation.begin(), m_kernelOfCorrelation.end());
    for (const store::ApiCall& call : recording.apiCalls) {
        const bool launches = call.kind == store::ApiKind::launch || call.kind == store::ApiKind::graphLaunch;
        if (!raw.ncclPayloads.empty() && launches && call.correlationId)
            m_launches[{call.threadId, call.startNs}] = *call.correlationId;
    }
    for (size_t i = 0; i < recording.streams.size(); ++i) {
        if (recording.streams[i].handle)
            m_streamOfHandle.emplace(*recording.streams[i].handle, static_cast<int32_t>(i));
    }
}

void KernelLinks::addKernelsOf(uint32_t correlationId, std::vector<int64_t>& kernels) const {
    auto kernel = std::lower_bound(m_kernelOfCorrelation.begin(), m_kernelOfCorrelation.end(),
                                   std::pair<uint32_t, int64_t>(correlationId, 0));
    for (; kernel != m_kernelOfCorrelation.end() && kernel->first == correlationId; ++kernel)
        kernels.push_back(kernel->second);
}

void KernelLinks::preferNccl(std::vector<int64_t>& kernels) const {
    const auto isNccl = [this](int64_t kernel) {
        return isCommunicationKernelName(m_recording.strings[m_recording.kernels[static_cast<size_t>(kernel)].nameId]);
    };
    if (std::any_of(kernels.begin(), kernels.end(), isNccl))
        std::erase_if(kernels, [&](int64_t kernel) { return !isNccl(kernel); });
    std::sort(kernels.begin(), kernels.end(), [this](int64_t a, int64_t b) {
        const auto& rows = m_recording.kernels;
        return std::pair(rows[static_cast<size_t>(a)].startNs, a) < std::pair(rows[static_cast<size_t>(b)].startNs, b);
    });
}

std::vector<int64_t> KernelLinks::kernelsOfExternal(uint64_t externalId) const {
    std::vector<int64_t> kernels;
    auto entry = std::lower_bound(m_correlationsOfExternal.begin(), m_correlationsOfExternal.end(),
                                  std::pair<uint64_t, uint32_t>(externalId, 0));
    for (; entry != m_correlationsOfExternal.end() && entry->first == externalId; ++entry)
        addKernelsOf(entry->second, kernels);
    preferNccl(kernels);
    return kernels;
}

int64_t KernelLinks::kernelLaunchedWithin(int32_t thread, int64_t startNs, int64_t endNs) const {
    std::vector<int64_t> kernels;
    for (auto launch = m_launches.lower_bound({thread, startNs});
         launch != m_launches.end() && launch->first <= std::pair(thread, endNs); ++launch) {
        addKernelsOf(launch->second, kernels);
    }
    preferNccl(kernels);
    return kernels.empty() ? -1 : longest(kernels);
}

int64_t KernelLinks::longest(const std::vector<int64_t>& kernels) const {
    return *std::max_element(kernels.begin(), kernels.end(), [this](int64_t a, int64_t b) {
        return m_recording.kernels[static_cast<size_t>(a)].durNs < m_recording.kernels[static_cast<size_t>(b)].durNs;
    });
}

std::optional<int32_t> KernelLinks::streamOfHandle(uint64_t handle) const {
    const auto place = m_streamOfHandle.find(static_cast<int64_t>(handle));
    return place == m_streamOfHandle.end() ? std::nullopt : std::optional(place->second);
}

}  // namespace rankscope::collector
