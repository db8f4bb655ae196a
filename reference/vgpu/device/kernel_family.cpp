// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/kernel_family.h"

#include <cstdlib>

namespace rankscope::vgpu {
namespace {

// PyTorch 2.9 to 2.15, aten/src/ATen/native/cuda/CUDALoops.cuh and MemoryAccess.cuh: a kernel for one operation on
// every element takes the number of elements first, and where it is vectorised or unrolled, the tensors as an array of
// char*.
constexpr std::string_view kElementwise = "elementwise_kernel", kArrayOfTensors = "St5arrayIPcLm";
constexpr double kUsualTensors = 3;    // two operands and a result
constexpr double kItemsPerThread = 4;  // thread_work_size

constexpr std::string_view kTorch = "_ZN2at", kTriton = "triton_";
constexpr std::string_view kComputing[] = {"gemm", "flash", "fmha", "cutlass", "conv"};

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// As far as the operation's own types are in the name; PyTorch's default else.
double elementBytes(std::string_view name) {
    return contains(name, "BFloat16") || contains(name, "c104Half") ? 2 : 4;
}

double tensorsOf(std::string_view name) {
    const size_t at = name.find(kArrayOfTensors);
    if (at == std::string_view::npos) return kUsualTensors;
    const double count = std::atoi(name.data() + at + kArrayOfTensors.size());
    return count > 0 ? count : kUsualTensors;
}

}  // namespace

std::optional<KernelFamily> kernelFamily(std::string_view name) {
    if (!name.starts_with(kTorch) && !name.starts_with(kTriton)) return std::nullopt;
    for (const std::string_view part : kComputing)
        if (contains(name, part)) return std::nullopt;
    KernelFamily family;
    family.countsElements = name.starts_with(kTorch) && contains(name, kElementwise);
    family.bytesPerElement = tensorsOf(name) * elementBytes(name);
    family.bytesPerThread = kItemsPerThread * kUsualTensors * elementBytes(name);
    return family;
}

}  // namespace rankscope::vgpu
