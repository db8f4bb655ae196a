// SPDX-License-Identifier: Apache-2.0
// What is known of an operator by its schema and its kernels, whatever it is called with.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <optional>
#include <string>

namespace rankscope::torch_operators {

/// By what formula an operator's arithmetic is counted; the others move bytes.
enum class Arithmetic : uint8_t {
    none,
    mm,             ///< (A, B, …)
    addmm,          ///< (C, A, B, …)
    attention,      ///< (Q, K, V, …)
    attentionBack,  ///< (gradient, Q, K, V, …)
    convolution,
    convolutionBack
};

/// Which memory an operator touches beside what it writes.
enum class Reading : uint8_t {
    all,
    overwrites,  ///< what it writes, it does not read
    rows         ///< of its first argument, as many as it writes
};

struct OperatorInfo {
    std::string name;
    std::optional<c10::OperatorHandle> handle;  ///< none: no operator, or one whose values nobody can compute
    bool isLeaf = false;                        ///< does work on a device itself
    bool isView = false;                        ///< gives out what it was given
    bool isQuiet = false;                       ///< allocates, or hands a value to Python: neither work nor values
    bool isForEach = false;                     ///< does the same with each element of its lists
    bool mutates = false;                       ///< changes an argument that it also reads
    bool isRandom = false;
    /// It asks the device for a number and goes on by it: whether all is equal, or how long its first result is.
    bool asksDevice = false;
    bool isCheap = false;                     ///< for its size: computed up to a higher limit
    bool hasTwin = false;                     ///< there is a kernel for the CPU
    std::optional<c10::OperatorHandle> twin;  ///< the operator with that kernel, if it is another one
    Arithmetic arithmetic = Arithmetic::none;
    Reading reading = Reading::all;
};

/// Kept for ever; null for what is not worth a look.
const OperatorInfo* infoOf(const at::RecordFunction& function);

}  // namespace rankscope::torch_operators
