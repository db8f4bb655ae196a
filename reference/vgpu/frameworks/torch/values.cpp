// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/frameworks/torch/values.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>

#include "reference/vgpu/frameworks/torch/tensors.h"
#include "reference/vgpu/frameworks/torch/uniform.h"

namespace rankscope::torch_operators {
namespace {

// Elementwise operators handle some GB/s on a core, so that 1 MiB takes well under a millisecond.
constexpr uint64_t kCheapFactor = 16;
// Of a large tensor that is copied or converted the beginning is true: as much as moves of a large copy.
constexpr int64_t kHeadBytes = 4096;

bool isVerbose() {
    static const bool verbose = std::getenv("RANKSCOPE_VGPU_VALUES_VERBOSE") != nullptr;
    return verbose;
}

struct Gauge {
    double deviceBytes = 0;
    bool isOnDevice = false, isOnHost = false, isStrange = false;
};

void measure(const c10::IValue& value, Gauge& gauge) {
    forEachTensor(value, [&](const at::Tensor& tensor) {
        if (!isPlain(tensor)) gauge.isStrange = true;
        if (tensor.is_cuda()) {
            gauge.isOnDevice = true;
            gauge.deviceBytes += static_cast<double>(tensor.numel()) * static_cast<double>(tensor.element_size());
        } else if (tensor.is_cpu()) {
            gauge.isOnHost = true;
        } else {
            gauge.isStrange = true;
        }
    });
}

/// How many elements the lists of an operator on lists have.
size_t elementsOf(const Call& call) {
    return call.arguments.empty() || !call.arguments[0].isList() ? 0 : call.arguments[0].toListRef().size();
}

/// Lists that go through an operator together; others, of learning rates for example, belong to all elements.
bool isPerElement(const c10::IValue& value, size_t elements) {
    return value.isList() && value.toListRef().size() == elements;
}

/// The elements of which each tensor is small enough.
std::vector<size_t> smallElements(const Call& call, uint64_t limitBytes) {
    const size_t elements = elementsOf(call);
    std::vector<bool> isSmall(elements, true);
    for (const c10::IValue& value : call.arguments) {
        if (!isPerElement(value, elements)) {
            Gauge gauge;
            measure(value, gauge);
            if (gauge.isStrange || gauge.deviceBytes > static_cast<double>(limitBytes)) return {};
            continue;
        }
        for (size_t i = 0; i < elements; i++) {
            Gauge gauge;
            measure(value.toListRef()[i], gauge);
            if (gauge.isStrange || gauge.deviceBytes > static_cast<double>(limitBytes)) isSmall[i] = false;
        }
    }
    std::vector<size_t> chosen;
    for (size_t i = 0; i < elements; i++)
        if (isSmall[i]) chosen.push_back(i);
    return chosen;
}

/// True if an argument that the operator writes is memory of the host. That may be gone when the stream comes so far,
/// and is filled by the copies that the operator makes: what is computed are the parts before them, on the device.
bool writesHost(const Call& call) {
    const auto& schema = call.info->handle->schema().arguments();
    Gauge gauge;
    for (size_t i = 0; i < call.arguments.size() && i < schema.size(); i++)
        if (schema[i].alias_info() && schema[i].alias_info()->isWrite()) measure(call.arguments[i], gauge);
    return gauge.isOnHost;
}

void clearHost(const Call& call, const RankscopeOperatorHooks& hooks) {
    const auto& schema = call.info->handle->schema().arguments();
    for (size_t i = 0; i < call.arguments.size() && i < schema.size(); i++) {
        if (!schema[i].alias_info() || !schema[i].alias_info()->isWrite()) continue;
        forEachTensor(call.arguments[i], [&](const at::Tensor& tensor) {
            if (tensor.is_cpu() && isPlain(tensor) && tensor.is_non_overlapping_and_dense() && tensor.numel() != 0)
                hooks.zero(tensor.data_ptr(), tensor.nbytes());
        });
    }
}

uint64_t limitOf(const OperatorInfo& info, uint64_t limitBytes) {
    return info.isCheap ? limitBytes * kCheapFactor : limitBytes;
}

/// The memory of a tensor of the device, as one of the CPU. Refers to the memory and to nothing of Python's.
at::Tensor onHost(const at::Tensor& tensor) {
    return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                         at::TensorOptions().dtype(tensor.dtype()).device(at::kCPU));
}

/// An argument as the kernel for the CPU takes it. Memory of the host, which is never written, is copied: the job may
/// change it before the stream comes so far.
at::Tensor argumentOnHost(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    const at::Tensor alias = onHost(tensor);
    return tensor.is_cuda() ? alias : alias.clone();
}

/// The chosen elements of a list, which keeps its type.
c10::IValue someOf(const c10::IValue& value, const std::vector<size_t>& chosen) {
    c10::impl::GenericList all = value.toList(), some(all.elementType());
    for (size_t i : chosen) some.push_back(all.get(i));
    return some;
}

c10::IValue onHost(const c10::IValue& value) {
    if (value.isTensor()) return argumentOnHost(value.toTensor());
    if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& tensor : value.toTensorList()) list.push_back(argumentOnHost(tensor));
        return list;
    }
    if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> list;
        for (const c10::IValue& element : value.toListRef())
            list.push_back(element.isNone() ? std::nullopt : std::optional(argumentOnHost(element.toTensor())));
        return list;
    }
    if (value.isDevice()) return c10::Device(at::kCPU);
    return value;
}

