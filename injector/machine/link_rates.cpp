// SPDX-License-Identifier: Apache-2.0
#include "injector/machine/link_rates.h"

#include <cstring>
#include <initializer_list>

namespace rankscope::machine {
namespace {

constexpr int64_t kMostMbitPerS = 10'000'000;

bool isDigit(char character) noexcept {
    return character >= '0' && character <= '9';
}

/// The decimal number in front of `text` in thousandths, and what follows it; -1 when there is none or it is absurd.
int64_t takeThousandths(const char*& text) noexcept {
    if (!isDigit(*text)) return -1;
    int64_t whole = 0;
    for (; isDigit(*text); ++text) {
        whole = whole * 10 + (*text - '0');
        if (whole > kMostMbitPerS) return -1;
    }
    int64_t fraction = 0;
    int64_t unit = 100;
    if (*text == '.')
        for (++text; isDigit(*text); ++text, unit /= 10) fraction += (*text - '0') * unit;
    return whole * 1000 + fraction;
}

/// Of a rate in Mbit/s.
int64_t bytesOf(int64_t mbitPerS, int64_t kept, int64_t of) noexcept {
    if (mbitPerS <= 0 || mbitPerS > kMostMbitPerS) return 0;
    return mbitPerS * 125'000 * kept / of;
}

}  // namespace

int64_t portBytesPerS(const char* rate, bool isInfiniband) noexcept {
    const int64_t mbitPerS = takeThousandths(rate);
    if (mbitPerS < 0 || std::strncmp(rate, " Gb/sec", 7) != 0) return 0;
    if (!isInfiniband) return bytesOf(mbitPerS, 1, 1);
    const char* lanes = std::strchr(rate, 'X');
    const char* name = lanes == nullptr ? "" : lanes + 1;
    for (const char* eightOfTen : {" SDR)", " DDR)", " QDR)"})
        if (std::strcmp(name, eightOfTen) == 0) return bytesOf(mbitPerS, 8, 10);
    if (std::strcmp(name, " FDR)") == 0) return bytesOf(mbitPerS, 64, 66);
    return bytesOf(mbitPerS, 1, 1);
}

int64_t ethernetBytesPerS(const char* speed) noexcept {
    const int64_t thousandths = takeThousandths(speed);
    return thousandths < 0 || *speed != '\0' ? 0 : bytesOf(thousandths / 1000, 1, 1);
}

int64_t nvlinkBytesPerS(uint32_t megabytesPerS) noexcept {
    // Some drivers tell the line's rate, as `nvidia-smi nvlink -s` prints it: 25.781 GB/s on V100 (64 of 66 bits are
    // data), 26.562 GB/s on H100 and 53.125 GB/s on B200 (16 of 17), where the links carry the 25 and 50 GB/s of the
    // data sheets.
    switch (megabytesPerS) {
        case 25'781:
            return 25'000'000'000;
        case 26'562:
            return 25'000'000'000;
        case 53'125:
            return 50'000'000'000;
        default:
            return megabytesPerS * int64_t{8} > kMostMbitPerS ? 0 : megabytesPerS * int64_t{1'000'000};
    }
}

int64_t pcieBytesPerS(uint32_t generation, uint32_t lanes) noexcept {
    if (lanes == 0 || lanes > 32) return 0;
    switch (generation) {
        case 1:
            return bytesOf(2'500, 8, 10) * lanes;
        case 2:
            return bytesOf(5'000, 8, 10) * lanes;
        case 3:
            return bytesOf(8'000, 128, 130) * lanes;
        case 4:
            return bytesOf(16'000, 128, 130) * lanes;
        case 5:
            return bytesOf(32'000, 128, 130) * lanes;
        case 6:
            return bytesOf(64'000, 242, 256) * lanes;  // 236 bytes of data and 6 of link layer in a flit of 256
        default:
            return 0;
    }
}

}  // namespace rankscope::machine
