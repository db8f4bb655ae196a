// SPDX-License-Identifier: Apache-2.0
#include "injector/nvtx/domains.h"

#include <cstring>

#include "injector/record/mutex.h"
#include "injector/record/permanent_memory.h"

namespace rankscope::injector::nvtx {

namespace {

constexpr size_t kDomains = 256;

struct Table {
    Mutex mutex;
    size_t count = 0;
    Domain domains[kDomains] = {};
};

constinit Table g_table;

const char* copyOf(const char* text, size_t bytes) noexcept {
    auto* copy = static_cast<char*>(takePermanent(bytes + 1));
    if (copy == nullptr) return nullptr;
    std::memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return copy;
}

}  // namespace

void renewDomainLock() noexcept {
    g_table.mutex.renew();
}

const Domain* makeDomain(const char* name) noexcept {
    if (name == nullptr) return nullptr;
    const size_t bytes = std::strlen(name);
    const Lock lock(g_table.mutex);
    for (size_t i = 0; i < g_table.count; ++i)
        if (g_table.domains[i].nameBytes == bytes && std::memcmp(g_table.domains[i].name, name, bytes) == 0)
            return &g_table.domains[i];
    if (g_table.count == kDomains) return nullptr;
    const char* copy = copyOf(name, bytes);
    if (copy == nullptr) return nullptr;
    Domain& domain = g_table.domains[g_table.count++];
    domain = {copy, bytes, std::strcmp(copy, "NCCL") == 0};
    return &domain;
}

const RegisteredText* registerText(const char* text) noexcept {
    if (text == nullptr) return nullptr;
    const size_t bytes = std::strlen(text);
    const char* copy = copyOf(text, bytes);
    auto* registered = static_cast<RegisteredText*>(takePermanent(sizeof(RegisteredText)));
    if (copy == nullptr || registered == nullptr) return nullptr;
    *registered = {copy, bytes};
    return registered;
}

size_t fromWide(const wchar_t* wide, char* into, size_t room) noexcept {
    size_t used = 0;
    for (; wide != nullptr && *wide != L'\0'; ++wide) {
        auto code = static_cast<uint32_t>(*wide);
        if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) code = '?';
        const size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        if (used + length > room) break;
        if (length == 1) {
            into[used++] = static_cast<char>(code);
            continue;
        }
        static constexpr uint8_t kLead[] = {0, 0, 0xc0, 0xe0, 0xf0};
        for (size_t i = length - 1; i > 0; --i, code >>= 6) into[used + i] = static_cast<char>(0x80 | (code & 0x3f));
        into[used] = static_cast<char>(kLead[length] | code);
        used += length;
    }
    return used;
}

}  // namespace rankscope::injector::nvtx
