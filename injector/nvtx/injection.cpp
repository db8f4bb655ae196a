// SPDX-License-Identifier: Apache-2.0
// The two entry points by which NVTX finds us (NVTX_INJECTION64_PATH). They are called once for every module that
// carries its own copy of NVTX, so everything behind them is shared by the process. Mechanism:
// nvtx3/nvtxDetail/nvtxInit.h and nvtxExtInit.h.
#include <cstring>

#include "injector/export.h"
#include "injector/nvtx/nvtx_types.h"
#include "injector/nvtx/ranges.h"

namespace rankscope::injector::nvtx {

namespace {

constexpr size_t kWideBytes = 1024;

// What NVTX returns with no tool attached; we keep to it, so that a job cannot tell the difference.
constexpr int kNoTracking = NVTX_NO_PUSH_POP_TRACKING;

const Domain* domainOf(nvtxDomainHandle_t handle) noexcept {
    return reinterpret_cast<const Domain*>(handle);
}

Event textEvent(const char* text) noexcept {
    Event event;
    event.text = text;
    event.bytes = text == nullptr ? 0 : std::strlen(text);
    return event;
}

/// An event of a wide text, which lives as long as this does.
struct WideEvent {
    explicit WideEvent(const wchar_t* text) noexcept {
        event.text = room;
        event.bytes = fromWide(text, room, sizeof room);
    }
    char room[kWideBytes];
    Event event;
};

/// The event of NVTX's attributes, with room for a wide message.
struct AttributesEvent {
    explicit AttributesEvent(const nvtxEventAttributes_t* attributes) noexcept
        : event(eventOf(attributes, room, sizeof room)) {}
    char room[kWideBytes];
    Event event;
};

// --- the default domain ---

void NVTX_API onMarkEx(const nvtxEventAttributes_t* attributes) {
    mark(nullptr, AttributesEvent(attributes).event);
}
void NVTX_API onMarkA(const char* text) {
    mark(nullptr, textEvent(text));
}
void NVTX_API onMarkW(const wchar_t* text) {
    mark(nullptr, WideEvent(text).event);
}
nvtxRangeId_t NVTX_API onRangeStartEx(const nvtxEventAttributes_t* attributes) {
    return start(nullptr, AttributesEvent(attributes).event);
}
nvtxRangeId_t NVTX_API onRangeStartA(const char* text) {
    return start(nullptr, textEvent(text));
}
nvtxRangeId_t NVTX_API onRangeStartW(const wchar_t* text) {
    return start(nullptr, WideEvent(text).event);
}
void NVTX_API onRangeEnd(nvtxRangeId_t id) {
    end(nullptr, id);
}
int NVTX_API onRangePushEx(const nvtxEventAttributes_t* attributes) {
    push(nullptr, AttributesEvent(attributes).event);
    return kNoTracking;
}
int NVTX_API onRangePushA(const char* text) {
    push(nullptr, textEvent(text));
    return kNoTracking;
}
int NVTX_API onRangePushW(const wchar_t* text) {
    push(nullptr, WideEvent(text).event);
    return kNoTracking;
}
int NVTX_API onRangePop() {
    pop(nullptr, nullptr, 0);
    return kNoTracking;
}
void NVTX_API onNameOsThreadA(uint32_t tid, const char* name) {
    nameThread(tid, name);
}
void NVTX_API onNameOsThreadW(uint32_t tid, const wchar_t* name) {
    char text[kWideBytes];
    text[fromWide(name, text, sizeof text - 1)] = '\0';
    nameThread(tid, text);
}

// --- named domains ---

void NVTX_API onDomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
    mark(domainOf(domain), AttributesEvent(attributes).event);
}
nvtxRangeId_t NVTX_API onDomainRangeStartEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
    return start(domainOf(domain), AttributesEvent(attributes).event);
}
void NVTX_API onDomainRangeEnd(nvtxDomainHandle_t domain, nvtxRangeId_t id) {
    end(domainOf(domain), id);
}
int NVTX_API onDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
    push(domainOf(domain), AttributesEvent(attributes).event);
    return kNoTracking;
}
int NVTX_API onDomainRangePop(nvtxDomainHandle_t domain) {
    pop(domainOf(domain), nullptr, 0);
    return kNoTracking;
}
nvtxStringHandle_t NVTX_API onRegisterStringA(nvtxDomainHandle_t, const char* text) {
    return reinterpret_cast<nvtxStringHandle_t>(const_cast<RegisteredText*>(registerText(text)));
}
nvtxStringHandle_t NVTX_API onRegisterStringW(nvtxDomainHandle_t, const wchar_t* wide) {
    char text[kWideBytes];
    text[fromWide(wide, text, sizeof text - 1)] = '\0';
    return reinterpret_cast<nvtxStringHandle_t>(const_cast<RegisteredText*>(registerText(text)));
}
nvtxDomainHandle_t NVTX_API onDomainCreateA(const char* name) {
    return reinterpret_cast<nvtxDomainHandle_t>(const_cast<Domain*>(makeDomain(name)));
}
nvtxDomainHandle_t NVTX_API onDomainCreateW(const wchar_t* wide) {
    char name[kWideBytes];
    name[fromWide(wide, name, sizeof name - 1)] = '\0';
    return onDomainCreateA(name);
}

