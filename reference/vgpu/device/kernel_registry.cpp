// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/kernel_registry.h"

#include <cxxabi.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace rankscope::vgpu {
namespace {

std::mutex g_mutex;

std::map<const void*, std::unique_ptr<Kernel>>& kernels() {
    static auto* registered = new std::map<const void*, std::unique_ptr<Kernel>>;
    return *registered;
}

/// The same by what __cudaGetKernel gives out.
std::set<const void*>& handles() {
    static auto* given = new std::set<const void*>;
    return *given;
}

struct Cost {
    double flop, bytes;
};

constexpr size_t kUnknownBytes = 0;
constexpr size_t kPageBytes = 4096;

/// Arguments usually are the launching function's own variables.
bool onOwnStack(const char* from, size_t bytes) {
    static thread_local const char* stackEnd = [] {
        pthread_attr_t attributes;
        void* low = nullptr;
        size_t size = 0;
        if (pthread_getattr_np(pthread_self(), &attributes) != 0) return static_cast<const char*>(nullptr);
        pthread_attr_getstack(&attributes, &low, &size);
        pthread_attr_destroy(&attributes);
        return static_cast<const char*>(low) + size;
    }();
    const char* here = reinterpret_cast<const char*>(&bytes);
    return stackEnd && from > here && from + bytes <= stackEnd;
}

/// A struct argument, with whatever lies behind it as far as memory goes: too much is harmless.
void copyStruct(char* to, const char* from, size_t bytes) {
    const size_t toPageEnd = std::min(bytes, kPageBytes - reinterpret_cast<uintptr_t>(from) % kPageBytes);
    if (toPageEnd == bytes || onOwnStack(from, bytes)) {
        std::memcpy(to, from, bytes);
        return;
    }
    iovec local{to, bytes};
    iovec remote[2] = {{const_cast<char*>(from), toPageEnd}, {const_cast<char*>(from) + toPageEnd, bytes - toPageEnd}};
    // The kernel stops where a plain copy would fault.
    if (process_vm_readv(getpid(), &local, 1, remote, 2, 0) <= 0)
        std::memcpy(to, from, std::min<size_t>(toPageEnd, 64));
}

/// A kernel's arguments, kept until its stream reaches it.
struct KeptArguments {
    std::vector<char> bytes;
    std::vector<void*> pointers;

    KeptArguments(const Kernel& kernel, void** args) : pointers(kernel.parameterBytes.size()) {
        size_t total = 0;
        for (size_t bytesOfOne : kernel.parameterBytes) total += room(kernel, bytesOfOne);
        bytes.resize(total);
        char* to = bytes.data();
        for (size_t i = 0; i < pointers.size(); i++) {
            const size_t bytesOfOne = kernel.parameterBytes[i];
            const auto* from = static_cast<const char*>(args[i]);
            if (bytesOfOne == kUnknownBytes)
                copyStruct(to, from, kernel.largestStruct);
            else
                std::memcpy(to, from, bytesOfOne);
            pointers[i] = to;
            to += room(kernel, bytesOfOne);
        }
    }
    static size_t room(const Kernel& kernel, size_t bytesOfOne) {
        constexpr size_t kAlignment = alignof(std::max_align_t);
        return ((bytesOfOne == kUnknownBytes ? kernel.largestStruct : bytesOfOne) + kAlignment - 1) / kAlignment *
               kAlignment;
    }
};

size_t typeBytes(std::string type) {
    if (type.find("KernelCost") != std::string::npos) return sizeof(Cost);
    if (!type.empty() && (type.back() == '*' || type.back() == '&')) return 8;
    if (type.starts_with("const ")) type.erase(0, 6);
    if (type.ends_with(" const")) type.resize(type.size() - 6);
    if (type == "char" || type == "signed char" || type == "unsigned char" || type == "bool") return 1;
    if (type == "short" || type == "unsigned short") return 2;
    if (type == "int" || type == "unsigned int" || type == "float") return 4;
    if (type == "double" || type == "long" || type == "unsigned long" || type == "long long" ||
        type == "unsigned long long")
        return 8;
    return kUnknownBytes;  // a struct: its size is not in the name
}

std::vector<size_t> parameterBytes(const char* mangledName) {
    int status = 0;
    std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangledName, nullptr, nullptr, &status), std::free);
    std::vector<size_t> sizes;
    if (!text) return sizes;
    std::string_view signature = text.get();
    size_t close = signature.rfind(')');
    if (close == std::string_view::npos) return sizes;
    size_t open = close;
    for (int depth = 0; open-- > 0;) {
        if (signature[open] == ')') depth++;
        if (signature[open] == '(' && depth-- == 0) break;
    }
    std::string parameter;
    int depth = 0;
    for (char c : std::string(signature.substr(open + 1, close - open - 1)) + ",") {
        if (c == ',' && depth == 0) {
            while (!parameter.empty() && parameter.front() == ' ') parameter.erase(0, 1);
            if (!parameter.empty()) sizes.push_back(typeBytes(parameter));
            parameter.clear();
            continue;
        }
        if (c == '<' || c == '(') depth++;
        if (c == '>' || c == ')') depth--;
        parameter += c;
    }
    return sizes;
}

}  // namespace

