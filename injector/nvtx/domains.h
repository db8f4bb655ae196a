// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::injector::nvtx {

/// What an nvtxDomainHandle_t of ours points to. Made once per name, never freed: libraries destroy domains late, if at
/// all.
struct Domain {
    const char* name;
    size_t nameBytes;
    bool isNccl;  ///< NCCL's own domain, whose payloads we decode
};

/// What an nvtxStringHandle_t of ours points to.
struct RegisteredText {
    const char* text;
    size_t bytes;
};

/// Both copy the text; the same name gives the same domain, whichever module asks. Null when there is no memory or no
/// room. Lock.
const Domain* makeDomain(const char* name) noexcept;
const RegisteredText* registerText(const char* text) noexcept;

/// A wide text as UTF-8, cut at `room`; returns the bytes written. What is no character becomes '?'.
size_t fromWide(const wchar_t* wide, char* into, size_t room) noexcept;

/// In a forked child.
void renewDomainLock() noexcept;

}  // namespace rankscope::injector::nvtx
