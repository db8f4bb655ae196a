// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/capture_loss.h"

namespace rankscope::collector {
namespace {

using store::Severity;

struct LossText {
    const char* kind;
    Severity severity;
    const char* message;
};

LossText textOf(capture::LossKind kind) {
    using capture::LossKind;
    switch (kind) {
        case LossKind::unknown:
            break;
        case LossKind::ringFull:
            return {"ring_full", Severity::warning,
                    "a thread recorded faster than the file could take it: records are missing, counts and sums are "
                    "too low"};
        case LossKind::sizeCap:
            return {"size_cap", Severity::warning,
                    "the size limit was reached: the first part of the run is recorded, the rest is not (--max-size)"};
        case LossKind::cuptiDropped:
            return {"cupti_dropped", Severity::warning, "CUPTI dropped activity records: device work is missing"};
        case LossKind::cuptiUndelivered:
            return {"cupti_undelivered", Severity::warning, "device work at the end was never delivered by CUPTI"};
        case LossKind::ioError:
            return {"io_error", Severity::error,
                    "the capture file could not be written (disk full?): records are missing"};
        case LossKind::truncatedText:
            return {"truncated_text", Severity::info, "texts were cut"};
        case LossKind::tooManyThreads:
            return {"too_many_threads", Severity::warning,
                    "more threads than rings: the calls of some threads are not recorded"};
        case LossKind::captureRange:
            return {"capture_range", Severity::info, "outside the range that was asked for"};
        case LossKind::fork:
            return {"fork", Severity::info, "a forked child is not recorded"};
        case LossKind::poolExhausted:
            return {"pool_exhausted", Severity::warning,
                    "more NCCL network transfers were open at once than there is room for: some are not recorded"};
        case LossKind::virtualTimes:
            return {"virtual_times", Severity::warning,
                    "the virtual GPUs went on without a thread that was blocked or spun in a way that they do not see: "
                    "the times of this run are not reproducible"};
        case LossKind::tooManyCommunicators:
            return {"too_many_communicators", Severity::warning,
                    "light mode knows the last 4096 communicators: when calls on older ones were on the device is not "
                    "recorded"};
        case LossKind::untimedKernels:
            return {"untimed_kernels", Severity::warning,
                    "CUPTI told of kernels without their begin or end (those that still ran when the job ended have "
                    "none): they are in no summary"};
        case LossKind::unknownStreams:
            return {"unknown_streams", Severity::warning,
                    "waits and events were on streams that CUPTI could not number (of another device than the calling "
                    "thread's): they are missing, or without their stream"};
        case LossKind::sourceRefused:
            return {"source_refused", Severity::warning,
                    "a source could not be switched on: what only it sees is missing"};
    }
    return {"unknown_loss", Severity::warning, "a loss that this version does not know"};
}

const char* sourceName(capture::Source source) {
    switch (source) {
        case capture::Source::none:
            break;
        case capture::Source::hooks:
            return "hooks";
        case capture::Source::cupti:
            return "cupti";
        case capture::Source::nvtx:
            return "nvtx";
        case capture::Source::ncclPlugin:
            return "nccl_plugin";
        case capture::Source::injector:
            return "injector";
        case capture::Source::ncclTuner:
            return "nccl_tuner";
    }
    return "injector";
}

const char* kindName(capture::ReaderLossKind kind) {
    using capture::ReaderLossKind;
    switch (kind) {
        case ReaderLossKind::tornTail:
            return "torn_tail";
        case ReaderLossKind::corruptHeader:
        case ReaderLossKind::corruptPayload:
        case ReaderLossKind::sequenceGap:
        case ReaderLossKind::repeatedBlock:
            return "bad_block";
        case ReaderLossKind::malformedRecord:
            return "bad_record";
        case ReaderLossKind::unknownRecord:
            return "unknown_record";
        case ReaderLossKind::ringFull:
            return "ring_full";
        case ReaderLossKind::ring:
            return "bad_ring";
    }
    return "bad_block";
}

}  // namespace

store::Loss lossOf(const capture::LossRecord& record, uint64_t fileOffset) {
    const LossText text = textOf(static_cast<capture::LossKind>(record.head.aux));
    return {0,
            text.kind,
            text.severity,
            {},
            sourceName(record.source),
            static_cast<int64_t>(record.count),
            {},
            static_cast<int64_t>(fileOffset),
            text.message};
}

store::Loss lossOf(const capture::ReaderLoss& loss) {
    return {0,
            kindName(loss.kind),
            Severity::warning,
            {},
            "collector",
            static_cast<int64_t>(loss.count),
            {},
            static_cast<int64_t>(loss.offset),
            loss.message};
}

store::SourceStatus sourceStatusOf(const capture::StatusRecord& record, const std::string& message) {
    constexpr const char* kStates[] = {"refused", "live", "refused", "taken", "shut_down", "not_asked"};
    store::SourceStatus status;
    status.source = sourceName(record.source);
    status.state = record.head.aux < std::size(kStates) ? kStates[record.head.aux] : "refused";
    status.code = record.code;
    if (!message.empty()) status.message = message;
    return status;
}

}  // namespace rankscope::collector