// --- extended payloads ---

uint64_t NVTX_API onSchemaRegister(nvtxDomainHandle_t, const nvtxPayloadSchemaAttr_t* attributes) {
    return attributes == nullptr ? 0 : registerSchema(*attributes);
}
uint64_t NVTX_API onEnumRegister(nvtxDomainHandle_t, const nvtxPayloadEnumAttr_t* attributes) {
    return attributes == nullptr ? 0 : registerEnum(attributes->schemaId);
}
Event payloadEvent(const nvtxPayloadData_t* payloads, size_t count) noexcept {
    Event event;
    event.payloads = payloads;
    event.payloadCount = payloads == nullptr ? 0 : count;
    return event;
}
void NVTX_API onMarkPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payloads, size_t count) {
    mark(domainOf(domain), payloadEvent(payloads, count));
}
int NVTX_API onRangePushPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payloads, size_t count) {
    push(domainOf(domain), payloadEvent(payloads, count));
    return kNoTracking;
}
int NVTX_API onRangePopPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payloads, size_t count) {
    pop(domainOf(domain), payloads, count);
    return kNoTracking;
}
nvtxRangeId_t NVTX_API onRangeStartPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payloads, size_t count) {
    return start(domainOf(domain), payloadEvent(payloads, count));
}
void NVTX_API onRangeEndPayload(nvtxDomainHandle_t domain, nvtxRangeId_t id, const nvtxPayloadData_t*, size_t) {
    end(domainOf(domain), id);
}
uint8_t NVTX_API onDomainIsEnabled(nvtxDomainHandle_t) {
    return 1;
}

template <typename Function>
NvtxFunctionPointer asSlot(Function function) noexcept {
    return reinterpret_cast<NvtxFunctionPointer>(function);
}

struct Slot {
    unsigned index;
    NvtxFunctionPointer function;
};

template <size_t N>
void fill(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module, const Slot (&slots)[N]) noexcept {
    NvtxFunctionTable table = nullptr;
    unsigned size = 0;
    if (callbacks.GetModuleFunctionTable(module, &table, &size) == 0 || table == nullptr) return;
    for (const Slot& slot : slots)
        if (slot.index < size && table[slot.index] != nullptr) *table[slot.index] = slot.function;
}

}  // namespace

}  // namespace rankscope::injector::nvtx