/// The twin's own state of dispatch: kernels of the CPU and nothing above them, neither autograd nor autocast nor
/// Python.
struct PlainDispatch {
    at::DisableRecordFunctionGuard unrecorded;
    c10::impl::ForceDispatchKeyGuard plain{
        c10::DispatchKeySet(c10::DispatchKey::BackendSelect),
        c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset |
            c10::DispatchKeySet(
                {c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot, c10::DispatchKey::Functionalize})};
};

/// Operators that draw from the CPU's default generator draw from a seed of their own, and leave it as it was.
class BorrowedGenerator {
  public:
    explicit BorrowedGenerator(uint64_t seed) : m_generator(at::detail::getDefaultCPUGenerator()) {
        std::lock_guard guard(m_generator.mutex());
        m_before = m_generator.get_state();
        m_generator.set_current_seed(seed);
    }
    ~BorrowedGenerator() {
        std::lock_guard guard(m_generator.mutex());
        m_generator.set_state(m_before);
    }
    BorrowedGenerator(const BorrowedGenerator&) = delete;
    BorrowedGenerator& operator=(const BorrowedGenerator&) = delete;

  private:
    at::Generator m_generator;
    at::Tensor m_before;
};

/// An argument with the values that are kept beside memory.
c10::IValue withUniformValues(const c10::IValue& value, bool isWritten) {
    if (value.isTensor()) return withUniformValue(value.toTensor(), isWritten);
    if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& tensor : value.toTensorList()) list.push_back(withUniformValue(tensor, isWritten));
        return list;
    }
    if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> list;
        for (const c10::IValue& element : value.toListRef())
            list.push_back(element.isNone() ? std::nullopt
                                            : std::optional(withUniformValue(element.toTensor(), isWritten)));
        return list;
    }
    return value;
}

/// An operator computed on the CPU. A graph does so at each launch.
struct Twin {
    c10::OperatorHandle handle;
    std::vector<c10::IValue> arguments;
    std::vector<at::Tensor> results;  ///< the memory of those that are new; undefined: written in place
    std::optional<uint64_t> seed;

    torch::jit::Stack stackOfArguments() const {
        torch::jit::Stack stack;
        const auto& schema = handle.schema().arguments();
        for (size_t i = 0; i < arguments.size(); i++) {
            const auto* alias = i < schema.size() ? schema[i].alias_info() : nullptr;
            stack.push_back(withUniformValues(arguments[i], alias && alias->isWrite()));
        }
        return stack;
    }

    void put(size_t index, const at::Tensor& value) {
        if (index >= results.size() || !results[index].defined() || !value.defined()) return;
        const at::Tensor& memory = results[index];
        if (value.numel() == memory.numel()) memory.copy_(value.reshape(memory.sizes()));
        tellWritten(memory);
    }

    void compute() {
        torch::jit::Stack stack = stackOfArguments();
        std::optional<BorrowedGenerator> borrowed;
        if (seed) borrowed.emplace(*seed);
        handle.callBoxed(stack);
        size_t index = 0;
        for (const c10::IValue& value : stack) {
            if (value.isTensorList())
                for (const at::Tensor& tensor : value.toTensorList()) put(index++, tensor);
            else
                put(index++, value.isTensor() ? value.toTensor() : at::Tensor());
        }
    }

    void run() {
        const PlainDispatch plain;
        try {
            compute();
        } catch (const std::exception& error) {
            if (isVerbose())
                std::fprintf(stderr, "rankscope values: %s: %.300s\n", toString(handle.operator_name()).c_str(),
                             error.what());
            for (const at::Tensor& memory : results) {
                if (!memory.defined() || !memory.is_non_overlapping_and_dense()) continue;
                std::memset(memory.data_ptr(), 0, memory.nbytes());
                tellWritten(memory);
            }
        }
    }
};

