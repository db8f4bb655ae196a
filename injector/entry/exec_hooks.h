// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rankscope::injector {

/// Looks the real exec functions up, once, before the job runs: a vfork child, which shares our memory, must not do so
/// later.
void findRealExec() noexcept;

}  // namespace rankscope::injector
