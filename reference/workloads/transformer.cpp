// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/transformer.h"

#include <algorithm>

namespace rankscope::reference {

namespace {

constexpr int64_t kTile = 128;                  // edge of the tile that one block of a matrix product computes
constexpr int64_t kElementsPerBlock = 4096;     // of a kernel that only streams memory
constexpr double kBackwardTimes = 2;

int64_t divideUp(int64_t value, int64_t by) { return std::max<int64_t>(1, (value + by - 1) / by); }

LayerKernel streaming(Kernel kernel, int64_t elements, double flopEach, double bytesEach) {
    const double count = static_cast<double>(elements);
    return {kernel, {count * flopEach, count * bytesEach}, divideUp(elements, kElementsPerBlock), 0};
}

}  // namespace

LayerKernel Transformer::gemm(Kernel kernel, int64_t inputs, int64_t outputs, double times, int64_t parameters) const {
    const double rows = static_cast<double>(tokens());
    const double in = static_cast<double>(inputs);
    const double out = static_cast<double>(outputs);
    const double bytes = static_cast<double>(dtypeBytes(m_model.dtype)) * (rows * in + in * out + rows * out);
    return {kernel, {times * 2 * rows * in * out, times * bytes}, divideUp(tokens(), kTile) * divideUp(outputs, kTile), parameters};
}

LayerKernel Transformer::attention(Kernel kernel, double times) const {
    const double elements = static_cast<double>(activationElements());
    const double flop = 4 * elements * static_cast<double>(m_model.seq);
    // Fused attention reads queries, keys and values and writes the output; the scores stay on the chip.
    const double bytes = 4 * elements * static_cast<double>(dtypeBytes(m_model.dtype));
    const int64_t heads = divideUp(m_model.hidden, kTile);
    return {kernel, {times * flop, times * bytes}, m_model.microBatch * heads * divideUp(m_model.seq, kTile), 0};
}

LayerKernel Transformer::norm(Kernel kernel, double times, int64_t parameters) const {
    const double elements = static_cast<double>(activationElements());
    // Residual added on the way: two tensors read, one written.
    const double bytes = 3 * elements * static_cast<double>(dtypeBytes(m_model.dtype));
    return {kernel, {times * 8 * elements, times * bytes}, divideUp(tokens(), 4), parameters};
}

std::vector<LayerKernel> Transformer::forward() const {
    const int64_t h = m_model.hidden;
    return {norm(Kernel::layerNormForward, 1, 0),
            gemm(Kernel::qkvGemmForward, h, 3 * h, 1, 0),
            attention(Kernel::attentionForward, 1),
            gemm(Kernel::projectionGemmForward, h, h, 1, 0),
            norm(Kernel::layerNormForward, 1, 0),
            gemm(Kernel::mlpUpGemmForward, h, 4 * h, 1, 0),
            gemm(Kernel::mlpDownGemmForward, 4 * h, h, 1, 0)};
}

std::vector<LayerKernel> Transformer::backward() const {
    const int64_t h = m_model.hidden;
    return {gemm(Kernel::mlpDownGemmBackward, 4 * h, h, kBackwardTimes, 4 * h * h + h),
            gemm(Kernel::mlpUpGemmBackward, h, 4 * h, kBackwardTimes, 4 * h * h + 4 * h),
            norm(Kernel::layerNormBackward, kBackwardTimes, 2 * h),
            gemm(Kernel::projectionGemmBackward, h, h, kBackwardTimes, h * h + h),
            attention(Kernel::attentionBackward, kBackwardTimes),
            gemm(Kernel::qkvGemmBackward, h, 3 * h, kBackwardTimes, 3 * h * h + 3 * h),
            norm(Kernel::layerNormBackward, kBackwardTimes, 2 * h)};
}

LayerKernel Transformer::embedding() const {
    return streaming(Kernel::embeddingForward, activationElements(), 0, 2 * static_cast<double>(dtypeBytes(m_model.dtype)));
}

LayerKernel Transformer::loss() const {
    return streaming(Kernel::crossEntropyLoss, activationElements(), 4, 2 * static_cast<double>(dtypeBytes(m_model.dtype)));
}

LayerKernel Transformer::adam(int64_t elements, int64_t gradientBytes) {
    return streaming(Kernel::adamStep, elements, 12, 24 + static_cast<double>(gradientBytes));
}

LayerKernel Transformer::cast(int64_t elements, int64_t parameterBytes) {
    return streaming(Kernel::castParameters, elements, 1, 4 + static_cast<double>(parameterBytes));
}

LayerKernel Transformer::accumulate(int64_t elements, int64_t gradientBytes) {
    return streaming(Kernel::accumulateGradient, elements, 1, 3 * static_cast<double>(gradientBytes));
}

}  // namespace rankscope::reference
