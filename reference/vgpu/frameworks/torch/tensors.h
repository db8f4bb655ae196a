// SPDX-License-Identifier: Apache-2.0
// The tensors among the arguments and results of an operator.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace rankscope::torch_operators {

/// Calls `visit(tensor)` for each defined tensor of a value.
template <class Visit>
void forEachTensor(const c10::IValue& value, Visit&& visit) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) visit(value.toTensor());
    } else if (value.isList()) {
        for (const c10::IValue& element : value.toListRef()) {
            if (!element.isTensor()) {
                if (!element.isNone()) return;  // a list of numbers
                continue;
            }
            if (element.toTensor().defined()) visit(element.toTensor());
        }
    }
}

/// Bytes that a kernel touches which goes over all of it: what is repeated by a stride of 0 is there once.
inline double touchedBytes(const at::Tensor& tensor) {
    double elements = 1;
    for (int64_t i = 0; i < tensor.dim(); i++)
        if (tensor.stride(i) != 0 || tensor.size(i) == 0) elements *= static_cast<double>(tensor.size(i));
    return elements * static_cast<double>(tensor.element_size());
}

/// A tensor whose memory is what it says: no subclass written in Python, no sparse or quantised layout, no lazy sign.
inline bool isPlain(const at::Tensor& tensor) {
    if (tensor.layout() != at::kStrided || !tensor.has_storage()) return false;
    return !tensor.key_set().has_any(c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::Functionalize,
                                                          c10::DispatchKey::Conjugate, c10::DispatchKey::Negative,
                                                          c10::DispatchKey::Quantized})) &&
           !tensor.is_quantized();
}

/// A subclass written in Python: its operators are made of those of the tensors within.
inline bool isWrapper(const at::Tensor& tensor) {
    return tensor.key_set().has_any(c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::Functionalize}));
}

}  // namespace rankscope::torch_operators
