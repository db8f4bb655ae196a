// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rankscope::injector {

/// Off until told otherwise: the job's output is the job's.
void setVerbose(bool verbose) noexcept;

/// One line on stderr, when RANKSCOPE_VERBOSE asks for it.
void say(const char* message) noexcept;

}  // namespace rankscope::injector
