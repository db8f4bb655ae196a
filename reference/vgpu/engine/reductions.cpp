// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/engine/reductions.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rankscope::vgpu {
namespace {

// Small floating point formats are widened, reduced and rounded once to the nearest even value.
template <int ExponentBits, int MantissaBits>
struct SmallFloat {
    using Storage = std::conditional_t<(ExponentBits + MantissaBits > 7), uint16_t, uint8_t>;
    static constexpr int kBias = (1 << (ExponentBits - 1)) - 1;

    static constexpr bool kIsUpperHalf =
        ExponentBits == 8 && MantissaBits == 7;  // bfloat16 is the upper half of a float

    static float widen(Storage bits) {
        if constexpr (kIsUpperHalf) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
        uint32_t sign = static_cast<uint32_t>(bits >> (ExponentBits + MantissaBits)) << 31;
        uint32_t exponent = (bits >> MantissaBits) & ((1u << ExponentBits) - 1);
        uint32_t mantissa = bits & ((1u << MantissaBits) - 1);
        float value;
        if (exponent == 0 && ExponentBits == 8) {
            value = std::bit_cast<float>(mantissa << (23 - MantissaBits));  // float's own subnormals, zero among them
        } else if (exponent == 0) {
            value = static_cast<float>(mantissa) *
                    std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - kBias - MantissaBits) << 23);
        } else if (exponent == (1u << ExponentBits) - 1 && ExponentBits != 4) {
            value = std::bit_cast<float>(0x7f800000u | (mantissa << (23 - MantissaBits)));
        } else {
            value = std::bit_cast<float>(((exponent + 127 - kBias) << 23) | (mantissa << (23 - MantissaBits)));
        }
        return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
    }

    static Storage narrow(float value) {
        uint32_t bits = std::bit_cast<uint32_t>(value);
        auto sign = static_cast<Storage>((bits >> 31) << (ExponentBits + MantissaBits));
        bits &= 0x7fffffffu;
        if constexpr (kIsUpperHalf) {
            if (bits <= 0x7f800000u) return static_cast<Storage>(sign | ((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16));
        }
        constexpr int kShift = 23 - MantissaBits;
        constexpr uint32_t kTop = ((1u << ExponentBits) - 1) << MantissaBits;
        if (bits > 0x7f800000u) return static_cast<Storage>(sign | kTop | ((1u << MantissaBits) - 1));
        const bool subnormal = bits < 0x800000u;  // zero among them: no implicit leading one
        int exponent = std::max(static_cast<int>(bits >> 23), 1) - 127 + kBias;
        uint32_t mantissa = (bits & 0x7fffffu) | (subnormal ? 0u : 0x800000u);
        int shift = kShift;
        if (exponent <= 0 || subnormal) {
            shift += 1 - exponent;
            exponent = 0;
            if (shift > 25) return sign;
        } else {
            mantissa &= 0x7fffffu;
        }
        uint64_t rounded = (static_cast<uint64_t>(exponent) << MantissaBits << shift) + mantissa;
        uint64_t half = (uint64_t{1} << shift) >> 1;
        uint64_t result = (rounded + half - 1 + ((rounded >> shift) & 1)) >> shift;
        uint64_t limit = ExponentBits == 4 ? kTop | ((1u << MantissaBits) - 2) : kTop;  // e4m3 has no infinity
        return static_cast<Storage>(sign | static_cast<Storage>(std::min(result, limit)));
    }
};

using Half = SmallFloat<5, 10>;
using Bfloat = SmallFloat<8, 7>;
using Fp8E4M3 = SmallFloat<4, 3>;
using Fp8E5M2 = SmallFloat<5, 2>;

template <typename T>
void combine(ncclRedOp_t op, T* values, const T* more, size_t count) {
    switch (op) {
        case ncclProd:
            for (size_t i = 0; i < count; i++) values[i] = static_cast<T>(values[i] * more[i]);
            return;
        case ncclMin:
            for (size_t i = 0; i < count; i++) values[i] = std::min(values[i], more[i]);
            return;
        case ncclMax:
            for (size_t i = 0; i < count; i++) values[i] = std::max(values[i], more[i]);
            return;
        default:
            for (size_t i = 0; i < count; i++) values[i] = static_cast<T>(values[i] + more[i]);
            return;
    }
}

constexpr size_t kBlockElements = 256;

