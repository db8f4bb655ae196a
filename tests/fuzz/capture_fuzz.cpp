// SPDX-License-Identifier: Apache-2.0
// A capture file and the ring beside it: 4 bytes tell the length of the first. Checksums are put right, so that what
// lies behind them is reached.
#include <algorithm>
#include <cstddef>
#include <string>

#include "injector/capture_format/crc32c.h"
#include "injector/capture_format/reader.h"
#include "tests/fuzz/fuzz_input.h"

using namespace rankscope;
using namespace rankscope::capture;

namespace {

void repair(std::string& bytes) {
    if (bytes.size() >= sizeof(FileHeader)) {
        const uint32_t sum = crc32c(bytes.data(), offsetof(FileHeader, headerChecksum));
        std::memcpy(bytes.data() + offsetof(FileHeader, headerChecksum), &sum, sizeof sum);
    }
    for (size_t at = kFileHeaderBytes; at + sizeof(BlockHeader) <= bytes.size();) {
        BlockHeader header;
        std::memcpy(&header, bytes.data() + at, sizeof header);
        if (header.magic != kBlockMagic) {
            ++at;
            continue;
        }
        const size_t payload = std::min<size_t>(header.payloadBytes, bytes.size() - at - sizeof header);
        header.payloadCrc = crc32c(bytes.data() + at + sizeof header, payload);
        header.headerCrc = crc32c(&header, offsetof(BlockHeader, headerCrc));
        std::memcpy(bytes.data() + at, &header, sizeof header);
        at += sizeof header + payload;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    if (bytes < 4) return 0;
    uint32_t length = 0;
    std::memcpy(&length, data, sizeof length);
    const std::string_view whole = fuzz::textOf(data, bytes).substr(4);
    std::string capture(whole.substr(0, length));
    repair(capture);
    const auto path = fuzz::folder().write("host.1.2.cap", capture);
    fuzz::folder().write("host.1.2.ring", whole.size() > length ? whole.substr(length) : "");
    try {
        CaptureReader reader(path.string());
        while (reader.next() != nullptr) {
        }
        for (const ReaderLoss& loss : reader.losses())
            if (loss.message.empty()) __builtin_trap();
    } catch (const CaptureError&) {
    }
    return 0;
}
