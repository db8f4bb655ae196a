// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/frameworks/torch/work.h"

#include <ATen/Context.h>

#include <algorithm>

#include "reference/vgpu/frameworks/torch/tensors.h"

namespace rankscope::torch_operators {
namespace {

/// The argument at `index` if it is a tensor, else an undefined one.
at::Tensor tensorAt(c10::ArrayRef<c10::IValue> arguments, size_t index) {
    return index < arguments.size() && arguments[index].isTensor() ? arguments[index].toTensor() : at::Tensor();
}

/// Products of matrices: 2 m n k for each of the batch.
double productFlop(const at::Tensor& a, const at::Tensor& b) {
    if (!a.defined() || !b.defined() || a.dim() < 2 || b.dim() < 2) return 0;
    return 2.0 * static_cast<double>(a.numel()) * static_cast<double>(b.size(-1));
}

/// Scores and their weighted sum: 2 products of seq x seq x head for each head of the batch. Half of it is skipped
/// where later tokens are masked. Q is (batch, heads, seq, head) or, below the flash kernels, (batch, seq, heads,
/// head).
double attentionFlop(const OperatorInfo& info, c10::ArrayRef<c10::IValue> arguments, size_t first) {
    const at::Tensor q = tensorAt(arguments, first), k = tensorAt(arguments, first + 1);
    if (!q.defined() || !k.defined() || q.dim() != 4 || k.dim() != 4) return 0;
    const bool isInner = info.name.rfind("aten::_flash", 0) == 0 || info.name.rfind("aten::_efficient", 0) == 0;
    const int64_t seq = k.size(isInner ? 1 : 2);
    bool isCausal = false;
    const auto& names = info.handle->schema().arguments();
    for (size_t i = 0; i < names.size() && i < arguments.size(); i++)
        if (names[i].name() == "is_causal" && arguments[i].isBool()) isCausal = arguments[i].toBool();
    return 4.0 * static_cast<double>(q.numel()) * static_cast<double>(seq) * (isCausal ? 0.5 : 1);
}

/// Per result element one product with the weights of its output channel.
double convolutionFlop(const at::Tensor& result, const at::Tensor& weight) {
    if (!result.defined() || !weight.defined() || weight.dim() < 3) return 0;
    return 2.0 * static_cast<double>(result.numel()) * static_cast<double>(weight.numel()) /
           static_cast<double>(weight.size(0));
}

RankscopeElement elementOf(at::ScalarType type) {
    switch (type) {
        case at::kHalf:
        case at::kBFloat16:
            return RANKSCOPE_ELEMENT_BF16;
        case at::kFloat8_e4m3fn:
        case at::kFloat8_e5m2:
        case at::kChar:
        case at::kByte:
            return RANKSCOPE_ELEMENT_FP8;
        case at::kDouble:
        case at::kComplexDouble:
            return RANKSCOPE_ELEMENT_FP64;
        default:
            return RANKSCOPE_ELEMENT_FP32;
    }
}

RankscopeElement elementOf(const OperatorInfo& info, c10::ArrayRef<c10::IValue> arguments) {
    for (const c10::IValue& argument : arguments) {
        RankscopeElement element = RANKSCOPE_ELEMENT_FP32;
        bool isFound = false;
        forEachTensor(argument, [&](const at::Tensor& tensor) {
            if (isFound) return;
            isFound = true;
            element = elementOf(tensor.scalar_type());
        });
        if (!isFound) continue;
        const bool mayRound = element == RANKSCOPE_ELEMENT_FP32 && info.arithmetic != Arithmetic::none;
        return mayRound && at::globalContext().allowTF32CuBLAS() ? RANKSCOPE_ELEMENT_TF32 : element;
    }
    return RANKSCOPE_ELEMENT_FP32;
}

double flopOf(const OperatorInfo& info, c10::ArrayRef<c10::IValue> arguments) {
    switch (info.arithmetic) {
        case Arithmetic::mm:
            return productFlop(tensorAt(arguments, 0), tensorAt(arguments, 1));
        case Arithmetic::addmm:
            return productFlop(tensorAt(arguments, 1), tensorAt(arguments, 2));
        case Arithmetic::attention:
            return attentionFlop(info, arguments, 0);
        case Arithmetic::attentionBack:
            return 2.5 * attentionFlop(info, arguments, 1);  // five products, where forward has two
        case Arithmetic::convolutionBack: {
            double parts = 0;
            if (!arguments.empty() && arguments.back().isBoolList())
                for (size_t i = 0; i < 2 && i < arguments.back().toBoolList().size(); i++)
                    parts += arguments.back().toBoolList().get(i) ? 1 : 0;
            return parts * convolutionFlop(tensorAt(arguments, 0), tensorAt(arguments, 2));
        }
        default:
            return 0;
    }
}

double bytesOf(const c10::IValue& value) {
    double bytes = 0;
    forEachTensor(value, [&](const at::Tensor& tensor) {
        if (tensor.is_cuda()) bytes += touchedBytes(tensor);
    });
    return bytes;
}

}  // namespace

RankscopeWork workOfArguments(const OperatorInfo& info, c10::ArrayRef<c10::IValue> arguments) {
    RankscopeWork work{flopOf(info, arguments), 0, elementOf(info, arguments)};
    if (!info.handle) {  // of an operator that is not the framework's own only the arguments are known
        for (const c10::IValue& argument : arguments) work.bytes += bytesOf(argument);
        return work;
    }
    const auto& schema = info.handle->schema().arguments();
    for (size_t i = 0; i < arguments.size() && i < schema.size(); i++) {
        const double bytes = bytesOf(arguments[i]);
        const bool isWritten = schema[i].alias_info() && schema[i].alias_info()->isWrite();
        // Optimizers may unscale their gradients in place, but seldom have to.
        const bool writes = isWritten && schema[i].name() != "grads";
        const bool reads = !isWritten || (info.reading == Reading::all && !schema[i].is_out());
        if (info.reading == Reading::rows && i == 0) continue;
        work.bytes += bytes * ((reads ? 1 : 0) + (writes ? 1 : 0));
    }
    return work;
}

void addResults(RankscopeWork& work, const OperatorInfo& info, c10::ArrayRef<c10::IValue> arguments,
                c10::ArrayRef<c10::IValue> results) {
    double written = 0;
    const auto* schema = info.handle ? &info.handle->schema().returns() : nullptr;
    for (size_t i = 0; i < results.size(); i++)
        if (!schema || i >= schema->size() || !(*schema)[i].alias_info()) written += bytesOf(results[i]);
    if (info.reading == Reading::rows) {
        // Rows that are read are those that are written; rows changed in place are as large as their values.
        if (info.mutates)
            for (size_t i = 1; i < arguments.size(); i++) written = std::max(written, bytesOf(arguments[i]));
        written *= 2;
    }
    work.bytes += written;
    if (info.arithmetic == Arithmetic::convolution && !results.empty() && results[0].isTensor())
        work.flop = convolutionFlop(results[0].toTensor(), tensorAt(arguments, 1));
}

}  // namespace rankscope::torch_operators