/// What an operator asks the device for.
struct Answer {
    std::unique_ptr<Twin> twin;
    int64_t* answer;

    void run() {
        const PlainDispatch plain;
        try {
            torch::jit::Stack stack = twin->stackOfArguments();
            twin->handle.callBoxed(stack);
            *answer = stack.at(0).isBool() ? stack.at(0).toBool() : stack.at(0).toTensor().size(0);
        } catch (const std::exception&) {  // as of large tensors
        }
    }
};

/// Memory that a large operator has written: zeros, or what one element of each argument makes it.
struct Cleared {
    struct Piece {
        void* memory;
        size_t bytes;
        bool isTrue;        ///< a truth value that says that all is well
        at::Tensor filled;  ///< not so large that what its elements would be is not written
        bool isSmall;       ///< and small, so that this is looked for nowhere else
    };
    std::vector<Piece> pieces;
    std::optional<OneElement> element;
    at::Tensor headTo, headFrom;  ///< beginnings of a copy, if it is one
    void (*zero)(void*, size_t) = nullptr;

    double valueOfAll() {
        if (!element) return 0;
        const PlainDispatch plain;
        try {
            return element->value();
        } catch (const std::exception&) {  // it takes no single elements
            return 0;
        }
    }

    void run() {
        const double value = valueOfAll();
        for (const Piece& piece : pieces) {
            keepUniformValue(piece.memory, piece.bytes, piece.isSmall ? 0 : value);
            if (piece.isTrue)
                std::memset(piece.memory, 1, piece.bytes);
            else
                zero(piece.memory, piece.bytes);
            if (value == 0 || !piece.filled.defined()) continue;
            const PlainDispatch plain;
            piece.filled.fill_(value);
        }
        if (!headTo.defined()) return;
        const PlainDispatch plain;
        headTo.copy_(headFrom);
    }
};

/// The CUDA stream of `stream`. Before 2.11 c10's own class does not tell, and a method of CUDAStream is called, which
/// is nothing but a c10::Stream, by its name: CUDA's headers need not be there.
template <class Stream>
void* nativeHandle(const Stream& stream) {
    if constexpr (requires { stream.native_handle(); }) {
        return stream.native_handle();
    } else {
        using Method = void* (*)(const Stream*);
        static const auto method = [] {
            void* library = dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
            return library ? reinterpret_cast<Method>(dlsym(library, "_ZNK3c104cuda10CUDAStream6streamEv")) : nullptr;
        }();
        return method ? method(&stream) : nullptr;
    }
}

template <class Effect>
void queue(std::unique_ptr<Effect> effect, c10::Device device, const RankscopeOperatorHooks& hooks) {
    const c10::Stream stream = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getStream(device);
    hooks.effect(
        device.index(), nativeHandle(stream), [](void* data) { static_cast<Effect*>(data)->run(); }, effect.release(),
        [](void* data) { delete static_cast<Effect*>(data); });
}

bool isNew(const OperatorInfo& info, size_t result) {
    const auto& returns = info.handle->schema().returns();
    return result >= returns.size() || !returns[result].alias_info();
}

std::optional<c10::Device> deviceOf(const Call& call, c10::ArrayRef<c10::IValue> results) {
    std::optional<c10::Device> device;
    auto look = [&](const at::Tensor& tensor) {
        if (!device && tensor.is_cuda()) device = tensor.device();
    };
    for (const c10::IValue& value : results) forEachTensor(value, look);
    for (const c10::IValue& value : call.arguments) forEachTensor(value, look);
    return device;
}

/// An argument for the twin.
c10::IValue given(const Call& call, size_t index) {
    const c10::IValue& argument = call.arguments[index];
    if (argument.isGenerator()) return {};
    if (call.info->isForEach && isPerElement(argument, elementsOf(call))) return onHost(someOf(argument, call.chosen));
    return onHost(argument);
}

/// What an argument is of which the operator itself knows nothing: it leaves that out.
c10::IValue neutral(const c10::Argument& argument) {
    if (argument.default_value()) return *argument.default_value();
    if (argument.type()->kind() == c10::TypeKind::BoolType) return false;
    if (argument.type()->kind() == c10::TypeKind::ListType) return c10::List<int64_t>({0});
    return {};
}