RANKSCOPE_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t getExportTable) {
    using namespace rankscope::injector::nvtx;
    if (getExportTable == nullptr) return 0;
    const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(getExportTable(NVTX_ETID_CALLBACKS));
    if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks)) return 0;
    fill(*callbacks, NVTX_CB_MODULE_CORE,
         {{NVTX_CBID_CORE_MarkEx, asSlot(onMarkEx)},
          {NVTX_CBID_CORE_MarkA, asSlot(onMarkA)},
          {NVTX_CBID_CORE_MarkW, asSlot(onMarkW)},
          {NVTX_CBID_CORE_RangeStartEx, asSlot(onRangeStartEx)},
          {NVTX_CBID_CORE_RangeStartA, asSlot(onRangeStartA)},
          {NVTX_CBID_CORE_RangeStartW, asSlot(onRangeStartW)},
          {NVTX_CBID_CORE_RangeEnd, asSlot(onRangeEnd)},
          {NVTX_CBID_CORE_RangePushEx, asSlot(onRangePushEx)},
          {NVTX_CBID_CORE_RangePushA, asSlot(onRangePushA)},
          {NVTX_CBID_CORE_RangePushW, asSlot(onRangePushW)},
          {NVTX_CBID_CORE_RangePop, asSlot(onRangePop)},
          {NVTX_CBID_CORE_NameOsThreadA, asSlot(onNameOsThreadA)},
          {NVTX_CBID_CORE_NameOsThreadW, asSlot(onNameOsThreadW)}});
    fill(*callbacks, NVTX_CB_MODULE_CORE2,
         {{NVTX_CBID_CORE2_DomainMarkEx, asSlot(onDomainMarkEx)},
          {NVTX_CBID_CORE2_DomainRangeStartEx, asSlot(onDomainRangeStartEx)},
          {NVTX_CBID_CORE2_DomainRangeEnd, asSlot(onDomainRangeEnd)},
          {NVTX_CBID_CORE2_DomainRangePushEx, asSlot(onDomainRangePushEx)},
          {NVTX_CBID_CORE2_DomainRangePop, asSlot(onDomainRangePop)},
          {NVTX_CBID_CORE2_DomainRegisterStringA, asSlot(onRegisterStringA)},
          {NVTX_CBID_CORE2_DomainRegisterStringW, asSlot(onRegisterStringW)},
          {NVTX_CBID_CORE2_DomainCreateA, asSlot(onDomainCreateA)},
          {NVTX_CBID_CORE2_DomainCreateW, asSlot(onDomainCreateW)}});
    return 1;
}

RANKSCOPE_EXPORT int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t* module) {
    using namespace rankscope::injector::nvtx;
    // Versions of the extension differ in compatId (259 in NCCL 2.28's copy, 260 in CUDA 13.0's); the slots we fill
    // mean the same in both.
    if (module == nullptr || module->moduleId != NVTX_EXT_PAYLOAD_MODULEID || module->segmentsCount == 0 ||
        module->segments == nullptr)
        return 0;
    nvtxExtModuleSegment_t& segment = module->segments[0];
    const auto set = [&segment](size_t index, intptr_t function) {
        if (index < segment.slotCount) segment.functionSlots[index] = function;
    };
    set(NVTX3EXT_CBID_nvtxPayloadSchemaRegister, reinterpret_cast<intptr_t>(onSchemaRegister));
    set(NVTX3EXT_CBID_nvtxPayloadEnumRegister, reinterpret_cast<intptr_t>(onEnumRegister));
    set(NVTX3EXT_CBID_nvtxMarkPayload, reinterpret_cast<intptr_t>(onMarkPayload));
    set(NVTX3EXT_CBID_nvtxRangePushPayload, reinterpret_cast<intptr_t>(onRangePushPayload));
    set(NVTX3EXT_CBID_nvtxRangePopPayload, reinterpret_cast<intptr_t>(onRangePopPayload));
    set(NVTX3EXT_CBID_nvtxRangeStartPayload, reinterpret_cast<intptr_t>(onRangeStartPayload));
    set(NVTX3EXT_CBID_nvtxRangeEndPayload, reinterpret_cast<intptr_t>(onRangeEndPayload));
    set(NVTX3EXT_CBID_nvtxDomainIsEnabled, reinterpret_cast<intptr_t>(onDomainIsEnabled));
    return 1;
}
