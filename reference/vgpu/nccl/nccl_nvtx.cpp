// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/nccl/nccl_nvtx.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace rankscope::vgpu {
namespace {

constexpr uint64_t kFirstSchema = 0x1000000;
constexpr uint64_t kReductionEnum = 0x1000014;

uint64_t wireId(NcclSchema schema) {
    return kFirstSchema + static_cast<uint32_t>(schema);
}

// Payload layouts as a C compiler lays out NCCL's structs.
struct Entry {
    uint64_t type;
    const char* name;
    uint64_t offset;
};
constexpr Entry kComm{NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", 0};
constexpr Entry kBytes{NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", 8};

struct Layout {
    NcclSchema schema;
    const char* name;
    size_t bytes;
    std::vector<Entry> entries;
};

std::vector<Layout> layouts() {
    const Entry op16{kReductionEnum, "Reduction operation", 16}, op20{kReductionEnum, "Reduction operation", 20};
    const Entry root{NVTX_PAYLOAD_ENTRY_TYPE_INT, "Root", 16}, peer{NVTX_PAYLOAD_ENTRY_TYPE_INT, "Peer rank", 16};
    const std::vector<Entry> init = {kComm,
                                     {NVTX_PAYLOAD_ENTRY_TYPE_INT, "No. of ranks", 8},
                                     {NVTX_PAYLOAD_ENTRY_TYPE_INT, "Rank", 12},
                                     {NVTX_PAYLOAD_ENTRY_TYPE_INT, "CUDA device", 16}};
    return {
        {NcclSchema::commInitRank, "ncclCommInitRank", 24, init},
        {NcclSchema::commInitRankConfig, "ncclCommInitRankConfig", 24, init},
        {NcclSchema::commInitRankScalable, "ncclCommInitRankScalable", 24, init},
        {NcclSchema::commDestroy, "ncclCommDestroy", 24, init},
        {NcclSchema::commAbort, "ncclCommAbort", 24, init},
        {NcclSchema::commSplit,
         "ncclCommSplit",
         40,
         {kComm,
          {NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "Parent NCCL communicator ID", 8},
          {NVTX_PAYLOAD_ENTRY_TYPE_INT, "No. of ranks", 16},
          {NVTX_PAYLOAD_ENTRY_TYPE_INT, "Rank", 20},
          {NVTX_PAYLOAD_ENTRY_TYPE_INT, "CUDA device", 24},
          {NVTX_PAYLOAD_ENTRY_TYPE_INT, "Color", 28},
          {NVTX_PAYLOAD_ENTRY_TYPE_INT, "Key", 32}}},
        {NcclSchema::commFinalize, "ncclCommFinalize", 8, {kComm}},
        {NcclSchema::allGather, "ncclAllGather", 16, {kComm, kBytes}},
        {NcclSchema::allToAll, "ncclAlltoAll", 16, {kComm, kBytes}},
        {NcclSchema::allReduce, "ncclAllReduce", 24, {kComm, kBytes, op16}},
        {NcclSchema::reduceScatter, "ncclReduceScatter", 24, {kComm, kBytes, op16}},
        {NcclSchema::broadcast, "ncclBroadcast", 24, {kComm, kBytes, root}},
        {NcclSchema::gather, "ncclGather", 24, {kComm, kBytes, root}},
        {NcclSchema::scatter, "ncclScatter", 24, {kComm, kBytes, root}},
        {NcclSchema::reduce, "ncclReduce", 24, {kComm, kBytes, root, op20}},
        {NcclSchema::send, "ncclSend", 24, {kComm, kBytes, peer}},
        {NcclSchema::recv, "ncclRecv", 24, {kComm, kBytes, peer}},
    };
}

void registerReductions(nvtxDomainHandle_t domain) {
    static const nvtxPayloadEnum_t entries[] = {
        {"Sum", 0, 0}, {"Product", 1, 0}, {"Max", 2, 0}, {"Min", 3, 0}, {"Avg", 4, 0}};
    nvtxPayloadEnumAttr_t attributes{};
    attributes.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                           NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
    attributes.entries = entries;
    attributes.numEntries = std::size(entries);
    attributes.sizeOfEnum = sizeof(int);
    attributes.schemaId = kReductionEnum;
    nvtxPayloadEnumRegister(domain, &attributes);
}

void registerSchema(nvtxDomainHandle_t domain, const Layout& layout) {
    std::vector<nvtxPayloadSchemaEntry_t> entries;
    for (const Entry& entry : layout.entries) {
        nvtxPayloadSchemaEntry_t described{};
        described.type = entry.type;
        described.name = entry.name;
        described.offset = entry.offset;
        entries.push_back(described);
    }
    nvtxPayloadSchemaAttr_t attributes{};
    attributes.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                           NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                           NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
    attributes.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
    attributes.entries = entries.data();
    attributes.numEntries = entries.size();
    attributes.payloadStaticSize = layout.bytes;
    attributes.schemaId = wireId(layout.schema);
    nvtxPayloadSchemaRegister(domain, &attributes);
}

bool enabled() {
    static const bool on = [] {
        const char* off = std::getenv("NCCL_NVTX_DISABLE");
        return !(off && *off && std::strcmp(off, "0") != 0);
    }();
    return on;
}

nvtxDomainHandle_t domain() {
    static nvtxDomainHandle_t handle = [] {
        nvtxDomainHandle_t created = nvtxDomainCreateA("NCCL");
        registerReductions(created);
        for (const Layout& layout : layouts()) registerSchema(created, layout);
        return created;
    }();
    return handle;
}

nvtxStringHandle_t registeredName(const char* name) {
    static std::mutex mutex;
    static auto* names = new std::map<std::string, nvtxStringHandle_t>;
    std::lock_guard guard(mutex);
    auto [it, fresh] = names->try_emplace(name);
    if (fresh) it->second = nvtxDomainRegisterStringA(domain(), name);
    return it->second;
}

void push(const char* name, const nvtxPayloadData_t* payload) {
    nvtxEventAttributes_t event{};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = registeredName(name);
    if (payload) {
        event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
        event.reserved0 = 1;  // number of payloads
        event.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(payload);
    }
    nvtxDomainRangePushEx(domain(), &event);
}

template <typename T>
void put(uint64_t (&payload)[6], size_t offset, T value) {
    std::memcpy(reinterpret_cast<char*>(payload) + offset, &value, sizeof value);
}

}  // namespace

NcclRange::NcclRange(const char* name, NcclSchema schema, uint64_t commHash, size_t bytes, int detail, int op)
    : m_active(enabled()), m_schema(schema) {
    if (!m_active) return;
    put(m_payload, 0, commHash);
    put(m_payload, 8, bytes);
    bool hasDetail = schema != NcclSchema::allGather && schema != NcclSchema::allToAll;
    put(m_payload, 16, detail);
    put(m_payload, 20, op);
    nvtxPayloadData_t data{wireId(schema), hasDetail ? size_t{24} : size_t{16}, m_payload};
    push(name, &data);
}

NcclRange::NcclRange(const char* name, NcclSchema schema) : m_active(enabled()), m_schema(schema) {
    if (m_active) push(name, nullptr);
}

NcclRange::~NcclRange() {
    if (!m_active) return;
    if (m_payloadBytes == 0) {
        nvtxDomainRangePop(domain());
        return;
    }
    nvtxPayloadData_t data{wireId(m_schema), m_payloadBytes, m_payload};
    nvtxRangePopPayload(domain(), &data, 1);
}

void NcclRange::setCommunicator(uint64_t commHash, int size, int rank, int device) {
    put(m_payload, 0, commHash);
    put(m_payload, 8, size);
    put(m_payload, 12, rank);
    put(m_payload, 16, device);
    m_payloadBytes = 24;
}

void NcclRange::setSplit(uint64_t newHash, uint64_t parentHash, int size, int rank, int device, int color, int key) {
    put(m_payload, 0, newHash);
    put(m_payload, 8, parentHash);
    put(m_payload, 16, size);
    put(m_payload, 20, rank);
    put(m_payload, 24, device);
    put(m_payload, 28, color);
    put(m_payload, 32, key);
    m_payloadBytes = 40;
}

}  // namespace rankscope::vgpu