/// An operator of another name takes the arguments that it knows by name.
void giveByName(Twin& twin, const Call& call) {
    const auto& own = call.info->handle->schema().arguments();
    for (const c10::Argument& wanted : twin.handle.schema().arguments()) {
        c10::IValue value = neutral(wanted);
        for (size_t i = 0; i < own.size(); i++)
            if (own[i].name() == wanted.name() || (i == 0 && own[i].name() == "self" && wanted.name() == "input"))
                value = given(call, i);
        twin.arguments.push_back(std::move(value));
    }
}

std::unique_ptr<Twin> twinOf(const Call& call) {
    const PlainDispatch plain;
    auto twin = std::make_unique<Twin>(Twin{call.info->twin.value_or(*call.info->handle), {}, {}, {}});
    if (call.info->twin)
        giveByName(*twin, call);
    else
        for (size_t i = 0; i < call.arguments.size(); i++) twin->arguments.push_back(given(call, i));
    return twin;
}

void queueTwin(const Call& call, c10::ArrayRef<c10::IValue> results, c10::Device device,
               const RankscopeOperatorHooks& hooks) {
    auto twin = twinOf(call);
    {
        const PlainDispatch plain;
        for (size_t i = 0; i < results.size(); i++) {
            if (!results[i].isTensor() && !results[i].isTensorList()) {
                twin->results.emplace_back();
                continue;
            }
            const bool isList = call.info->isForEach && isPerElement(results[i], elementsOf(call));
            forEachTensor(isList ? someOf(results[i], call.chosen) : results[i], [&](const at::Tensor& tensor) {
                twin->results.push_back(isNew(*call.info, i) && tensor.is_cuda() ? onHost(tensor) : at::Tensor());
            });
            if (results[i].isTensor() && !results[i].toTensor().defined()) twin->results.emplace_back();
        }
        if (call.info->isRandom) twin->seed = call.seed;
    }
    queue(std::move(twin), device, hooks);
}

/// The first elements of two tensors of one layout, if that is a dense one.
void addHeads(Cleared& cleared, const at::Tensor& to, const at::Tensor& from) {
    const bool isSame = to.sizes() == from.sizes() && to.strides() == from.strides();
    if (!isSame || !to.is_non_overlapping_and_dense() || to.numel() == 0) return;
    const int64_t widest = std::max<int64_t>(to.element_size(), from.element_size());
    const int64_t elements = std::min<int64_t>(to.numel(), kHeadBytes / widest);
    const PlainDispatch plain;
    auto head = [&](const at::Tensor& tensor) {
        return at::from_blob(tensor.data_ptr(), {elements}, at::TensorOptions().dtype(tensor.dtype()).device(at::kCPU));
    };
    cleared.headTo = head(to);
    cleared.headFrom = from.is_cuda() ? head(from) : head(from).clone();
}

void clearTensor(Cleared& cleared, const at::Tensor& tensor, bool isTrue, const RankscopeOperatorHooks& hooks) {
    if (!tensor.is_cuda() || tensor.numel() == 0 || !tensor.is_non_overlapping_and_dense()) return;
    cleared.pieces.push_back({tensor.data_ptr(), tensor.nbytes(), isTrue, {}, tensor.nbytes() <= hooks.valueBytes});
    if (!cleared.element || tensor.nbytes() > hooks.valueBytes * kCheapFactor) return;
    const PlainDispatch plain;
    cleared.pieces.back().filled = onHost(tensor);
}

/// The one tensor that an operator leaves, or none.
const at::Tensor* onlyResult(c10::ArrayRef<c10::IValue> results) {
    return results.size() == 1 && results[0].isTensor() && results[0].toTensor().defined() ? &results[0].toTensor()
                                                                                           : nullptr;
}

void queueZeros(const Call& call, c10::ArrayRef<c10::IValue> results, c10::Device device,
                const RankscopeOperatorHooks& hooks) {
    const OperatorInfo& info = *call.info;
    auto cleared = std::make_unique<Cleared>();
    cleared->zero = hooks.zero;
    if (const at::Tensor* result = onlyResult(results)) {
        const PlainDispatch plain;
        cleared->element = OneElement::of(info, call.arguments, *result, hooks.valueBytes);
    }
    // A check of something large finds nothing wrong with it.
    const bool isTrue = info.name == "aten::all";
    for (size_t i = 0; i < results.size(); i++)
        if (isNew(info, i))
            forEachTensor(results[i], [&](const at::Tensor& tensor) { clearTensor(*cleared, tensor, isTrue, hooks); });
    const auto& schema = info.handle->schema().arguments();
    for (size_t i = 0; i < call.arguments.size() && i < schema.size(); i++) {
        const bool isWritten = schema[i].alias_info() && schema[i].alias_info()->isWrite();
        // What is changed in place keeps what it had, which is no garbage either.
        if (isWritten && (schema[i].is_out() || info.reading == Reading::overwrites))
            forEachTensor(call.arguments[i],
                          [&](const at::Tensor& tensor) { clearTensor(*cleared, tensor, isTrue, hooks); });
    }
    if (info.name == "aten::copy_") addHeads(*cleared, call.arguments[0].toTensor(), call.arguments[1].toTensor());
    if (cleared->pieces.empty() && !cleared->headTo.defined()) return;
    queue(std::move(cleared), device, hooks);
}

