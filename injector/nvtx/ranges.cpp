// SPDX-License-Identifier: Apache-2.0
#include "injector/nvtx/ranges.h"

#include <atomic>

#include "injector/session/session.h"

namespace rankscope::injector::nvtx {

namespace {

using capture::RecordType;

std::atomic<uint64_t> g_nextRange{1};

/// Which of this thread's open push/pop ranges the capture range waits for, innermost in bit 0. Domains share it: only
/// a job that closes ranges of two domains crosswise is misread, and only when it asked for a capture range.
constinit thread_local uint64_t t_watched __attribute__((tls_model("initial-exec"))) = 0;

bool wanted(const Domain* domain) noexcept {
    const Config& config = g_session.config();
    return config.traces(traceNvtx) || (domain != nullptr && domain->isNccl && config.traces(traceNccl));
}

bool isWatched(const Event& event) noexcept {
    const Config& config = g_session.config();
    if (config.range == CaptureRange::nvtxRange)
        return event.bytes == std::strlen(config.rangeName) &&
               std::memcmp(event.text, config.rangeName, event.bytes) == 0;
    return config.range == CaptureRange::steps;
}

/// Tells the session that a range begins, if it waits for one. True: its end is to be told as well.
bool watchBegin(const Event& event) noexcept {
    if (event.text == nullptr || !isWatched(event)) return false;
    g_session.rangeBegins(event.text, event.bytes);
    return g_session.config().range == CaptureRange::nvtxRange;
}

void watchEnd() noexcept {
    const Config& config = g_session.config();
    g_session.rangeEnds(config.rangeName, std::strlen(config.rangeName));
}

/// Text ids are kept by the file, so each is offered again whenever the file may not have it.
uint64_t idOf(const char* text, size_t bytes) noexcept {
    return text == nullptr || bytes == 0 ? 0 : g_session.intern(text, bytes);
}

void recordEvent(RecordType type, const Domain* domain, const Event& event, uint64_t rangeId) noexcept {
    capture::NvtxRecord record{};
    record.head = {type, sizeof record / capture::kCellBytes, event.payloadType};
    record.name = idOf(event.text, event.bytes);
    record.domain = domain == nullptr ? 0 : idOf(domain->name, domain->nameBytes);
    record.rangeId = rangeId;
    record.payload = event.payload;
    record.color = event.color;
    record.category = event.category;
    record.seq = g_session.nextSeq();
    record.timeNs = g_session.now();
    g_session.push(record, record.timeNs);
    if (event.payloadCount == 0 || domain == nullptr || !domain->isNccl) return;

    NcclPayload told;
    if (!decode(event.payloads, event.payloadCount, told)) return;
    capture::NcclPayloadRecord payload{};
    payload.head = {RecordType::ncclPayload, sizeof payload / capture::kCellBytes,
                    static_cast<uint16_t>(type == RecordType::nvtxPop ? 2 : 1)};
    payload.seq = record.seq;
    payload.timeNs = record.timeNs;
    payload.commHash = told.commHash;
    payload.bytes = told.bytes;
    payload.schemaId = told.schemaId;
    payload.peerOrRoot = told.peerOrRoot;
    payload.rank = told.rank;
    payload.nRanks = told.nRanks;
    payload.device = told.device;
    payload.redop = told.redop;
    g_session.push(payload, payload.timeNs);
}

/// A communicator's hash helps the NCCL hook in progress on this thread, whether ranges are recorded or not.
void noteInit(const Domain* domain, const nvtxPayloadData_t* payloads, size_t count) noexcept {
    if (count == 0 || domain == nullptr || !domain->isNccl) return;
    NcclPayload told;
    if (decode(payloads, count, told) && told.isInit()) t_thread.toldCommHash = told.commHash;
}

}  // namespace

Event eventOf(const nvtxEventAttributes_t* attributes, char* wideRoom, size_t wideRoomBytes) noexcept {
    Event event;
    if (attributes == nullptr) return event;
    switch (attributes->messageType) {
        case NVTX_MESSAGE_TYPE_ASCII:
            event.text = attributes->message.ascii;
            event.bytes = event.text == nullptr ? 0 : std::strlen(event.text);
            break;
        case NVTX_MESSAGE_TYPE_UNICODE:
            event.text = wideRoom;
            event.bytes = fromWide(attributes->message.unicode, wideRoom, wideRoomBytes);
            break;
        case NVTX_MESSAGE_TYPE_REGISTERED:
            if (const auto* text = reinterpret_cast<const RegisteredText*>(attributes->message.registered)) {
                event.text = text->text;
                event.bytes = text->bytes;
            }
            break;
        default:
            break;
    }
    if (attributes->colorType == NVTX_COLOR_ARGB) event.color = attributes->color;
    event.category = attributes->category;
    if (attributes->payloadType == NVTX_PAYLOAD_TYPE_EXT) {
        event.payloads = reinterpret_cast<const nvtxPayloadData_t*>(attributes->payload.ullValue);
        event.payloadCount = event.payloads == nullptr ? 0 : static_cast<uint32_t>(attributes->reserved0);
    } else if (attributes->payloadType != NVTX_PAYLOAD_UNKNOWN) {
        event.payloadType = static_cast<uint16_t>(attributes->payloadType);
        event.payload = attributes->payload.ullValue;
    }
    return event;
}

void push(const Domain* domain, const Event& event) noexcept {
    const ErrnoKeeper keep;
    if (!g_session.isAlive(Cause::nvtx)) return;
    noteInit(domain, event.payloads, event.payloadCount);
    t_watched = t_watched << 1 | static_cast<uint64_t>(watchBegin(event));
    if (g_session.isRecording(Cause::nvtx) && wanted(domain)) recordEvent(RecordType::nvtxPush, domain, event, 0);
}

void pop(const Domain* domain, const nvtxPayloadData_t* payloads, size_t count) noexcept {
    const ErrnoKeeper keep;
    if (!g_session.isAlive(Cause::nvtx)) return;
    noteInit(domain, payloads, count);
    Event event;
    event.payloads = payloads;
    event.payloadCount = payloads == nullptr ? 0 : count;
    if (g_session.isRecording(Cause::nvtx) && wanted(domain)) recordEvent(RecordType::nvtxPop, domain, event, 0);
    const bool watched = (t_watched & 1) != 0;
    t_watched >>= 1;
    if (watched) watchEnd();
}

void mark(const Domain* domain, const Event& event) noexcept {
    const ErrnoKeeper keep;
    if (g_session.isRecording(Cause::nvtx) && wanted(domain)) recordEvent(RecordType::nvtxMark, domain, event, 0);
}

uint64_t start(const Domain* domain, const Event& event) noexcept {
    const ErrnoKeeper keep;
    uint64_t id = g_nextRange.fetch_add(1, std::memory_order_relaxed) << 1;
    if (!g_session.isAlive(Cause::nvtx)) return id;
    if (watchBegin(event)) id |= 1;  // so that the end, which knows no name, can be told
    if (g_session.isRecording(Cause::nvtx) && wanted(domain)) recordEvent(RecordType::nvtxStart, domain, event, id);
    return id;
}

void end(const Domain* domain, uint64_t rangeId) noexcept {
    const ErrnoKeeper keep;
    if (!g_session.isAlive(Cause::nvtx)) return;
    if (g_session.isRecording(Cause::nvtx) && wanted(domain)) recordEvent(RecordType::nvtxEnd, domain, {}, rangeId);
    if ((rangeId & 1) != 0) watchEnd();
}

void nameThread(uint32_t tid, const char* name) noexcept {
    const ErrnoKeeper keep;
    if (name != nullptr && g_session.isRecording(Cause::nvtx)) g_session.nameThread(name, static_cast<int32_t>(tid));
}

}  // namespace rankscope::injector::nvtx
