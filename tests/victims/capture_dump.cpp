// SPDX-License-Identifier: Apache-2.0
// Prints a capture file as JSON lines, one per record, so that a test can look at it: header first, then the records,
// then what was lost.
#include <cinttypes>
#include <cstdio>
#include <string>
#include <string_view>

#include "injector/capture_format/reader.h"

namespace {

using namespace rankscope::capture;

std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20 || byte > 0x7e) {
            // Texts of the job may be any bytes: each stands for itself as a code point below 256.
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", byte);
            out += escape;
        } else {
            out += c;
        }
    }
    return out + '"';
}

/// One line of output under construction.
class Line {
  public:
    explicit Line(const char* type) { std::printf("{\"type\":\"%s\"", type); }
    ~Line() { std::printf("}\n"); }
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    Line& number(const char* key, int64_t value) {
        std::printf(",\"%s\":%" PRId64, key, value);
        return *this;
    }
    Line& id(const char* key, uint64_t value) {
        std::printf(",\"%s\":%" PRIu64, key, value);
        return *this;
    }
    Line& text(const char* key, std::string_view value) {
        std::printf(",\"%s\":%s", key, quoted(value).c_str());
        return *this;
    }
};

void printHeader(const FileHeader& header) {
    Line("header")
        .number("pid", header.pid)
        .number("parentPid", header.parentPid)
        .number("rank", header.rank)
        .number("localRank", header.localRank)
        .number("worldSize", header.worldSize)
        .number("attempt", header.attempt)
        .number("clockKind", static_cast<int>(header.clockKind))
        .number("virtualGpu", header.virtualGpu)
        .text("identitySource", header.identitySource)
        .text("host", header.host)
        .text("executable", header.executable);
}

void printNvtx(const char* type, const RecordView& view) {
    const auto record = view.as<NvtxRecord>();
    Line(type)
        .number("thread", view.threadIndex)
        .id("name", record.name)
        .id("domain", record.domain)
        .id("rangeId", record.rangeId)
        .number("seq", record.seq)
        .number("timeNs", record.timeNs);
}

void printRecord(const RecordView& view) {
    const uint16_t aux = view.head().aux;
    switch (view.type()) {
        case RecordType::string: {
            const auto record = view.as<StringRecord>();
            Line("string").id("id", record.id).text("text", view.text());
            break;
        }
        case RecordType::metadata:
            Line("metadata").text("key", view.key()).text("value", view.value());
            break;
        case RecordType::thread: {
            const auto record = view.as<ThreadRecord>();
            Line("thread").number("thread", record.threadIndex).number("tid", record.tid).id("name", record.name);
            break;
        }
        case RecordType::apiCall: {
            const auto record = view.as<ApiCallRecord>();
            Line("apiCall")
                .number("thread", view.threadIndex)
                .number("api", aux)
                .number("seq", record.seq)
                .number("startNs", record.startNs)
                .number("endNs", record.endNs)
                .id("argument", record.argument);
            break;
        }
        case RecordType::allocation: {
            const auto record = view.as<AllocationRecord>();
            Line("allocation").number("thread", view.threadIndex).number("api", aux).id("bytes", record.bytes);
            break;
        }
        case RecordType::ncclCall: {
            const auto record = view.as<NcclCallRecord>();
            Line("ncclCall")
                .number("thread", view.threadIndex)
                .number("op", aux)
                .id("count", record.count)
                .number("dataType", record.dataType)
                .number("result", record.result)
                .number("communicator", record.communicator)
                .number("startNs", record.startNs)
                .number("endNs", record.endNs);
            break;
        }
        case RecordType::communicator: {
            const auto record = view.as<CommunicatorRecord>();
            Line("communicator")
                .number("index", record.index)
                .id("hash", record.hash)
                .number("rank", record.rank)
                .number("nRanks", record.nRanks);
            break;
        }
        case RecordType::rankIdentity: {
            const auto record = view.as<RankIdentityRecord>();
            Line("rankIdentity")
                .number("rank", record.rank)
                .number("worldSize", record.worldSize)
                .number("device", record.device);
            break;
        }
        case RecordType::nvtxPush:
            printNvtx("nvtxPush", view);
            break;
        case RecordType::nvtxPop:
            printNvtx("nvtxPop", view);
            break;
        case RecordType::nvtxMark:
            printNvtx("nvtxMark", view);
            break;
        case RecordType::nvtxStart:
            printNvtx("nvtxStart", view);
            break;
        case RecordType::nvtxEnd:
            printNvtx("nvtxEnd", view);
            break;
        case RecordType::ncclPayload: {
            const auto record = view.as<NcclPayloadRecord>();
            Line("ncclPayload")
                .id("bytes", record.bytes)
                .id("schemaId", record.schemaId)
                .id("commHash", record.commHash)
                .number("redop", record.redop)
                .number("seq", record.seq);
            break;
        }
        case RecordType::machineLink: {
            const auto record = view.as<MachineLinkRecord>();
            Line("machineLink")
                .id("name", record.name)
                .number("kind", static_cast<int>(record.kind))
                .number("source", static_cast<int>(record.source))
                .number("device", record.device)
                .number("count", record.count)
                .number("generation", record.generation)
                .number("bytesPerS", record.bytesPerS);
            break;
        }
        case RecordType::kernel: {
            const auto record = view.as<KernelRecord>();
            Line("kernel")
                .number("stream", aux)
                .number("correlationId", record.correlationId)
                .number("startNs", record.startNs)
                .number("durNs", record.durNs)
                .id("nameIdLow", record.nameIdLow);
            break;
        }
        case RecordType::status: {
            const auto record = view.as<StatusRecord>();
            Line("status")
                .number("status", aux)
                .number("source", static_cast<int>(record.source))
                .number("code", record.code)
                .id("message", record.message);
            break;
        }
        case RecordType::pluginColl: {
            const auto record = view.as<PluginCollRecord>();
            Line("pluginColl")
                .number("op", aux)
                .id("commHash", record.commHash)
                .id("count", record.count)
                .number("algorithm", record.algorithm)
                .number("protocol", record.protocol)
                .number("pluginVersion", record.pluginVersion);
            break;
        }
        case RecordType::loss: {
            const auto record = view.as<LossRecord>();
            Line("loss")
                .number("kind", aux)
                .number("source", static_cast<int>(record.source))
                .id("count", record.count);
            break;
        }
        case RecordType::processEnd: {
            const auto record = view.as<ProcessEndRecord>();
            Line("processEnd").number("cause", aux).number("code", record.code);
            break;
        }
        default:
            Line("other").number("number", static_cast<int>(view.type())).number("aux", aux);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: capture_dump FILE.cap\n");
        return 2;
    }
    try {
        CaptureReader reader(argv[1]);
        printHeader(reader.header());
        while (const RecordView* view = reader.next()) printRecord(*view);
        for (const ReaderLoss& loss : reader.losses())
            Line("readerLoss")
                .text("kind", readerLossName(loss.kind))
                .id("count", loss.count)
                .text("message", loss.message);
    } catch (const CaptureError& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 3;
    }
    return 0;
}
