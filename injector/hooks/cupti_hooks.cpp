// SPDX-License-Identifier: Apache-2.0
// Notices when another CUPTI client of the job (torch.profiler, say) wants to be called back, or takes over the
// activity buffers, and gets out of its way.
#include <dlfcn.h>

#include "injector/export.h"
#include "injector/real_symbol.h"
#include "injector/session/cupti_session.h"
#include "injector/session/session.h"

using namespace rankscope::injector;

namespace {
constexpr int kUnknownError = 999;  // CUPTI_ERROR_UNKNOWN
}

/// Finds the real function as `real`. Our own calls do not come this way: they use the functions of libcupti itself.
#define RANKSCOPE_REAL_CUPTI(function)                                                                             \
    static constinit RealSymbol<decltype(&function)> realSymbol;                                                   \
    const auto real =                                                                                              \
        realSymbol.get(#function, "libcupti.so", reinterpret_cast<void*>(&function), __builtin_return_address(0)); \
    if (real == nullptr) return kUnknownError;                                                                     \
    ErrnoKeeper errnoKeeper

RANKSCOPE_EXPORT int cuptiActivityRegisterCallbacks(cupti::RequestBuffer request, cupti::CompleteBuffer complete) {
    RANKSCOPE_REAL_CUPTI(cuptiActivityRegisterCallbacks);
    Dl_info client{};
    const bool known = dladdr(reinterpret_cast<void*>(request), &client) != 0 && client.dli_fname != nullptr;
    cupti::yieldTo(known ? client.dli_fname : "another CUPTI client");
    return real(request, complete);
}

RANKSCOPE_EXPORT int cuptiSubscribe(void** subscriber, cupti::Callback callback, void* userData) {
    RANKSCOPE_REAL_CUPTI(cuptiSubscribe);
    cupti::leavePlace();
    return real(subscriber, callback, userData);
}

RANKSCOPE_EXPORT int cuptiSubscribe_v2(void** subscriber, cupti::Callback callback, void* userData,
                                       cupti::SubscriberParams* params) {
    RANKSCOPE_REAL_CUPTI(cuptiSubscribe_v2);
    cupti::leavePlace();
    return real(subscriber, callback, userData, params);
}

RANKSCOPE_EXPORT int cuptiFinalize() {
    RANKSCOPE_REAL_CUPTI(cuptiFinalize);
    cupti::yieldTo("a client that took CUPTI out of the process (cuptiFinalize)");
    return real();
}
