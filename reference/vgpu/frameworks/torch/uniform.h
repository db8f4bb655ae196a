// SPDX-License-Identifier: Apache-2.0
// Large tensors are not computed, and hold zeros. What a function of each element makes of zeros need not be zero:
// exp(0) is 1, and the sum of that over a vocabulary is what a loss takes the logarithm of. So of large tensors whose
// elements would all have one value other than 0 that value is kept here, and their sums, means and extremes tell it,
// as do operators that are computed of a part of it, or up to a higher limit.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <utility>
#include <vector>

#include "reference/vgpu/frameworks/torch/operator_info.h"

namespace rankscope::torch_operators {

/// The value of each element of what lies at an address of the device; 0 if none is kept. In the order of effects.
double uniformValueAt(const void* memory);
void keepUniformValue(const void* memory, size_t bytes, double value);

/// What a kernel for the CPU takes for a tensor, of the device's memory, that it reads, or also writes: a tensor of the
/// value that is kept for it; in memory that it writes that value is put first, and kept no longer. A dense one is kept
/// in parts if the tensor is a part; of others the value stays, as that of most of what lies there.
at::Tensor withUniformValue(const at::Tensor& tensor, bool isWritten);
/// A dense tensor has values of its own in memory from now on.
void tellWritten(const at::Tensor& tensor);

/// What a large operator would leave, by one element of each of its arguments. Made when the operator is called, and
/// asked in the order of the stream.
class OneElement {
  public:
    /// Tensors beyond `smallBytes` are large. None for operators of which one element does not tell the others: all but
    /// functions of each element, copies, sums, means and extremes.
    static std::optional<OneElement> of(const OperatorInfo& info, const std::vector<c10::IValue>& arguments,
                                        const at::Tensor& result, uint64_t smallBytes);
    /// 0 where the value is not finite, or cannot be told.
    double value() const;

  private:
    OneElement(c10::OperatorHandle handle) : m_handle(std::move(handle)) {}

    struct Argument {
        c10::IValue value;     ///< what is no tensor of the device
        at::Tensor first;      ///< its first element, as memory of the host; undefined: no tensor of the device
        bool isLarge = false;  ///< its elements have the value that is kept for it
    };
    c10::OperatorHandle m_handle;
    std::vector<Argument> m_arguments;
    std::optional<size_t> m_passed;  ///< the one argument that is kept here has the result's value, but for the next
    double m_elementsEach = 1;       ///< of a sum: how many elements go into one
};

}  // namespace rankscope::torch_operators
