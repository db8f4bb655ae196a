// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace rankscope::reference {

/// A diagnosis that a scenario expects or allows.
struct Claim {
    std::string key;  ///< "expect[0].id"
    std::string id;   ///< "RS301"
};

}  // namespace rankscope::reference