template <typename T, typename Load, typename Store>
void reduceAs(const Reduction& reduction, const std::byte* const* inputs, size_t inputCount, std::byte* out,
              size_t count, size_t width, Load load, Store store) {
    T values[kBlockElements]{}, next[kBlockElements];
    for (size_t first = 0; first < count; first += kBlockElements) {
        const size_t block = std::min(kBlockElements, count - first);
        for (size_t k = 0; k < inputCount; k++) {
            T* into = k == 0 ? values : next;
            const std::byte* from = inputs[k] + first * width;
            for (size_t i = 0; i < block; i++) into[i] = load(from + i * width);
            if (reduction.preScale != 1)
                for (size_t i = 0; i < block; i++)
                    into[i] = static_cast<T>(static_cast<double>(into[i]) * reduction.preScale);
            if (k > 0) combine(reduction.op, values, next, block);
        }
        if (reduction.op == ncclAvg)
            for (size_t i = 0; i < block; i++) values[i] = static_cast<T>(values[i] / static_cast<T>(inputCount));
        for (size_t i = 0; i < block; i++) store(out + (first + i) * width, values[i]);
    }
}

template <typename T>
void reducePlain(const Reduction& r, const std::byte* const* inputs, size_t n, std::byte* out, size_t bytes) {
    reduceAs<T>(
        r, inputs, n, out, bytes / sizeof(T), sizeof(T),
        [](const std::byte* p) {
            T value;
            std::memcpy(&value, p, sizeof value);
            return value;
        },
        [](std::byte* p, T value) { std::memcpy(p, &value, sizeof value); });
}

template <typename Format>
void reduceSmall(const Reduction& r, const std::byte* const* inputs, size_t n, std::byte* out, size_t bytes) {
    using Storage = typename Format::Storage;
    reduceAs<float>(
        r, inputs, n, out, bytes / sizeof(Storage), sizeof(Storage),
        [](const std::byte* p) {
            Storage bits;
            std::memcpy(&bits, p, sizeof bits);
            return Format::widen(bits);
        },
        [](std::byte* p, float value) {
            Storage bits = Format::narrow(value);
            std::memcpy(p, &bits, sizeof bits);
        });
}

}  // namespace

size_t elementBytes(ncclDataType_t type) {
    switch (type) {
        case ncclInt8:
        case ncclUint8:
        case ncclFloat8e4m3:
        case ncclFloat8e5m2:
            return 1;
        case ncclFloat16:
        case ncclBfloat16:
            return 2;
        case ncclInt32:
        case ncclUint32:
        case ncclFloat32:
            return 4;
        case ncclInt64:
        case ncclUint64:
        case ncclFloat64:
            return 8;
        default:
            return 0;
    }
}

void reduceElements(const Reduction& reduction, const std::byte* const* inputs, size_t inputCount, std::byte* out,
                    size_t bytes) {
    switch (reduction.type) {
        case ncclInt8:
            return reducePlain<int8_t>(reduction, inputs, inputCount, out, bytes);
        case ncclUint8:
            return reducePlain<uint8_t>(reduction, inputs, inputCount, out, bytes);
        case ncclInt32:
            return reducePlain<int32_t>(reduction, inputs, inputCount, out, bytes);
        case ncclUint32:
            return reducePlain<uint32_t>(reduction, inputs, inputCount, out, bytes);
        case ncclInt64:
            return reducePlain<int64_t>(reduction, inputs, inputCount, out, bytes);
        case ncclUint64:
            return reducePlain<uint64_t>(reduction, inputs, inputCount, out, bytes);
        case ncclFloat32:
            return reducePlain<float>(reduction, inputs, inputCount, out, bytes);
        case ncclFloat64:
            return reducePlain<double>(reduction, inputs, inputCount, out, bytes);
        case ncclFloat16:
            return reduceSmall<Half>(reduction, inputs, inputCount, out, bytes);
        case ncclBfloat16:
            return reduceSmall<Bfloat>(reduction, inputs, inputCount, out, bytes);
        case ncclFloat8e4m3:
            return reduceSmall<Fp8E4M3>(reduction, inputs, inputCount, out, bytes);
        case ncclFloat8e5m2:
            return reduceSmall<Fp8E5M2>(reduction, inputs, inputCount, out, bytes);
        default:
            return;
    }
}

}  // namespace rankscope::vgpu
