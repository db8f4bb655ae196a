// SPDX-License-Identifier: Apache-2.0
// One call of the application into the runtime or driver API: advances the host clock and tells CUPTI's clients.
#pragma once

#include "reference/vgpu/device/local_process.h"
#include "reference/vgpu/engine/public_api.h"

namespace rankscope::vgpu {

/// While one lives, the calling thread is inside a call of ours: what it starts, profilers called back start.
class InsideCall {
  public:
    InsideCall();
    ~InsideCall();
    InsideCall(const InsideCall&) = delete;
    InsideCall& operator=(const InsideCall&) = delete;
};
bool isInsideCall();

/// Whether a call issues work or waits, or only asks: threads that do nothing but ask are observers.
enum class Manner : uint8_t { acts, asks };

class ApiCall {
  public:
    /// `costNs`: host time the call itself takes; waiting comes on top. `params` and `symbol` are shown to the
    /// subscriber.
    ApiCall(CUpti_CallbackDomain domain, CUpti_CallbackId id, const char* name, int64_t costNs,
            const void* params = nullptr, const char* symbol = nullptr, Manner manner = Manner::acts);
    ~ApiCall();
    ApiCall(const ApiCall&) = delete;
    ApiCall& operator=(const ApiCall&) = delete;

    uint32_t correlation() const { return m_correlation; }
    ThreadClock& clock() { return m_thread; }
    int64_t startNs() const { return m_startNs; }
    LocalProcess& process() { return m_process; }
    /// The calling thread only looks on: the call costs nothing and leaves no record.
    bool isObserved() const { return m_isObserved; }
    cudaError_t end(cudaError_t result);
    /// Of the driver API, which keeps no last error.
    CUresult end(CUresult result) {
        m_result = result;
        return result;
    }
    /// A record of what the call waited for.
    void recordSynchronization(CUpti_ActivitySynchronizationType type, uint32_t streamId, uint32_t eventId,
                               int64_t startNs);

  private:
    void notify(CUpti_ApiCallbackSite site);

    InsideCall m_inside;
    LocalProcess& m_process;
    ThreadClock& m_thread;
    const bool m_isObserved;
    CUpti_CallbackDomain m_domain;
    CUpti_CallbackId m_id;
    const char* m_name;
    int64_t m_costNs, m_startNs;
    const void* m_params;
    const char* m_symbol;
    uint32_t m_correlation;
    uint64_t m_correlationData = 0;
    int m_result = 0;
    bool m_callback;
};

/// Loads the library named by CUDA_INJECTION64_PATH, once per process, as the driver does when it comes up.
void injectOnce();

/// The last error of the calling thread, as cudaGetLastError sees it.
cudaError_t& lastError();

}  // namespace rankscope::vgpu

#define RANKSCOPE_RUNTIME_CALL(function, cbid, costNs, ...)                              \
    ApiCall call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_##cbid, function, \
                 costNs __VA_OPT__(, ) __VA_ARGS__)
#define RANKSCOPE_DRIVER_CALL(function, cbid, costNs) \
    ApiCall call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_##cbid, function, costNs)

#define RANKSCOPE_RUNTIME_QUESTION(function, cbid, costNs)                                                         \
    ApiCall call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_##cbid, function, costNs, nullptr, nullptr, \
                 Manner::asks)
#define RANKSCOPE_DRIVER_QUESTION(function, cbid, costNs)                                                        \
    ApiCall call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_##cbid, function, costNs, nullptr, nullptr, \
                 Manner::asks)
