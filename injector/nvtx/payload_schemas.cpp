// SPDX-License-Identifier: Apache-2.0
#include "injector/nvtx/payload_schemas.h"

#include <atomic>
#include <cstring>

#include "injector/record/mutex.h"

namespace rankscope::injector::nvtx {

namespace {

constexpr size_t kSchemas = 128;
constexpr size_t kFields = 8;
constexpr size_t kMaxOffset = 4096;
constexpr uint64_t kFirstFreeId = uint64_t{1} << 40;  // above the ids that libraries choose themselves

enum class Meaning : uint8_t { commHash, parentHash, bytes, redop, peerOrRoot, rank, nRanks, device };

struct Field {
    Meaning meaning;
    uint8_t width;
    uint16_t offset;
};

struct Schema {
    uint64_t id = 0;
    uint32_t fieldCount = 0;
    Field fields[kFields] = {};
};

struct Registry {
    Mutex mutex;
    std::atomic<uint32_t> count{0};
    Schema schemas[kSchemas] = {};
    std::atomic<uint64_t> nextId{kFirstFreeId};
};

constinit Registry g_registry;

/// The names in NCCL's schemas, src/include/nvtx_payload_schemas.h of NCCL 2.19 to 2.28.
bool meaningOf(const char* name, Meaning& meaning) noexcept {
    static constexpr struct {
        const char* name;
        Meaning meaning;
    } kNames[] = {
        {"NCCL communicator ID", Meaning::commHash},
        {"Parent NCCL communicator ID", Meaning::parentHash},
        {"Message size [bytes]", Meaning::bytes},
        {"Reduction operation", Meaning::redop},
        {"Peer rank", Meaning::peerOrRoot},
        {"Root", Meaning::peerOrRoot},
        {"Rank", Meaning::rank},
        {"No. of ranks", Meaning::nRanks},
        {"CUDA device", Meaning::device},
    };
    if (name == nullptr) return false;
    for (const auto& known : kNames)
        if (std::strcmp(known.name, name) == 0) {
            meaning = known.meaning;
            return true;
        }
    return false;
}

/// Bytes of an integer type; 0 for anything else. An enum is registered as a schema of its own and is as wide as an
/// int.
uint8_t widthOf(uint64_t type) noexcept {
    switch (type) {
        case NVTX_PAYLOAD_ENTRY_TYPE_INT:
        case NVTX_PAYLOAD_ENTRY_TYPE_UINT:
        case NVTX_PAYLOAD_ENTRY_TYPE_INT32:
        case NVTX_PAYLOAD_ENTRY_TYPE_UINT32:
            return 4;
        case NVTX_PAYLOAD_ENTRY_TYPE_LONG:
        case NVTX_PAYLOAD_ENTRY_TYPE_ULONG:
        case NVTX_PAYLOAD_ENTRY_TYPE_LONGLONG:
        case NVTX_PAYLOAD_ENTRY_TYPE_ULONGLONG:
        case NVTX_PAYLOAD_ENTRY_TYPE_INT64:
        case NVTX_PAYLOAD_ENTRY_TYPE_UINT64:
        case NVTX_PAYLOAD_ENTRY_TYPE_SIZE:
            return 8;
        default:
            return type >= NVTX_PAYLOAD_SCHEMA_ID_STATIC_START ? 4 : 0;
    }
}

const Schema* find(uint64_t id) noexcept {
    const uint32_t count = g_registry.count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; ++i)
        if (g_registry.schemas[i].id == id) return &g_registry.schemas[i];
    return nullptr;
}

void readField(const Field& field, uint64_t value, NcclPayload& into) noexcept {
    switch (field.meaning) {
        case Meaning::commHash:
            into.commHash = value;
            break;
        case Meaning::bytes:
            into.bytes = value;
            break;
        case Meaning::redop:
            into.redop = static_cast<uint32_t>(value);
            break;
        case Meaning::peerOrRoot:
            into.peerOrRoot = static_cast<int32_t>(value);
            break;
        case Meaning::rank:
            into.rank = static_cast<int32_t>(value);
            break;
        case Meaning::nRanks:
            into.nRanks = static_cast<int32_t>(value);
            break;
        case Meaning::device:
            into.device = static_cast<int32_t>(value);
            break;
        case Meaning::parentHash:
            break;
    }
}

}  // namespace

uint64_t registerSchema(const nvtxPayloadSchemaAttr_t& attributes) noexcept {
    const bool ownId =
        (attributes.fieldMask & NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID) != 0 && attributes.schemaId != 0;
    const uint64_t id = ownId ? attributes.schemaId : g_registry.nextId.fetch_add(1);
    if (attributes.type != NVTX_PAYLOAD_SCHEMA_TYPE_STATIC || attributes.entries == nullptr || find(id) != nullptr)
        return id;
    Schema schema;
    schema.id = id;
    uint64_t natural = 0;
    for (size_t i = 0; i < attributes.numEntries && i < 64; ++i) {
        const nvtxPayloadSchemaEntry_t& entry = attributes.entries[i];
        const uint8_t width = widthOf(entry.type);
        if (width == 0 || entry.flags != 0) break;  // what follows has an offset we do not know
        natural = (natural + width - 1) / width * width;
        const uint64_t offset = entry.offset != 0 ? entry.offset : natural;
        natural = offset + width;
        Meaning meaning{};
        if (offset < kMaxOffset && schema.fieldCount < kFields && meaningOf(entry.name, meaning))
            schema.fields[schema.fieldCount++] = {meaning, width, static_cast<uint16_t>(offset)};
    }
    if (schema.fieldCount == 0) return id;
    const Lock lock(g_registry.mutex);
    const uint32_t count = g_registry.count.load(std::memory_order_relaxed);
    if (count == kSchemas || find(id) != nullptr) return id;
    g_registry.schemas[count] = schema;
    g_registry.count.store(count + 1, std::memory_order_release);
    return id;
}

void renewSchemaLock() noexcept {
    g_registry.mutex.renew();
}

uint64_t registerEnum(uint64_t wantedId) noexcept {
    return wantedId != 0 ? wantedId : g_registry.nextId.fetch_add(1);
}

bool decode(const nvtxPayloadData_t* payloads, size_t count, NcclPayload& into) noexcept {
    if (payloads == nullptr) return false;
    bool found = false;
    for (size_t i = 0; i < count && i < 16; ++i) {
        const Schema* schema = find(payloads[i].schemaId);
        if (schema == nullptr || payloads[i].payload == nullptr) continue;
        found = true;
        into.schemaId = payloads[i].schemaId;
        for (uint32_t f = 0; f < schema->fieldCount; ++f) {
            const Field& field = schema->fields[f];
            if (payloads[i].size != SIZE_MAX && payloads[i].size < size_t{field.offset} + field.width) continue;
            uint64_t value = 0;  // little-endian: the low bytes come first
            std::memcpy(&value, static_cast<const char*>(payloads[i].payload) + field.offset, field.width);
            readField(field, value, into);
        }
    }
    return found;
}

}  // namespace rankscope::injector::nvtx
