// SPDX-License-Identifier: Apache-2.0
// Emits NVTX of every shape and prints what the calls return.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>

int main() {
    for (int i = 0; i < 10; ++i) {
        nvtxRangePushA("outer");
        nvtxRangePushA("inner");
        nvtxMarkA("mark");
        nvtxRangePop();
        nvtxRangePop();
    }
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("victim domain");
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxDomainRangePop(domain);
    nvtxRangeEnd(nvtxRangeStartA("started"));
    std::printf("done\n");
}
