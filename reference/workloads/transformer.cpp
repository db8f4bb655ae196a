// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/transformer.h"

#include <algorithm>

namespace rankscope::reference {

namespace {

constexpr int64_t kTile = 128;               // edge of the tile that one block of a matrix product computes
constexpr int64_t kElementsPerBlock = 4096;  // of a kernel that only streams memory
constexpr double kBackwardTimes = 2;

int64_t divideUp(int64_t value, int64_t by) {
    return std::max<int64_t>(1, (value + by - 1) / by);
}

LayerKernel streaming(Kernel kernel, int64_t elements, double flopEach, double bytesEach) {
    const double count = static_cast<double>(elements);
    return {kernel, {count * flopEach, count * bytesEach}, divideUp(elements, kElementsPerBlock), 0};
}

}  // namespace

/// `weights`: matrices of inputs x outputs that the rows are spread over.
LayerKernel Transformer::gemm(Kernel kernel, int64_t rowCount, int64_t inputs, int64_t outputs, double times,
                              int64_t weights) const {
    const double rows = static_cast<double>(rowCount);
    const double in = static_cast<double>(inputs);
    const double out = static_cast<double>(outputs);
    const double bytes = static_cast<double>(dtypeBytes(m_model.dtype)) *
                         (rows * in + static_cast<double>(weights) * in * out + rows * out);
    return {kernel,
            {times * 2 * rows * in * out, times * bytes},
            divideUp(rowCount, kTile) * divideUp(outputs, kTile),
            weights * inputs * outputs};
}

LayerKernel Transformer::attention(Kernel kernel, double times) const {
    const double elements = static_cast<double>(activationElements() / m_share.tensor);
    const double flop = 4 * elements * static_cast<double>(m_model.seq);
    // Fused attention reads queries, keys and values and writes the output; the scores stay on the chip.
    const double bytes = 4 * elements * static_cast<double>(dtypeBytes(m_model.dtype));
    const int64_t heads = divideUp(m_model.hidden / m_share.tensor, kTile);
    return {kernel, {times * flop, times * bytes}, m_model.microBatch * heads * divideUp(m_model.seq, kTile), 0};
}

LayerKernel Transformer::norm(Kernel kernel, double times) const {
    const int64_t parts = m_share.sequence ? m_share.tensor : 1;
    const double elements = static_cast<double>(activationElements() / parts);
    // Residual added on the way: two tensors read, one written.
    const double bytes = 3 * elements * static_cast<double>(dtypeBytes(m_model.dtype));
    return {kernel, {times * 8 * elements, times * bytes}, divideUp(tokens() / parts, 4), 2 * m_model.hidden};
}

LayerKernel Transformer::qkv(Kernel kernel, double times) const {
    const int64_t outputs = 3 * m_model.hidden / m_share.tensor;
    LayerKernel result = gemm(kernel, tokens(), m_model.hidden, outputs, times, 1);
    result.parameters += outputs;
    return result;
}

LayerKernel Transformer::projection(Kernel kernel, double times) const {
    LayerKernel result = gemm(kernel, tokens(), m_model.hidden / m_share.tensor, m_model.hidden, times, 1);
    result.parameters += m_model.hidden;
    return result;
}

LayerKernel Transformer::mlp(Kernel kernel, int64_t inputs, int64_t outputs, double times, int64_t biases) const {
    const int64_t weights = std::max(1, m_share.localExperts);
    LayerKernel result =
        gemm(kernel, m_share.experts ? m_share.expertTokens : tokens(), inputs, outputs, times, weights);
    result.parameters += weights * biases;
    return result;
}

LayerKernel Transformer::mlpUp(Kernel kernel, double times) const {
    const int64_t inner = 4 * m_model.hidden / m_share.tensor;
    return mlp(kernel, m_model.hidden, inner, times, inner);
}

LayerKernel Transformer::mlpDown(Kernel kernel, double times) const {
    return mlp(kernel, 4 * m_model.hidden / m_share.tensor, m_model.hidden, times, m_model.hidden);
}

LayerKernel Transformer::router(Kernel kernel, double times) const {
    return gemm(kernel, tokens(), m_model.hidden, m_share.experts, times, 1);
}

LayerKernel Transformer::permute(Kernel kernel) const {
    return streaming(kernel, activationElements(), 0, 2 * static_cast<double>(dtypeBytes(m_model.dtype)));
}

std::vector<LayerKernel> Transformer::forward() const {
    return {norm(Kernel::layerNormForward, 1),      qkv(Kernel::qkvGemmForward, 1),
            attention(Kernel::attentionForward, 1), projection(Kernel::projectionGemmForward, 1),
            norm(Kernel::layerNormForward, 1),      mlpUp(Kernel::mlpUpGemmForward, 1),
            mlpDown(Kernel::mlpDownGemmForward, 1)};
}

std::vector<LayerKernel> Transformer::backward() const {
    return {mlpDown(Kernel::mlpDownGemmBackward, kBackwardTimes),
            mlpUp(Kernel::mlpUpGemmBackward, kBackwardTimes),
            norm(Kernel::layerNormBackward, kBackwardTimes),
            projection(Kernel::projectionGemmBackward, kBackwardTimes),
            attention(Kernel::attentionBackward, kBackwardTimes),
            qkv(Kernel::qkvGemmBackward, kBackwardTimes),
            norm(Kernel::layerNormBackward, kBackwardTimes)};
}

LayerKernel Transformer::embedding() const {
    return streaming(Kernel::embeddingForward, activationElements(), 0,
                     2 * static_cast<double>(dtypeBytes(m_model.dtype)));
}

LayerKernel Transformer::loss() const {
    return streaming(Kernel::crossEntropyLoss, activationElements(), 4,
                     2 * static_cast<double>(dtypeBytes(m_model.dtype)));
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
