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

RANKSCOPE_EXPORT int cuptiActivityRegisterCallbacks(cupti::RequestBuffer request, cupti::CompleteBuffer complete) {
    static constinit RealSymbol<decltype(&cuptiActivityRegisterCallbacks)> realSymbol;
    const auto real =
        realSymbol.get("cuptiActivityRegisterCallbacks", "libcupti.so",
                       reinterpret_cast<void*>(&cuptiActivityRegisterCallbacks), __builtin_return_address(0));
    if (real == nullptr) return kUnknownError;
    // Our own registration does not come this way: it uses the function of libcupti itself.
    ErrnoKeeper errnoKeeper;
    Dl_info client{};
    const bool known = dladdr(reinterpret_cast<void*>(request), &client) != 0 && client.dli_fname != nullptr;
    cupti::yieldTo(known ? client.dli_fname : "another CUPTI client");
    return real(request, complete);
}

// Our own subscription does not come this way either.
RANKSCOPE_EXPORT int cuptiSubscribe(void** subscriber, cupti::Callback callback, void* userData) {
    static constinit RealSymbol<decltype(&cuptiSubscribe)> realSymbol;
    const auto real = realSymbol.get("cuptiSubscribe", "libcupti.so", reinterpret_cast<void*>(&cuptiSubscribe),
                                     __builtin_return_address(0));
    if (real == nullptr) return kUnknownError;
    ErrnoKeeper errnoKeeper;
    cupti::leavePlace();
    return real(subscriber, callback, userData);
}

RANKSCOPE_EXPORT int cuptiSubscribe_v2(void** subscriber, cupti::Callback callback, void* userData,
                                       cupti::SubscriberParams* params) {
    static constinit RealSymbol<decltype(&cuptiSubscribe_v2)> realSymbol;
    const auto real = realSymbol.get("cuptiSubscribe_v2", "libcupti.so", reinterpret_cast<void*>(&cuptiSubscribe_v2),
                                     __builtin_return_address(0));
    if (real == nullptr) return kUnknownError;
    ErrnoKeeper errnoKeeper;
    cupti::leavePlace();
    return real(subscriber, callback, userData, params);
}

RANKSCOPE_EXPORT int cuptiFinalize() {
    static constinit RealSymbol<decltype(&cuptiFinalize)> realSymbol;
    const auto real = realSymbol.get("cuptiFinalize", "libcupti.so", reinterpret_cast<void*>(&cuptiFinalize),
                                     __builtin_return_address(0));
    if (real == nullptr) return kUnknownError;
    ErrnoKeeper errnoKeeper;
    cupti::yieldTo("a client that took CUPTI out of the process (cuptiFinalize)");
    return real();
}
