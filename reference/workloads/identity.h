// SPDX-License-Identifier: Apache-2.0
// Which rank this process is, as its launcher says, and which job it belongs to.
#pragma once

#include <stdexcept>
#include <string>

namespace rankscope::reference {

struct Identity {
    int rank = 0;
    int worldSize = 1;
    int localRank = 0;
    std::string jobKey;  ///< equal for all ranks of one job, different for two jobs at once
    std::string source;  ///< "torchrun", "openmpi", "pmix", "pmi", "slurm", "options" or "none"
};

struct IdentityError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Options that the command line gave; -1 where it did not.
struct IdentityOptions {
    int rank = -1;
    int worldSize = -1;
};

/// Options win over the environment. Without any launcher this is rank 0 of 1. Throws IdentityError for half an
/// identity.
Identity readIdentity(const IdentityOptions& options);

}  // namespace rankscope::reference
