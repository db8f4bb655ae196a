// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/subscriber.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

namespace rankscope::vgpu {
namespace {

struct Subscriber {
    std::mutex mutex;
    std::atomic<CUpti_CallbackFunc> callback{nullptr};
    void* userData = nullptr;
    std::string name;
    std::atomic<bool> domains[CUPTI_CB_DOMAIN_SIZE]{};
    std::atomic<bool> hasRules[CUPTI_CB_DOMAIN_SIZE]{};
    std::set<uint32_t> on[CUPTI_CB_DOMAIN_SIZE], off[CUPTI_CB_DOMAIN_SIZE];
};

Subscriber* const g_subscriber = new Subscriber;

const CUpti_SubscriberHandle kHandle = reinterpret_cast<CUpti_SubscriberHandle>(g_subscriber);

CUptiResult subscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* userData, const char* name) {
    if (!handle) return CUPTI_ERROR_INVALID_PARAMETER;
    if (g_subscriber->callback) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    g_subscriber->userData = userData;
    g_subscriber->name = name ? name : "";
    g_subscriber->callback = callback;
    *handle = kHandle;
    return CUPTI_SUCCESS;
}

bool validDomain(CUpti_CallbackDomain domain) {
    return domain > CUPTI_CB_DOMAIN_INVALID && domain < CUPTI_CB_DOMAIN_SIZE;
}

}  // namespace

bool callbackWanted(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
    Subscriber& subscriber = *g_subscriber;
    if (!subscriber.callback) return false;
    bool wanted = subscriber.domains[domain];
    if (!subscriber.hasRules[domain]) return wanted;
    std::lock_guard guard(subscriber.mutex);
    if (subscriber.off[domain].contains(id)) return false;
    return wanted || subscriber.on[domain].contains(id);
}

void notifySubscriber(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
    if (CUpti_CallbackFunc callback = g_subscriber->callback) callback(g_subscriber->userData, domain, id, data);
}

}  // namespace rankscope::vgpu

using namespace rankscope::vgpu;

extern "C" {

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* userData) {
    std::lock_guard guard(g_subscriber->mutex);
    return subscribe(handle, callback, userData, "");
}

CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* userData,
                                       CUpti_SubscriberParams* params) {
    std::lock_guard guard(g_subscriber->mutex);
    if (g_subscriber->callback && params && params->oldSubscriberName && params->oldSubscriberSize)
        std::snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s", g_subscriber->name.c_str());
    return subscribe(handle, callback, userData, params ? params->subscriberName : nullptr);
}

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle handle) {
    if (handle != kHandle) return CUPTI_ERROR_INVALID_PARAMETER;
    std::lock_guard guard(g_subscriber->mutex);
    g_subscriber->callback = nullptr;
    for (int domain = 0; domain < CUPTI_CB_DOMAIN_SIZE; domain++) {
        g_subscriber->domains[domain] = g_subscriber->hasRules[domain] = false;
        g_subscriber->on[domain].clear();
        g_subscriber->off[domain].clear();
    }
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain) {
    if (handle != kHandle || !validDomain(domain)) return CUPTI_ERROR_INVALID_PARAMETER;
    std::lock_guard guard(g_subscriber->mutex);
    g_subscriber->domains[domain] = enable != 0;
    g_subscriber->hasRules[domain] = false;
    g_subscriber->on[domain].clear();
    g_subscriber->off[domain].clear();
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle handle) {
    if (handle != kHandle) return CUPTI_ERROR_INVALID_PARAMETER;
    for (int domain = 1; domain < CUPTI_CB_DOMAIN_SIZE; domain++)
        cuptiEnableDomain(enable, handle, static_cast<CUpti_CallbackDomain>(domain));
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                                         CUpti_CallbackId id) {
    if (handle != kHandle || !validDomain(domain)) return CUPTI_ERROR_INVALID_PARAMETER;
    std::lock_guard guard(g_subscriber->mutex);
    (enable ? g_subscriber->on : g_subscriber->off)[domain].insert(id);
    (enable ? g_subscriber->off : g_subscriber->on)[domain].erase(id);
    g_subscriber->hasRules[domain] = true;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetCallbackState(uint32_t* enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                                           CUpti_CallbackId id) {
    if (handle != kHandle || !enable || !validDomain(domain)) return CUPTI_ERROR_INVALID_PARAMETER;
    *enable = callbackWanted(domain, id);
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSupportedDomains(size_t* count, CUpti_DomainTable* table) {
    static CUpti_CallbackDomain domains[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API};
    if (!count || !table) return CUPTI_ERROR_INVALID_PARAMETER;
    *count = 2;
    *table = domains;
    return CUPTI_SUCCESS;
}

}  // extern "C"
