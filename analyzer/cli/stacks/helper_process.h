// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace rankscope::cli {

// What `make` returns, made in a forked process of its own process group, so that neither a crash in it nor what a
// terminal sends to the job's group matters. Empty where it threw or died, said too much (32 MiB), or was not done
// before `isOver`, which is asked about five times a second. Throws std::system_error where no pipe can be had.
std::string madeInHelper(const std::function<std::string()>& make, const std::function<bool()>& isOver);

}  // namespace rankscope::cli
