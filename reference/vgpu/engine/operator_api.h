/* SPDX-License-Identifier: Apache-2.0
 * What a framework tells the virtual GPUs of its operators: how much work lies behind the kernels that it launches, and
 * what small results are. The library built against a framework includes this header and nothing else of ours; it gets
 * the functions as a table, since it cannot be linked to the virtual GPUs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Grows with every change of what follows: a library built for another one is refused. */
#define RANKSCOPE_OPERATOR_API 2

/** What an operator computes in; decides at which rate. */
typedef enum {
    RANKSCOPE_ELEMENT_BF16, /**< and fp16: the rate that `cluster.tflops` of a scenario tells */
    RANKSCOPE_ELEMENT_FP8,  /**< and int8 */
    RANKSCOPE_ELEMENT_TF32,
    RANKSCOPE_ELEMENT_FP32,
    RANKSCOPE_ELEMENT_FP64
} RankscopeElement;

/** The work of one operator. `bytes` are read or written in device memory. */
typedef struct {
    double flop, bytes;
    RankscopeElement element;
} RankscopeWork;

typedef struct {
    uint32_t version;
    /** What an operator costs the calling thread beside its launches; and up to how many bytes its values are computed.
     */
    int64_t operatorNs;
    uint64_t valueBytes;
    /** An operator begins on the calling thread: the kernels launched from now on are its own, unless a further
     * operator begins. `expected` is what is known of its work so far; it prices them if the thread has to wait before
     * the operator ends. `name` must live until then. */
    void (*beginOperator)(const char* name, const RankscopeWork* expected);
    /** The innermost operator of the calling thread ends, and has done this work. */
    void (*endOperator)(const RankscopeWork* work);
    /** The calling thread computes for so long. */
    void (*hostWork)(int64_t ns);
    /** `run(data)` happens in the order of the stream, takes no time and leaves no record; at every launch of the graph
     * if the stream captures. `stream` 0 is the default stream of `device`, which the calling thread need not have set.
     * It must not call the CUDA runtime. `release(data)` follows when it cannot happen again. */
    void (*effect)(int device, void* stream, void (*run)(void*), void* data, void (*release)(void*));
    /** The next copy of up to 8 bytes to the host that the calling thread asks for before its operator ends, reads
     * `bytes` instead of the device, once the stream has come there: an operator whose result's shape depends on values
     * asks so. */
    void (*answer)(const void* bytes);
    /** Zeroes memory of the device at once; what was never touched costs nothing. Meant for effects. */
    void (*zero)(void* memory, size_t bytes);
} RankscopeOperatorHooks;

/** Exported by the library as `rankscopeInstallOperators`; false: it was built for another version. */
typedef int (*RankscopeInstallOperators)(const RankscopeOperatorHooks* hooks);

#ifdef __cplusplus
}
#endif
