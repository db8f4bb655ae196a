// SPDX-License-Identifier: Apache-2.0
// Who set NCCL_ALGO or NCCL_PROTO for the job, and what takes it back.
#pragma once

#include <optional>
#include <string>

#include "analyzer/costs/algorithm_support.h"

namespace rankscope::recommend {

enum class SettingOrigin : uint8_t {
    unknown,  // an import, or a launcher outside: nobody saw what the user's shell held
    shell,    // it stood in the environment that `rankscope run` was started from
    option,   // --env of `rankscope run`
    job,      // it did not: the job's own script, its launcher's options
};

SettingOrigin originOf(const facts::TraceFacts& facts, const std::string& variable);

/// The variable's state in a user's shell that leaves the choice to NCCL: nothing to unset it; else empty. NCCL 2.24
/// and newer take an empty list for none at all (parseList in src/graph/tuning.cc), and it holds where an absent
/// variable would be set again: by a job that sets what is not set, and by nccl.conf, which NCCL reads with setenv(…,
/// 0). Older ones take it for 'nothing allowed'.
std::optional<std::string> givenBack(const facts::TraceFacts& facts, const std::string& variable,
                                     const std::optional<costs::NcclVersion>& nccl);

/// "NCCL_PROTO=LL is in the environment …", and where its change to `then` has to be made.
std::string originText(const facts::TraceFacts& facts, const std::string& variable,
                       const std::optional<std::string>& then);

}  // namespace rankscope::recommend
