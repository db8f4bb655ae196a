// SPDX-License-Identifier: Apache-2.0
// The small exact arithmetic that a reference kernel does beside costing time. It touches only the ends ("probes") of
// its buffer, because virtual GPUs move only the ends of large buffers, and it uses integers small enough to be exact
// in bf16, so that sums can be compared bit by bit. The same functions run on a real GPU and as the host twin of a
// kernel on a virtual one.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define RANKSCOPE_HOST_DEVICE __host__ __device__
#else
#define RANKSCOPE_HOST_DEVICE
#endif

namespace rankscope::reference {

enum class Element : uint32_t { bf16 = 0, fp16 = 1, fp32 = 2 };

enum class TaskOp : uint32_t {
    none = 0,
    setGradient,    ///< writes this rank's contribution of one micro-step
    addGradient,    ///< adds it to what is there
    checkGradient,  ///< compares with the sum over all ranks and the micro-steps [microFirst, microLast)
    setParameter,   ///< writes the parameters of `step`
    checkParameter,
    startActivation,  ///< the input of the first layer
    forwardLayer,  ///< one (part of a) layer's map, in place; of several `ranks`, each stores a share, and the shares
                   ///< add up to the value
    checkActivation,  ///< compares with the map of the layers [0, layer) applied by this one rank
    startBackward,    ///< the gradient of the loss, from the last activation
    backwardLayer,
    checkBackward,  ///< compares with one rank's backward pass down to layer 0
    writeLoss,
};

/// What the checks found; in device memory, read at the end of the run.
struct TaskResult {
    unsigned long long checks;
    unsigned long long mismatches;
    unsigned long long checksum;  ///< order-independent, over all values compared
};

// A kernel's task comes in three parameters of at most 64 bytes each: a virtual GPU keeps a copy of the arguments until
// the stream reaches the kernel. Indices count elements of the whole (unsharded) tensor.

struct TaskTarget {
    TaskOp op;
    Element element;
    void* data;  ///< element `dataOrigin` of the tensor
    TaskResult* result;
    uint64_t dataOrigin;
};

struct TaskRange {
    uint64_t first, count;                   ///< what this kernel works on
    uint64_t chunkOrigin, chunkLength, end;  ///< probes are the ends of each chunk; the last one stops at `end`
    uint64_t probe;                          ///< elements at either end of a chunk
    const uint64_t*
        chunkEnds;    ///< where chunks differ in length: the end of each, ascending; readable by host and device
    uint64_t chunks;  ///< length of that list; 0: chunks of chunkLength
};

struct TaskMoment {
    uint32_t rank, ranks, step, micro, microFirst, microLast, microSteps, layer, layers;
    double spinNsPerBlock;  ///< real GPUs only; 0 on virtual ones
};

inline constexpr unsigned long kTaskParameterBytes = 64;
static_assert(sizeof(TaskTarget) <= kTaskParameterBytes && sizeof(TaskRange) <= kTaskParameterBytes &&
              sizeof(TaskMoment) <= kTaskParameterBytes);

struct KernelTask : TaskTarget, TaskRange, TaskMoment {};

RANKSCOPE_HOST_DEVICE inline float asFloat(uint32_t bits) {
    union {
        uint32_t bits;
        float value;
    } both;
    both.bits = bits;
    return both.value;
}
RANKSCOPE_HOST_DEVICE inline uint32_t asBits(float value) {
    union {
        float value;
        uint32_t bits;
    } both;
    both.value = value;
    return both.bits;
}

/// Only small non-negative integers are ever stored; every format holds them exactly.
RANKSCOPE_HOST_DEVICE inline void storeElement(void* data, uint64_t index, Element element, uint32_t value) {
    const uint32_t bits = asBits(static_cast<float>(value));
    if (element == Element::fp32) {
        static_cast<uint32_t*>(data)[index] = bits;
    } else if (element == Element::bf16) {
        static_cast<uint16_t*>(data)[index] = static_cast<uint16_t>(bits >> 16);
    } else {
        // 8 exponent bits biased by 127 become 5 biased by 15; the integers in use need no rounding.
        static_cast<uint16_t*>(data)[index] =
            value == 0 ? uint16_t(0) : static_cast<uint16_t>((bits >> 13) - ((127u - 15u) << 10));
    }
}

RANKSCOPE_HOST_DEVICE inline float loadElement(const void* data, uint64_t index, Element element) {
    if (element == Element::fp32) return asFloat(static_cast<const uint32_t*>(data)[index]);
    const uint32_t bits = static_cast<const uint16_t*>(data)[index];
    if (element == Element::bf16) return asFloat(bits << 16);
    if ((bits & 0x7fffu) == 0) return 0.0f;
    return asFloat(((bits & 0x8000u) << 16) | (((bits & 0x7fffu) << 13) + ((127u - 15u) << 23)));
}

/// Largest value of one contribution: the sum over ranks and micro-steps stays within bf16's exact integers (256).
RANKSCOPE_HOST_DEVICE inline uint32_t gradientCap(uint32_t ranks, uint32_t microSteps) {
    const uint32_t cap = 256u / (ranks * microSteps);
    return cap < 1 ? 1 : cap > 7 ? 7 : cap;
}

RANKSCOPE_HOST_DEVICE inline uint32_t gradientValue(uint64_t index, uint32_t rank, const TaskMoment& at,
                                                    uint32_t micro) {
    const uint32_t cap = gradientCap(at.ranks, at.microSteps);
    if (rank * at.microSteps * cap >= 256u) return 0;  // in very large jobs only the first ranks contribute
    return static_cast<uint32_t>((index * 7 + rank * 3u + at.step * 5u + micro * 11u + at.layer * 13u) % (cap + 1));
}

RANKSCOPE_HOST_DEVICE inline uint32_t parameterValue(uint64_t index, uint32_t layer, uint32_t step) {
    return static_cast<uint32_t>((index * 7 + layer * 13u + step * 5u) % 251);
}

RANKSCOPE_HOST_DEVICE inline uint32_t inputValue(uint64_t index, uint32_t step, uint32_t micro) {
    return static_cast<uint32_t>((index * 3 + step * 5u + micro * 17u) % 251);
}
RANKSCOPE_HOST_DEVICE inline uint32_t forwardValue(uint32_t value, uint32_t layer) {
    return (value * 3 + layer + 1) % 251;
}
RANKSCOPE_HOST_DEVICE inline uint32_t lossGradientValue(uint32_t activation, uint32_t micro) {
    return (activation * 2 + micro) % 251;
}
RANKSCOPE_HOST_DEVICE inline uint32_t backwardValue(uint32_t value, uint32_t layer) {
    return (value * 5 + layer + 2) % 251;
}

/// What rank `rank` of `ranks` contributes to a sum that is `value`.
RANKSCOPE_HOST_DEVICE inline uint32_t shareOf(uint32_t value, uint32_t rank, uint32_t ranks) {
    return value / ranks + (rank < value % ranks ? 1 : 0);
}

RANKSCOPE_HOST_DEVICE inline uint64_t chunkEnd(const KernelTask& task, uint64_t chunk) {
    if (task.chunks) return chunk < task.chunks ? task.chunkEnds[chunk] : UINT64_MAX;
    const uint64_t end = task.chunkOrigin + (chunk + 1) * task.chunkLength;
    return end < task.end ? end : task.end;
}
RANKSCOPE_HOST_DEVICE inline uint64_t chunkBegin(const KernelTask& task, uint64_t chunk) {
    return chunk == 0 ? task.chunkOrigin : chunkEnd(task, chunk - 1);
}
/// The chunk that holds the first element of the task.
RANKSCOPE_HOST_DEVICE inline uint64_t firstChunkOf(const KernelTask& task) {
    if (!task.chunks) return (task.first - task.chunkOrigin) / task.chunkLength;
    uint64_t low = 0;
    for (uint64_t high = task.chunks; low < high;) {
        const uint64_t middle = (low + high) / 2;
        if (task.chunkEnds[middle] > task.first)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/// Calls visit(index) for every probe of the task; the threads of a block share the work.
template <class Visit>
RANKSCOPE_HOST_DEVICE inline void visitProbes(const KernelTask& task, uint32_t thread, uint32_t threads, Visit visit) {
    if (task.count == 0 || (task.chunkLength == 0 && task.chunks == 0)) return;
    const uint64_t last = task.first + task.count;
    uint64_t chunk = firstChunkOf(task);
    for (uint64_t begin = chunkBegin(task, chunk), end = 0; begin < last; begin = end, ++chunk) {
        end = chunkEnd(task, chunk);
        if (end <= begin) continue;
        const uint64_t headEnd = end - begin <= task.probe ? end : begin + task.probe;
        const uint64_t tailBegin = end - headEnd <= task.probe ? headEnd : end - task.probe;
        for (uint64_t i = begin + thread; i < headEnd; i += threads)
            if (i >= task.first && i < last) visit(i);
        for (uint64_t i = tailBegin + thread; i < end; i += threads)
            if (i >= task.first && i < last) visit(i);
    }
}

RANKSCOPE_HOST_DEVICE inline uint32_t expectedActivation(uint64_t index, const KernelTask& task) {
    uint32_t value = inputValue(index, task.step, task.micro);
    for (uint32_t layer = 0; layer < task.layers; ++layer) value = forwardValue(value, layer);
    return value;
}

RANKSCOPE_HOST_DEVICE inline uint32_t expectedValue(uint64_t index, const KernelTask& task) {
    uint32_t value = 0;
    switch (task.op) {
        case TaskOp::checkGradient:
            for (uint32_t rank = 0; rank < task.ranks; ++rank)
                for (uint32_t micro = task.microFirst; micro < task.microLast; ++micro)
                    value += gradientValue(index, rank, task, micro);
            return value;
        case TaskOp::checkParameter:
            return parameterValue(index, task.layer, task.step);
        case TaskOp::checkActivation:
            return expectedActivation(index, task);
        case TaskOp::checkBackward:
            value = lossGradientValue(expectedActivation(index, task), task.micro);
            for (uint32_t layer = task.layers; layer-- > 0;) value = backwardValue(value, layer);
            return value;
        default:
            return 0;
    }
}

RANKSCOPE_HOST_DEVICE inline void countUp(unsigned long long* counter, unsigned long long amount) {
#ifdef __CUDA_ARCH__
    atomicAdd(counter, amount);
#else
    __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
#endif
}

/// Does the task's arithmetic: `thread` of `threads` of one block, or the whole of it as thread 0 of 1.
RANKSCOPE_HOST_DEVICE inline void runTask(const KernelTask& task, uint32_t thread, uint32_t threads) {
    if (task.op == TaskOp::none) return;
    if (task.op == TaskOp::writeLoss) {
        if (thread == 0) storeElement(task.data, 0, Element::fp32, task.step + 1);
        return;
    }
    visitProbes(task, thread, threads, [&](uint64_t index) {
        const uint64_t at = index - task.dataOrigin;
        const auto current = [&] { return loadElement(task.data, at, task.element); };
        const auto store = [&](uint32_t value) { storeElement(task.data, at, task.element, value); };
        switch (task.op) {
            case TaskOp::setGradient:
                store(gradientValue(index, task.rank, task, task.micro));
                break;
            case TaskOp::addGradient:
                store(static_cast<uint32_t>(current()) + gradientValue(index, task.rank, task, task.micro));
                break;
            case TaskOp::setParameter:
                store(parameterValue(index, task.layer, task.step));
                break;
            case TaskOp::startActivation:
                store(inputValue(index, task.step, task.micro));
                break;
            case TaskOp::forwardLayer:
                store(shareOf(forwardValue(static_cast<uint32_t>(current()), task.layer), task.rank, task.ranks));
                break;
            case TaskOp::startBackward:
                store(lossGradientValue(expectedActivation(index, task), task.micro));
                break;
            case TaskOp::backwardLayer:
                store(shareOf(backwardValue(static_cast<uint32_t>(current()), task.layer), task.rank, task.ranks));
                break;
            default: {
                const float found = current();
                const uint32_t expected = expectedValue(index, task);
                countUp(&task.result->checks, 1);
                if (found != static_cast<float>(expected)) countUp(&task.result->mismatches, 1);
                countUp(&task.result->checksum, (index + 1) * (expected + 1) * (task.step + 1));
            }
        }
    });
}

}  // namespace rankscope::reference
