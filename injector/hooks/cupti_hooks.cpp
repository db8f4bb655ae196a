// SPDX-License-Identifier: Apache-2.0
// Notices when another CUPTI client of the job (torch.profiler, say) takes over the activity buffers, and gets out of
// its way.
#include <dlfcn.h>

#include "injector/export.h"
#include "injector/real_symbol.h"
#include "injector/session/cupti_session.h"
#include "injector/session/session.h"

using namespace rankscope::injector;

RANKSCOPE_EXPORT int cuptiActivityRegisterCallbacks(cupti::RequestBuffer request, cupti::CompleteBuffer complete) {
    static constinit RealSymbol<decltype(&cuptiActivityRegisterCallbacks)> realSymbol;
    const auto real =
        realSymbol.get("cuptiActivityRegisterCallbacks", "libcupti.so",
                       reinterpret_cast<void*>(&cuptiActivityRegisterCallbacks), __builtin_return_address(0));
    if (real == nullptr) return 999;  // CUPTI_ERROR_UNKNOWN
    // Our own registration does not come this way: it uses the function of libcupti itself.
    ErrnoKeeper errnoKeeper;
    Dl_info client{};
    const bool known = dladdr(reinterpret_cast<void*>(request), &client) != 0 && client.dli_fname != nullptr;
    cupti::yieldTo(known ? client.dli_fname : "another CUPTI client");
    return real(request, complete);
}