/// The generator's seed and how far it has come, so that ranks that would draw the same draw the same. A generator says
/// nothing of the latter while its stream captures, before 2.11 of neither: then the calls are counted.
uint64_t seedOf(const Call& call) {
    at::Generator generator;
    for (const c10::IValue& value : call.arguments)
        if (value.isGenerator()) generator = value.toGenerator();
    if (!generator.defined()) generator = at::globalContext().defaultGenerator(at::Device(at::kCUDA));
    if (!generator.device().is_cuda()) return 0;
    static thread_local uint64_t captured = 0;
    const auto told = [](auto ask) -> std::optional<uint64_t> {
        try {
            return ask();
        } catch (const std::exception&) {
            return {};
        }
    };
    const auto seed = told([&] { return generator.current_seed(); });
    const auto offset = told([&] { return generator.get_offset(); });
    return seed.value_or(0) * 0x9e3779b97f4a7c15ull + (offset ? *offset : ++captured);
}

/// Large tensors hold zeros: they are equal, and nothing is found in them.
void queueAnswer(Call& call, const RankscopeOperatorHooks& hooks) {
    call.answer = call.info->name == "aten::equal" ? 1 : 0;
    hooks.answer(&call.answer);
    Gauge gauge;
    for (const c10::IValue& value : call.arguments) measure(value, gauge);
    const auto device = deviceOf(call, {});
    if (!device || gauge.isStrange || gauge.deviceBytes > static_cast<double>(limitOf(*call.info, hooks.valueBytes)))
        return;
    if (call.arguments.size() != call.info->handle->schema().arguments().size()) return;
    queue(std::make_unique<Answer>(Answer{twinOf(call), &call.answer}), *device, hooks);
}

}  // namespace

void prepareValues(Call& call, const RankscopeOperatorHooks& hooks) {
    const OperatorInfo& info = *call.info;
    if (info.asksDevice && info.handle) queueAnswer(call, hooks);
    if (info.isRandom && info.hasTwin) call.seed = seedOf(call);
    if (!info.hasTwin || call.isCovered) return;
    call.writesHost = writesHost(call);
    if (call.writesHost) {
        // Of a large copy the ends move (cudart_copy.cpp); what lies between is defined now, while the memory is there.
        if (info.reading == Reading::overwrites) clearHost(call, hooks);
        return;
    }
    if (info.isForEach) {
        call.chosen = smallElements(call, hooks.valueBytes);
        call.isComputed = info.mutates && !call.chosen.empty();
        return;
    }
    if (!info.mutates) return;
    Gauge gauge;
    for (const c10::IValue& value : call.arguments) measure(value, gauge);
    call.isComputed = !gauge.isStrange && gauge.deviceBytes <= static_cast<double>(limitOf(info, hooks.valueBytes));
}

bool leaveValues(const Call& call, c10::ArrayRef<c10::IValue> results, const RankscopeOperatorHooks& hooks) {
    const OperatorInfo& info = *call.info;
    if (!info.handle || info.isView || call.isCovered || call.writesHost) return false;
    const auto device = deviceOf(call, results);
    if (!device) return false;
    Gauge gauge;
    for (const c10::IValue& value : call.arguments) measure(value, gauge);
    for (const c10::IValue& value : results) measure(value, gauge);
    if (call.arguments.size() != info.handle->schema().arguments().size()) return false;
    if (info.isForEach) {
        if (call.chosen.size() != elementsOf(call)) queueZeros(call, results, *device, hooks);
        if (!call.chosen.empty()) queueTwin(call, results, *device, hooks);
        return !call.chosen.empty();
    }
    if (gauge.isStrange) return false;
    const bool isSmall = gauge.deviceBytes <= static_cast<double>(limitOf(info, hooks.valueBytes));
    // In place the results are arguments, counted twice now: what was decided before goes.
    if (info.hasTwin && (info.mutates ? call.isComputed : isSmall)) {
        queueTwin(call, results, *device, hooks);
        return true;
    }
    if (!call.hasComputedParts) queueZeros(call, results, *device, hooks);
    return false;
}

}  // namespace rankscope::torch_operators
