// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/driver/module.h"

#include <elf.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>

#include "reference/vgpu/device/kernel_registry.h"
#include "reference/vgpu/device/not_executed.h"

namespace rankscope::vgpu {

enum class ImageKind : uint8_t { cubin, ptx, fatbin, unknown };

struct Module {
    ImageKind kind;
    std::set<std::string> kernels;  ///< of a cubin
    std::string ptx;
    std::map<std::string, Kernel*> given;
};

namespace {

// First word of the header that nvcc puts in front of fat binaries, and of the wrapper that points to one
// (fatbinary_section.h of the CUDA toolkit: FATBINC_MAGIC; the other as nvcc's output begins).
constexpr uint32_t kFatbinMagic = 0xBA55ED50, kFatbinWrapperMagic = 0x466243b1;

struct Modules {
    std::mutex mutex;
    std::map<Module*, std::unique_ptr<Module>> loaded;
};

Modules& modules() {
    static auto* only = new Modules;
    return *only;
}

template <typename Part>
Part partAt(const char* image, uint64_t offset) {
    Part part;
    std::memcpy(&part, image + offset, sizeof part);
    return part;
}

/// A cubin is an ELF file in which the code of kernel NAME is the section .text.NAME.
std::set<std::string> kernelsOfCubin(const void* cubin) {
    constexpr std::string_view kCode = ".text.";
    const auto* image = static_cast<const char*>(cubin);
    const auto header = partAt<Elf64_Ehdr>(image, 0);
    std::set<std::string> names;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr)) return names;
    const auto strings = partAt<Elf64_Shdr>(image, header.e_shoff + header.e_shstrndx * sizeof(Elf64_Shdr));
    for (uint16_t i = 0; i < header.e_shnum; i++) {
        const auto section = partAt<Elf64_Shdr>(image, header.e_shoff + i * sizeof(Elf64_Shdr));
        const std::string_view name = image + strings.sh_offset + section.sh_name;
        if (name.starts_with(kCode)) names.emplace(name.substr(kCode.size()));
    }
    return names;
}

bool ptxHasKernel(std::string_view ptx, const std::string& name) {
    for (size_t at = ptx.find(".entry"); at != std::string_view::npos; at = ptx.find(".entry", at + 1)) {
        const size_t begin = ptx.find_first_not_of(" \t\n", at + 6);
        if (begin == std::string_view::npos) return false;
        if (ptx.substr(begin, ptx.find_first_of(" \t\n(", begin) - begin) == name) return true;
    }
    return false;
}

ImageKind kindOf(const void* image) {
    const auto first = partAt<uint32_t>(static_cast<const char*>(image), 0);
    if (std::memcmp(image, ELFMAG, SELFMAG) == 0) return ImageKind::cubin;
    if (first == kFatbinMagic || first == kFatbinWrapperMagic) return ImageKind::fatbin;
    const std::string_view text(static_cast<const char*>(image),
                                strnlen(static_cast<const char*>(image), size_t{1} << 16));
    return text.find(".version") != std::string_view::npos ? ImageKind::ptx : ImageKind::unknown;
}

}  // namespace

Module* loadModule(const void* image) {
    auto module = std::make_unique<Module>();
    module->kind = kindOf(image);
    if (module->kind == ImageKind::unknown) return nullptr;
    if (module->kind == ImageKind::cubin) module->kernels = kernelsOfCubin(image);
    if (module->kind == ImageKind::ptx) module->ptx = static_cast<const char*>(image);
    std::lock_guard guard(modules().mutex);
    Module* loaded = module.get();
    modules().loaded[loaded] = std::move(module);
    return loaded;
}

bool unloadModule(Module* module) {
    std::lock_guard guard(modules().mutex);
    return modules().loaded.erase(module) != 0;
}

Kernel* kernelOf(Module* module, const std::string& name) {
    std::lock_guard guard(modules().mutex);
    if (!modules().loaded.contains(module)) return nullptr;
    if (module->kind == ImageKind::cubin && !module->kernels.contains(name)) return nullptr;
    if (module->kind == ImageKind::ptx && !ptxHasKernel(module->ptx, name)) return nullptr;
    Kernel*& kernel = module->given[name];
    if (!kernel) kernel = registerLoadedKernel(name);
    tellOfCompiledKernel(name.c_str());
    return kernel;
}

}  // namespace rankscope::vgpu
