// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "collector/ingest/raw_capture.h"

namespace rankscope::collector {

/// Finds the kernels a call launched. Both arguments must outlive it; kernels and API calls must not change meanwhile.
class KernelLinks {
  public:
    KernelLinks(const RawCapture& raw, const RankRecording& recording);

    /// Kernels launched while an external correlation id was pushed, by start. NCCL kernels only, when there are any
    /// among them.
    std::vector<int64_t> kernelsOfExternal(uint64_t externalId) const;
    /// An NCCL kernel launched by a call of this thread inside [startNs, endNs]; -1 when there is none.
    int64_t kernelLaunchedWithin(int32_t thread, int64_t startNs, int64_t endNs) const;
    int64_t longest(const std::vector<int64_t>& kernels) const;
    /// Local stream of a cudaStream_t, where CUPTI told one; the default stream's handle 0 is none.
    std::optional<int32_t> streamOfHandle(uint64_t handle) const;

    /// Appends the kernels that the call with this correlation id launched.
    void addKernelsOf(uint32_t correlationId, std::vector<int64_t>& kernels) const;

  private:
    void preferNccl(std::vector<int64_t>& kernels) const;

    const RankRecording& m_recording;
    std::vector<std::pair<uint64_t, uint32_t>> m_correlationsOfExternal;
    std::vector<std::pair<uint32_t, int64_t>> m_kernelOfCorrelation;
    std::map<std::pair<int32_t, int64_t>, uint32_t> m_launches;  // by thread and start
    std::map<int64_t, int32_t> m_streamOfHandle;
};

}  // namespace rankscope::collector
