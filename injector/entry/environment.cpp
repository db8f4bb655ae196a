// SPDX-License-Identifier: Apache-2.0
#include "injector/entry/environment.h"

#include <cstddef>
#include <cstring>

#include "injector/text.h"

extern "C" char** environ;

namespace rankscope::injector {
namespace {

constexpr size_t kMaxEntries = 8192;
constexpr size_t kMaxOwn = 8;
char* g_entries[kMaxEntries];
FixedText<4400> g_own[kMaxOwn];
size_t g_ownCount = 0;

char** find(const char* name) noexcept {
    const size_t length = std::strlen(name);
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
        if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return entry;
    return nullptr;
}

}  // namespace

const char* readVariable(const char* name) noexcept {
    char** entry = find(name);
    return entry == nullptr ? nullptr : *entry + std::strlen(name) + 1;
}

bool writeVariable(const char* name, const char* value) noexcept {
    if (g_ownCount == kMaxOwn) return false;
    auto& text = g_own[g_ownCount];
    text.clear();
    text.append(name).append("=").append(value);
    if (text.wasCut()) return false;
    char* own = const_cast<char*>(text.c_str());
    if (char** entry = find(name)) {
        *entry = own;
        ++g_ownCount;
        return true;
    }
    size_t count = 0;
    while (environ != nullptr && environ[count] != nullptr) ++count;
    if (count + 2 > kMaxEntries) return false;
    if (environ != g_entries)
        for (size_t i = 0; i < count; ++i) g_entries[i] = environ[i];
    g_entries[count] = own;
    g_entries[count + 1] = nullptr;
    environ = g_entries;
    ++g_ownCount;
    return true;
}

}  // namespace rankscope::injector
