// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/stacks/native_frames.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "collector/store/symbol_name.h"

#ifdef RANKSCOPE_HAVE_LIBDW
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>
#endif

namespace rankscope::cli {

#ifndef RANKSCOPE_HAVE_LIBDW

std::vector<std::vector<std::string>> nativeFrames(const ProcessSnapshot& snapshot) {
    return std::vector<std::vector<std::string>>(snapshot.threads.size());
}

bool canUnwind() {
    return false;
}

#else

namespace {

// The innermost tell where a thread stands; an interpreter recursing for ever is cut off here.
constexpr size_t kMostFrames = 100;
constexpr char kVdso[] = "[vdso]";

// libdw's callbacks get no other argument here than the process.
const ProcessSnapshot* g_process = nullptr;

// The kernel's own library lies in no file; that of this process is the same.
int findVdso(Dwfl_Module* module, Elf** elf) {
    Dwarf_Addr start = 0, end = 0;
    dwfl_module_info(module, nullptr, &start, &end, nullptr, nullptr, nullptr, nullptr);
    static std::vector<char> image;
    const auto* own = reinterpret_cast<const char*>(getauxval(AT_SYSINFO_EHDR));  // NOLINT(performance-no-int-to-ptr)
    if (own == nullptr) return -1;
    image.assign(own, own + (end - start));
    *elf = elf_memory(image.data(), image.size());
    return -1;
}

int findElf(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base, char** file, Elf** elf) {
    if (std::strcmp(name, kVdso) == 0) return findVdso(module, elf);
    const int found = dwfl_linux_proc_find_elf(module, data, name, base, file, elf);
    if (found >= 0 || *elf != nullptr || name[0] != '/') return found;
    // A job in a container of its own has its files elsewhere.
    const std::string inside = fmt::format("/proc/{}/root{}", g_process->pid, name);
    return open(inside.c_str(), O_RDONLY | O_CLOEXEC);
}

// Files of debug information are large, and may be fetched from afar: names of functions are in the library.
int findNoDebugFile(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
    return -1;
}

pid_t nextThread(Dwfl*, void* argument, void** threadArgument) {
    const auto& snapshot = *static_cast<const ProcessSnapshot*>(argument);
    const auto* last = static_cast<const ThreadSnapshot*>(*threadArgument);
    const size_t next = last == nullptr ? 0 : static_cast<size_t>(last - snapshot.threads.data()) + 1;
    if (next >= snapshot.threads.size()) return 0;
    *threadArgument = const_cast<ThreadSnapshot*>(&snapshot.threads[next]);
    return snapshot.threads[next].tid;
}

const ThreadSnapshot* g_unwound = nullptr;

bool readMemory(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void*) {
    const ThreadSnapshot& thread = *g_unwound;
    if (address < thread.stackStart || address - thread.stackStart + sizeof *result > thread.stack.size()) return false;
    std::memcpy(result, thread.stack.data() + (address - thread.stackStart), sizeof *result);
    return true;
}

bool setRegisters(Dwfl_Thread* thread, void* argument) {
    const auto& snapshot = *static_cast<const ThreadSnapshot*>(argument);
    g_unwound = &snapshot;
    if (snapshot.registers.empty()) return false;
    static_assert(sizeof(Dwarf_Word) == sizeof(uint64_t));
    const std::vector<Dwarf_Word> registers(snapshot.registers.begin(), snapshot.registers.end());
    if (!dwfl_thread_state_registers(thread, 0, static_cast<unsigned>(registers.size()), registers.data()))
        return false;
    dwfl_thread_state_register_pc(thread, snapshot.programCounter);
    return true;
}

std::string fileName(const char* path) {
    const char* slash = std::strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
}

std::string frameText(Dwfl* dwfl, Dwarf_Addr counter, bool isActivation) {
    // Behind a call that never returns lies another function: the call itself is asked for.
    const Dwarf_Addr asked = isActivation ? counter : counter - 1;
    Dwfl_Module* module = dwfl_addrmodule(dwfl, asked);
    if (module == nullptr) return fmt::format("{:#x}", counter);
    const char* path = nullptr;
    Dwarf_Addr start = 0;
    const char* name = dwfl_module_info(module, nullptr, &start, nullptr, nullptr, nullptr, &path, nullptr);
    const std::string library = fileName(path != nullptr ? path : name);
    GElf_Off offset = 0;
    GElf_Sym symbol;
    const char* function = dwfl_module_addrinfo(module, asked, &offset, &symbol, nullptr, nullptr, nullptr);
    if (function == nullptr) return fmt::format("{:#x} ({})", counter - start, library);
    const std::string readable = store::demangled(function).value_or(function);
    return fmt::format("{}+{:#x} ({})", readable.substr(0, store::parametersOf(readable)),
                       offset + (isActivation ? 0 : 1), library);
}

struct Walk {
    Dwfl* dwfl;
    std::vector<std::string>* frames;
};

int addFrame(Dwfl_Frame* frame, void* argument) {
    const auto& walk = *static_cast<const Walk*>(argument);
    Dwarf_Addr counter = 0;
    bool isActivation = false;
    if (!dwfl_frame_pc(frame, &counter, &isActivation)) return DWARF_CB_ABORT;
    walk.frames->push_back(frameText(walk.dwfl, counter, isActivation));
    return walk.frames->size() < kMostFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
}

struct Frames {
    Dwfl* dwfl;
    const ProcessSnapshot* snapshot;
    std::vector<std::vector<std::string>>* result;
};

int addThread(Dwfl_Thread* thread, void* argument) {
    const auto& frames = *static_cast<const Frames*>(argument);
    for (size_t i = 0; i < frames.snapshot->threads.size(); ++i) {
        if (frames.snapshot->threads[i].tid != dwfl_thread_tid(thread)) continue;
        Walk walk{frames.dwfl, &(*frames.result)[i]};
        // What cannot be followed further ends the stack: the frames so far are right.
        if (!frames.snapshot->threads[i].registers.empty()) dwfl_thread_getframes(thread, addFrame, &walk);
    }
    return DWARF_CB_OK;
}

// Reports the libraries of the process as they are mapped.
bool reportModules(Dwfl* dwfl, const ProcessSnapshot& snapshot) {
    std::string maps = snapshot.maps;
    FILE* text = maps.empty() ? nullptr : fmemopen(maps.data(), maps.size(), "r");
    if (text == nullptr) return false;
    dwfl_report_begin(dwfl);
    const bool reported = dwfl_linux_proc_maps_report(dwfl, text) == 0;
    rewind(text);
    char line[4096];
    while (std::fgets(line, sizeof line, text) != nullptr) {
        unsigned long start = 0, end = 0;
        if (std::strstr(line, kVdso) != nullptr && std::sscanf(line, "%lx-%lx", &start, &end) == 2)
            dwfl_report_module(dwfl, kVdso, start, end);
    }
    std::fclose(text);
    return dwfl_report_end(dwfl, nullptr, nullptr) == 0 && reported;
}

}  // namespace

std::vector<std::vector<std::string>> nativeFrames(const ProcessSnapshot& snapshot) {
    std::vector<std::vector<std::string>> result(snapshot.threads.size());
    static const Dwfl_Callbacks kFiles{
        .find_elf = findElf, .find_debuginfo = findNoDebugFile, .section_address = nullptr, .debuginfo_path = nullptr};
    static const Dwfl_Thread_Callbacks kThreads{.next_thread = nextThread,
                                                .get_thread = nullptr,
                                                .memory_read = readMemory,
                                                .set_initial_registers = setRegisters,
                                                .detach = nullptr,
                                                .thread_detach = nullptr};
    g_process = &snapshot;
    Dwfl* dwfl = dwfl_begin(&kFiles);
    if (dwfl == nullptr) return result;
    if (reportModules(dwfl, snapshot) &&
        dwfl_attach_state(dwfl, nullptr, snapshot.pid, &kThreads, const_cast<ProcessSnapshot*>(&snapshot))) {
        Frames frames{dwfl, &snapshot, &result};
        dwfl_getthreads(dwfl, addThread, &frames);
    }
    dwfl_end(dwfl);
    return result;
}

bool canUnwind() {
    return true;
}

#endif

}  // namespace rankscope::cli
