// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/api_call.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "reference/vgpu/device/activity.h"
#include "reference/vgpu/device/context.h"
#include "reference/vgpu/device/framework_library.h"
#include "reference/vgpu/device/profiler_clock.h"
#include "reference/vgpu/device/subscriber.h"

namespace rankscope::vgpu {
namespace {

LocalProcess& enter() {
    injectOnce();
    loadFrameworkLibrary();
    return LocalProcess::instance();
}

[[gnu::tls_model("initial-exec")]] thread_local uint32_t t_depth = 0;

}  // namespace

InsideCall::InsideCall() {
    t_depth++;
}
InsideCall::~InsideCall() {
    t_depth--;
}
bool isInsideCall() {
    return t_depth != 0;
}

void injectOnce() {
    static std::once_flag once;
    static thread_local bool inside = false;  // the injected library may itself call the runtime
    if (inside) return;
    const InsideCall call;
    inside = true;
    std::call_once(once, [] {
        const char* path = std::getenv("CUDA_INJECTION64_PATH");
        if (!path || !*path) return;
        void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (!library) {
            std::fprintf(stderr, "rankscope virtual GPUs: CUDA_INJECTION64_PATH: %s\n", dlerror());
            return;
        }
        if (void* symbol = dlsym(library, "InitializeInjection")) reinterpret_cast<int (*)()>(symbol)();
    });
    inside = false;
}

cudaError_t& lastError() {
    static thread_local cudaError_t error = cudaSuccess;
    return error;
}

ApiCall::ApiCall(CUpti_CallbackDomain domain, CUpti_CallbackId id, const char* name, int64_t costNs, const void* params,
                 const char* symbol, Manner manner)
    : m_process(enter()),
      m_thread(manner == Manner::asks ? m_process.askingClock() : m_process.clock()),
      m_isObserved(manner == Manner::asks && LocalProcess::observes(m_thread)),
      m_domain(domain),
      m_id(id),
      m_name(name),
      m_costNs(manner == Manner::asks && LocalProcess::onlyAsks(m_thread) ? 0 : costNs),
      m_startNs(m_thread.ns),
      m_params(params),
      m_symbol(symbol),
      m_correlation(m_isObserved ? 0 : nextCorrelation()),
      m_callback(!m_isObserved && callbackWanted(domain, id)) {
    if (m_isObserved) return;
    ProfilerClock::instance().mark(m_thread);
    if (m_callback) notify(CUPTI_API_ENTER);
    recordExternalCorrelation(m_correlation);
}

ApiCall::~ApiCall() {
    if (m_isObserved) return;
    m_thread.ns += m_costNs;
    if (m_callback) notify(CUPTI_API_EXIT);
    if (apiWanted(m_domain, m_id)) {
        CUpti_ActivityAPI record{};
        record.kind =
            m_domain == CUPTI_CB_DOMAIN_RUNTIME_API ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
        record.cbid = m_id;
        record.start = static_cast<uint64_t>(m_process.stamp(m_startNs));
        record.end = static_cast<uint64_t>(m_process.stamp(m_thread.ns));
        record.processId = static_cast<uint32_t>(m_process.pid());
        record.threadId = static_cast<uint32_t>(m_thread.tid);
        record.correlationId = m_correlation;
        record.returnValue = static_cast<uint32_t>(m_result);
        appendRecord(&record, sizeof record);
    }
    ProfilerClock::instance().mark(m_thread);
    m_process.publish(m_thread);
    deliverBuffers(false);
    ProfilerClock::instance().keepPace();
}

cudaError_t ApiCall::end(cudaError_t result) {
    m_result = result;
    if (result != cudaSuccess && result != cudaErrorNotReady) lastError() = result;
    return result;
}

void ApiCall::notify(CUpti_ApiCallbackSite site) {
    CUpti_CallbackData data{};
    data.callbackSite = site;
    data.functionName = m_name;
    data.functionParams = m_params;
    data.functionReturnValue = &m_result;
    data.symbolName = m_symbol;
    data.context = contextOf(m_thread.device);
    data.contextUid = static_cast<uint32_t>(m_thread.device) + 1;
    data.correlationData = &m_correlationData;
    data.correlationId = m_correlation;
    notifySubscriber(m_domain, m_id, &data);
}

void ApiCall::recordSynchronization(CUpti_ActivitySynchronizationType type, uint32_t streamId, uint32_t eventId,
                                    int64_t startNs) {
    if (!activityWanted(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) return;
    CUpti_ActivitySynchronization2 record{};
    record.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    record.type = type;
    record.start = static_cast<uint64_t>(m_process.stamp(startNs));
    record.end = static_cast<uint64_t>(m_process.stamp(m_thread.ns));
    record.correlationId = m_correlation;
    record.contextId = static_cast<uint32_t>(m_thread.device) + 1;
    record.streamId = streamId;
    record.cudaEventId = eventId;
    appendRecord(&record, sizeof record);
}

}  // namespace rankscope::vgpu
