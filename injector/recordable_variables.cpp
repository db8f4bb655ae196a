// SPDX-License-Identifier: Apache-2.0
#include "injector/recordable_variables.h"

#include <cstring>
#include <string_view>

#include "injector/recordable_names.h"

namespace rankscope::injector {
namespace {

constexpr const char* kSchemeEnd = "://";
constexpr const char* kMask = "***";

}  // namespace

bool isRecordableVariable(const char* name, uint64_t length) noexcept {
    for (const std::string_view allowed : kRecordableNames)
        if (length == allowed.size() && std::memcmp(name, allowed.data(), length) == 0) return true;
    return false;
}

RecordedValue recordedValue(const char* value) noexcept {
    RecordedValue result;
    for (const char* scheme = std::strstr(value, kSchemeEnd); scheme != nullptr;
         scheme = std::strstr(value, kSchemeEnd)) {
        const char* user = scheme + std::strlen(kSchemeEnd);
        result.append(value, static_cast<size_t>(user - value));
        const char* last = nullptr;  // a password may hold an @ that nobody has escaped
        const char* end = user + std::strcspn(user, "/?# \t\n,;\"'");
        for (const char* at = user; at < end; ++at)
            if (*at == '@') last = at;
        if (last != nullptr) result.append(kMask);
        value = last != nullptr ? last : user;
    }
    result.append(value);
    return result;
}

}  // namespace rankscope::injector
