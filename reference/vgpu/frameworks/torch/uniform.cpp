// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/frameworks/torch/uniform.h"

#include <ATen/core/enum_tag.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "reference/vgpu/frameworks/torch/tensors.h"

namespace rankscope::torch_operators {
namespace {

struct Range {
    uintptr_t end;
    double value;
};

class Ranges {
  public:
    double at(const void* memory) {
        const std::lock_guard guard(m_mutex);
        const auto address = reinterpret_cast<uintptr_t>(memory);
        auto after = m_ranges.upper_bound(address);
        if (after == m_ranges.begin()) return 0;
        const auto& [begin, range] = *--after;
        return address < range.end ? range.value : 0;
    }
    void keep(const void* memory, size_t bytes, double value) {
        const std::lock_guard guard(m_mutex);
        const auto begin = reinterpret_cast<uintptr_t>(memory), end = begin + bytes;
        cutAt(begin);
        cutAt(end);
        m_ranges.erase(m_ranges.lower_bound(begin), m_ranges.lower_bound(end));
        if (value != 0) m_ranges[begin] = {end, value};
    }

  private:
    /// Makes two of the range that goes over that address.
    void cutAt(uintptr_t address) {
        const auto after = m_ranges.lower_bound(address);
        if (after == m_ranges.begin()) return;
        Range& before = std::prev(after)->second;
        if (before.end <= address) return;
        m_ranges.emplace_hint(after, address, before);
        before.end = address;
    }

    std::mutex m_mutex;
    std::map<uintptr_t, Range> m_ranges;
};
Ranges& ranges() {
    static auto* all = new Ranges;
    return *all;
}

/// Which argument's value an operator passes on; none: it makes another of it.
std::optional<size_t> passedOn(const OperatorInfo& info) {
    static const std::map<std::string, size_t> names{{"aten::sum", 0},  {"aten::mean", 0},  {"aten::amax", 0},
                                                     {"aten::amin", 0}, {"aten::clone", 0}, {"aten::_to_copy", 0},
                                                     {"aten::copy_", 1}};
    const auto found = names.find(info.name);
    return found == names.end() ? std::nullopt : std::optional(found->second);
}

at::Tensor firstElement(const at::Tensor& tensor) {
    return at::from_blob(tensor.data_ptr(), {1}, at::TensorOptions().dtype(tensor.dtype()).device(at::kCPU));
}

}  // namespace

double uniformValueAt(const void* memory) {
    return ranges().at(memory);
}
void keepUniformValue(const void* memory, size_t bytes, double value) {
    ranges().keep(memory, bytes, value);
}

at::Tensor withUniformValue(const at::Tensor& tensor, bool isWritten) {
    if (!tensor.defined() || tensor.numel() == 0) return tensor;
    const double value = uniformValueAt(tensor.data_ptr());
    if (value != 0 && !isWritten) return at::full(tensor.sizes(), value, tensor.options());
    if (value != 0) tensor.fill_(value);
    if (isWritten) tellWritten(tensor);
    return tensor;
}

void tellWritten(const at::Tensor& tensor) {
    if (tensor.is_non_overlapping_and_dense()) keepUniformValue(tensor.data_ptr(), tensor.nbytes(), 0);
}

std::optional<OneElement> OneElement::of(const OperatorInfo& info, const std::vector<c10::IValue>& arguments,
                                         const at::Tensor& result, uint64_t smallBytes) {
    const std::optional<size_t> passed = passedOn(info);
    if (!info.handle || !(passed || info.handle->hasTag(at::Tag::pointwise))) return {};
    if (passed && (*passed >= arguments.size() || !arguments[*passed].isTensor() || result.numel() == 0)) return {};
    OneElement one(*info.handle);
    one.m_passed = passed;
    if (info.name == "aten::sum")
        one.m_elementsEach = static_cast<double>(arguments[0].toTensor().numel()) / static_cast<double>(result.numel());
    for (size_t i = 0; i < arguments.size(); i++) {
        const c10::IValue& value = arguments[i];
        if (passed && *passed != i) continue;
        Argument argument;
        if (!value.isTensor() || !value.toTensor().defined()) {
            if (value.isList() || value.isDevice() || value.isGenerator()) return {};
            argument.value = value;
        } else {
            const at::Tensor& tensor = value.toTensor();
            if (!isPlain(tensor) || tensor.numel() == 0 || tensor.is_complex()) return {};
            argument.isLarge = tensor.is_cuda() && tensor.nbytes() > smallBytes;
            if (!argument.isLarge && tensor.numel() != 1) return {};  // which of its elements is not known
            argument.first = tensor.is_cuda() ? firstElement(tensor) : firstElement(tensor).clone();
        }
        one.m_arguments.push_back(std::move(argument));
    }
    return one;
}

double OneElement::value() const {
    auto elementOf = [](const Argument& argument) {
        if (!argument.isLarge) return argument.first.clone();
        return at::full({1}, uniformValueAt(argument.first.data_ptr()), argument.first.options());
    };
    if (m_passed) {
        const double value = elementOf(m_arguments[0]).item().toDouble() * m_elementsEach;
        return std::isfinite(value) ? value : 0;
    }
    torch::jit::Stack stack;
    for (const Argument& argument : m_arguments)
        stack.push_back(argument.first.defined() ? c10::IValue(elementOf(argument)) : argument.value);
    m_handle.callBoxed(stack);
    if (stack.size() != 1 || !stack[0].isTensor() || stack[0].toTensor().numel() != 1) return 0;
    const double value = stack[0].toTensor().item().toDouble();
    return std::isfinite(value) ? value : 0;
}

}  // namespace rankscope::torch_operators