void registerKernel(const void* hostFunction, const char* mangledName) {
    auto kernel = std::make_unique<Kernel>();
    kernel->hostFunction = hostFunction;
    kernel->name = mangledName;
    kernel->declaresCost = kernel->name.find("10KernelCost") != std::string::npos;
    kernel->parameterBytes = parameterBytes(mangledName);
    kernel->family = kernelFamily(kernel->name);
    std::lock_guard guard(g_mutex);
    auto& slot = kernels()[hostFunction];
    if (slot) {
        kernel->body = slot->body;
        handles().erase(slot.get());
    }
    handles().insert(kernel.get());
    slot = std::move(kernel);
}

Kernel* registerLoadedKernel(const std::string& name) {
    auto kernel = std::make_unique<Kernel>();
    Kernel* registered = kernel.get();
    kernel->hostFunction = registered;
    kernel->name = name;
    kernel->declaresCost = false;
    kernel->family = kernelFamily(name);
    std::lock_guard guard(g_mutex);
    kernels()[registered] = std::move(kernel);
    return registered;
}

const Kernel* pricedKernel(const std::string& name) {
    static std::mutex mutex;
    static auto* priced = new std::map<std::string, Kernel*>;
    std::lock_guard guard(mutex);
    Kernel*& kernel = (*priced)[name];
    if (!kernel) {
        kernel = registerLoadedKernel(name);
        kernel->declaresCost = true;
    }
    return kernel;
}

Kernel* findKernel(const void* function) {
    std::lock_guard guard(g_mutex);
    auto it = kernels().find(function);
    if (it != kernels().end()) return it->second.get();
    return handles().contains(function) ? static_cast<Kernel*>(const_cast<void*>(function)) : nullptr;
}

static double bytesMoved(const KernelFamily& family, const KernelLaunch& launch) {
    if (family.countsElements && launch.args && launch.args[0]) {
        int elements;
        std::memcpy(&elements, launch.args[0], sizeof elements);
        return family.bytesPerElement * elements;
    }
    return family.bytesPerThread * launch.blocks() * launch.block.x * launch.block.y * launch.block.z;
}

double kernelWorkNs(const LocalProcess& process, const KernelLaunch& launch) {
    const Cluster& cluster = process.cluster();
    const Kernel* kernel = launch.kernel;
    if (kernel->declaresCost && launch.args && launch.args[0]) {
        Cost cost;
        std::memcpy(&cost, launch.args[0], sizeof cost);
        return std::max(kShortestKernelNs, workNs(cluster, {cost.flop, cost.bytes, RANKSCOPE_ELEMENT_BF16}));
    }
    const double measured = process.prices().kernelNs(kernel->name, launch.blocks());
    if (measured >= 0) return measured;
    if (kernel->family) return std::max(kShortestKernelNs, bytesMoved(*kernel->family, launch) / cluster.hbmGbps);
    return unknownKernelNs(launch.blocks());
}

std::function<void()> kernelBody(const KernelLaunch& launch) {
    const Kernel* kernel = launch.kernel;
    if (!kernel->body || !launch.args) return {};
    auto kept = std::make_shared<KeptArguments>(*kernel, launch.args);
    return [kept, body = kernel->body] { body(kept->pointers.data()); };
}

}  // namespace rankscope::vgpu
