// SPDX-License-Identifier: Apache-2.0
#include "injector/entry/environment.h"

#include <cstddef>
#include <cstring>

extern "C" char** environ;

namespace rankscope::injector {
namespace {

constexpr size_t kMaxEntries = 8192;
char* g_entries[kMaxEntries];
// One behind the other: every process of the job pays for each page that is touched.
char g_texts[8 * 4400];
size_t g_textBytes = 0;

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
    const size_t nameBytes = std::strlen(name), valueBytes = std::strlen(value);
    if (nameBytes + valueBytes + 2 > sizeof g_texts - g_textBytes) return false;
    char* own = g_texts + g_textBytes;
    std::memcpy(own, name, nameBytes);
    own[nameBytes] = '=';
    std::memcpy(own + nameBytes + 1, value, valueBytes + 1);
    if (char** entry = find(name)) {
        *entry = own;
        g_textBytes += nameBytes + valueBytes + 2;
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
    g_textBytes += nameBytes + valueBytes + 2;
    return true;
}

}  // namespace rankscope::injector
